"""The command line: the way from records to predictions."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cli_calls import call, check_refusal, run, told
from samples import ROOT

from agglearn import __version__
from agglearn.cli import aggregate, report
from agglearn.cli.aggregate import parse_names
from agglearn.cli.fit import FACTORS, parameters
from agglearn.estimator import Estimator
from agglearn.labelsums import AggregateSearch, TablesAndSampleClassifier
from agglearn.maxent import MaxEntClassifier, NaiveBayesClassifier
from agglearn.maxent.penalty import moment_penalty
from agglearn.observations import ContingencyTables, TablesAndSample

QUICK = "--set n_chains=200 --set max_iter=20"
HOW = "--label y --positive yes --missing ? --categorical zone"


def test_help_is_at_once_and_explains(capsys):
    code = "import sys; from agglearn.cli import parser; parser(); print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "[]"
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == f"agglearn {__version__}"


def test_values_of_fit_are_read_as_those_of_a_configuration():
    given = ["clip=inf", "step_mu=null", "step_theta=1e-3", "clip_ratio=false", "l2_theta=moments"]
    assert parameters(MaxEntClassifier, "maxent", given, 7) == {
        "clip": np.inf, "step_mu": None, "step_theta": 1e-3, "clip_ratio": False, "l2_theta": "moments", "random_state": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "words"), [("maxent", "differ"), ("naive_bayes", "tables of single features (4;"), ("best_pair", "×")]
)
def test_from_records_to_predictions(at, capsys, method, words):
    fit = f"fit tables --method {method} --seed 3 {QUICK if method == 'maxent' else ''} --out"
    first, second = told(capsys, f"{fit} m").out.splitlines()
    assert first.startswith(f"m: {method} on 4 features and 10 tables of 300 records")
    assert words in second
    assert told(capsys, "predict m data.csv --out p.csv").err == ""
    written = pd.read_csv("p.csv")
    assert list(written) == ["probability"]
    frame = pd.read_csv("data.csv", na_values="?")
    expected = Estimator.load("m").predict_proba(frame)[:, 1]
    np.testing.assert_allclose(written.probability, expected, rtol=1e-8)
    assert expected.std() > 0.05
    assert call(f"{fit} again") == 0
    np.testing.assert_array_equal(Estimator.load("again").predict_proba(frame)[:, 1], expected)


@pytest.mark.slow
def test_held_out_tables_choose_the_penalty(at, capsys):
    """Of a tenth to ten times the strength that moments suggest."""
    assert ", by held-out tables" in told(capsys, f"fit tables --tune --seed 3 --out m {QUICK}").out
    tables, model = ContingencyTables.load("tables"), Estimator.load("m")
    single, pair = moment_penalty(tables)
    assert FACTORS == (0.1, 0.3, 1, 3, 10)
    strengths = [(single * factor, pair * factor) for factor in FACTORS]
    base = MaxEntClassifier(200, max_iter=20, random_state=3)
    search = AggregateSearch(base, values=strengths, random_state=3).fit(tables)
    assert model.l2_theta_ == search.value_
    frame = pd.read_csv("data.csv", na_values="?")
    np.testing.assert_array_equal(model.predict_proba(frame), search.predict_proba(frame))


def test_a_sample_corrects_the_model_of_the_tables(at, capsys):
    raw = pd.read_csv("data.csv", dtype=str, na_values="?")
    raw[:120].to_csv("few.csv", index=False, na_rep="?")
    assert call(f"fit tables --sample few.csv --seed 3 --out m {QUICK}") == 0
    assert "with the sample of 120 records the tables count" in capsys.readouterr().out
    tables, model = ContingencyTables.load("tables"), Estimator.load("m")
    few = TablesAndSample.from_records(tables, raw[:120], positive="yes")
    again = TablesAndSampleClassifier(model.base, random_state=3).fit(few)
    np.testing.assert_allclose(model.weights_, again.weights_)
    assert call("predict m data.csv --out p.csv") == 0
    np.testing.assert_allclose(pd.read_csv("p.csv")["probability"], again.predict_proba(raw)[:, 1], rtol=1e-8)


def test_aggregate_is_what_the_library_does(at, capsys):
    frame = pd.read_csv("data.csv", na_values="?")
    same = ContingencyTables.from_records(frame, "y", categorical=["zone"], positive="yes")
    assert ContingencyTables.load("tables").digest == same.digest
    frame.to_parquet("data.parquet", row_group_size=50)
    assert call("aggregate data.parquet --label y --positive yes --categorical zone --out streamed") == 0
    assert ContingencyTables.load("streamed").digest == same.digest
    first, features, numbers, tables, cells = capsys.readouterr().out.splitlines()
    assert first.startswith("streamed: 300 records, ")
    assert "age (10 bins), job (3 categories), home (2 categories and missing), zone (3 categories)" in features
    assert numbers == "taken for numbers, in bins: age"
    assert tables.startswith("10 tables, ")
    assert "smallest cell" in cells
    assert call("aggregate data.parquet --schema schema.yaml --out by_schema") == 0
    assert ContingencyTables.load("by_schema").digest == ContingencyTables.load("declared").digest


def test_fit_accounts_for_noise_or_refuses(at, capsys):
    assert call("private declared --epsilon 1 --delta 1e-6 --out noisy") == 0
    for method in ("naive_bayes", "best_pair"):
        check_refusal(capsys, f"fit noisy --method {method} --out m", 2, "treats noisy tables as exact; use maxent")
        [line] = told(capsys, f"fit noisy --method {method} --ignore-noise --out {method}").err.splitlines()
        assert line.startswith("agglearn: warning: ")
        assert "takes noisy ContingencyTables" in line
    said = told(capsys, f"fit noisy {QUICK} --out aware")
    assert said.out.startswith("aware: maxent, noise-aware, on 4 features")
    assert said.err == ""
    assert type(Estimator.load("aware")).__name__ == "NoiseAwareMaxEntClassifier"
    assert call("predict aware data.csv --out p.csv") == 0
    check_refusal(capsys, f"fit declared {QUICK} --ignore-noise --out m", 2, "have no noise")
    check_refusal(capsys, "private noisy --epsilon 1 --delta 1e-6 --out noisier", 1, "already")


def test_features_pairs_and_names_with_commas_and_colons(at):
    how = "aggregate data.csv --label y --positive yes --missing ? --binning width"
    assert call(f"{how} --features age,job --features home --pairs age:job --out t") == 0
    Path("u").mkdir()  # an empty folder is no output
    assert call(f"{how} --pairs none --out u") == 0
    Path("odd.csv").write_text('"a,b",c:d,e,y\n1,u,p,0\n2,v,q,1\n')
    assert call('aggregate odd.csv --label y --features "a,b",c:d,e --pairs "a,b:c:d",c:d:e --out v') == 0
    found = [ContingencyTables.load(name) for name in "tuv"]
    assert [tables.pairs for tables in found] == [[(0, 1)], [], [(0, 1), (1, 2)]]
    assert [tables.names for tables in found[::2]] == [["age", "job", "home"], ["a,b", "c:d", "e"]]


@pytest.mark.parametrize("separator", [";", "tab", "|", ".gz"])
def test_separators_byte_order_marks_and_compressed_files(at, separator):
    sign = {"tab": "\t", ".gz": ","}.get(separator, separator)
    file = "other.csv" + separator * (sign == ",")
    pd.read_csv("data.csv", dtype=str).to_csv(file, index=False, sep=sign, encoding="utf-8-sig")
    assert call(f"aggregate {file} --separator {sign if sign == ',' else separator} {HOW} --out t") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest


def test_unseen_values_are_reported_and_add_nothing(at, capsys):
    Path("new.csv").write_text("zone,home,job,age\n11,own,cook,30\n11,own,pilot,30\n99,?,,30\n")
    said = told(capsys, "predict model new.csv --out -")
    assert said.out.startswith("probability\n")
    assert said.err.startswith("standard output: 3 rows")
    assert "never seen in the tables, which add nothing: job 2, zone 1" in said.err
    p = [float(x) for x in said.out.splitlines()[1:]]
    model = Estimator.load("model")
    codes = model.encoder_.encode(pd.DataFrame({"age": [30], "job": ["pilot"], "home": ["own"], "zone": ["11"]}))[0]
    known = [d for d in range(4) if codes[d] >= 0]
    assert known == [0, 2, 3]
    logit = model.intercept_ + sum(model.theta_[model.encoder_.offsets[d] + codes[d]] for d in known)
    assert p[1] == pytest.approx(1 / (1 + np.exp(-logit)))


def test_categories_do_not_depend_on_the_rest_of_the_file(at):
    Path("codes.csv").write_text("c,y\n01,0\n1,1\nA,0\n3.0,1\n")
    assert call("aggregate codes.csv --label y --out t") == 0
    assert ContingencyTables.load("t").encoder.features[0].values == ("01", "1", "3", "A")
    assert call("fit t --method naive_bayes --out m") == 0
    Path("new.csv").write_text("c\n01\n3\n")
    assert call("predict m new.csv --out p.csv") == 0
    p = pd.read_csv("p.csv").probability
    assert p[0] < 0.5 < p[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "lines", "said"),
    [("predict model data.csv", 1, "probability\n"), ("--completion", 0, ""), ("--help", 0, "")],
)
def test_a_reader_that_has_had_enough(at, command, lines, said):
    command = f"{sys.executable} -m agglearn {command} | head -n {lines}; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, said)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# -- columns of codes, and of many values -----------------------------------------------------------------------------


def codes(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {f"C{i}": rng.integers(0, 40 * i, n) for i in range(1, 15)}
    columns |= {"price": rng.random(n), "account": 7 * np.arange(n), "store_id": rng.integers(0, 3, n)}
    columns |= {"hash": rng.integers(1 << 60, 1 << 62, n), "zone": [f"0{k}" for k in rng.integers(1, 9, n)]}
    return pd.DataFrame(columns | {"y": rng.integers(0, 2, n)})


def test_columns_taken_for_numbers_are_named(at, capsys):
    codes().to_csv("codes.csv", index=False)
    printed = told(capsys, "aggregate codes.csv --label y --pairs none --out t")
    names = [*(f"C{i}" for i in range(1, 15)), "price", "account", "store_id", "hash", "zone"]
    assert f"taken for numbers, in bins: {', '.join(names)}\n" in printed.out
    [line] = printed.err.splitlines()
    assert line.startswith("agglearn: warning: columns were taken for numbers and binned")
    for words in ("'account' (its whole numbers hardly ever repeat), 'store_id' (its name is that of a code), 'hash' (it has",
                  "above 2^53", "'zone' (some of its numbers begin with zeros); if", "--categorical"):  # fmt: skip
        assert words in line


@pytest.mark.parametrize("size", ["--budget 10", "--budgets 10,15,20"])
def test_a_command_tells_a_warning_once(at, capsys, size):
    codes().to_csv("codes.csv", index=False)
    assert call("aggregate codes.csv --label y --features C1,C2 --pairs none --out t") == 0
    for _ in range(2):  # and the next command tells it again
        [line] = told(capsys, f"compress t {size} --out clusters.csv --force").err.splitlines()
        assert line.startswith("agglearn: warning: features were taken for numbers")


@pytest.mark.parametrize("file", ["codes.csv", "codes.parquet"])
def test_patterns_and_hashing_of_all_large_columns(at, capsys, file):
    frame = codes()
    frame.to_csv("codes.csv", index=False)
    frame.to_parquet("codes.parquet")
    how = f"aggregate {file} --label y --pairs none --features"
    assert call(f"{how} C*,price --categorical C* --hash-above 200:50 --out t") == 0
    many = [f"C{i}" for i in range(1, 15) if frame[f"C{i}"].nunique() > 200]
    assert 0 < len(many) < 14
    assert f"hashed: {', '.join(many)}\n" in capsys.readouterr().out
    each = " ".join(f"--hash {name}:50" for name in many)
    assert call(f"{how} C*,price --categorical C* {each} --out u") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("u").digest
    assert call(f"{how} C*,price --categorical C* --hash C1?:50 --out v") == 0
    assert ContingencyTables.load("v").encoder.sizes.tolist()[9:14] == [50] * 5
    assert call(f"{how} * --out w") == 0
    assert "y" not in ContingencyTables.load("w").names


def test_a_long_count_is_announced(at, capsys, monkeypatch):
    monkeypatch.setattr(aggregate, "LONG", 0)
    assert told(capsys, f"aggregate data.csv {HOW} --out t").out.startswith("t: 10 tables take about")


# -- the report on a fit -----------------------------------------------------------------------------------------------


def test_items_of_an_option_lie_between_commas_and_spaces():
    assert parse_names(["a, b", '"c, d",e', "f"], []) == ["a", "b", "c, d", "e", "f"]


def irregular() -> pd.DataFrame:
    """Eleven records, seven with label 1: a feature of three values, one of two."""
    return pd.DataFrame({"a": list("uuuuuvvvwww"), "b": list("xxxxyxyxxyx"), "y": [1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0]})


def test_every_number_of_the_report_on_a_fit():
    """Rates above and below those of the tables, which must not cancel; a joint model states its last misfit."""
    frame = irregular()
    tables = ContingencyTables.from_records(frame, "y")
    model = NaiveBayesClassifier(smoothing=1.0).fit(tables)
    off = []
    for name in "ab":
        k = frame[name].nunique()
        for _, part in frame.groupby(name):
            ones, zeros = (part["y"].sum() + 1) / (7 + k), ((1 - part["y"]).sum() + 1) / (4 + k)
            odds = ones / zeros * 7 / 4
            off.append(odds / (1 + odds) * len(part) - part["y"].sum())
    error = sum(map(abs, off)) / 22
    assert abs(sum(off)) / 22 < 0.5 * error
    assert report.reproduction(model, tables) == (
        f"it uses the tables of single features (2; pairs are not used) and misses the label's rate there by {error:.2g} on average"
    )
    joint = SimpleNamespace(misfit_=np.array([[0.5, 0.1], [0.0234, 0.2]]))
    assert report.reproduction(joint, tables) == (
        "its own samples differ from the tables' counts by 2.3 % (sum of |differences| over sum of counts)"
    )


@pytest.mark.parametrize(("below", "few"), [(1, 0), (2, 3), (3, 5), (4, 8), (10, 11)])
def test_small_cells_are_counted_over_all_tables(below, few):
    """Counts 5, 3, 3 of one feature, 8, 3 of the other, and 4, 1, 2, 1, 2, 1 of both."""
    tables = ContingencyTables.from_records(irregular(), "y")
    assert report.smallest_cells(tables, below) == (3 + 2 + 6, 1.0, few)
