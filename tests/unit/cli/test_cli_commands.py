"""The command line: the way from records to predictions."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_calls import run, state
from samples import PEOPLE_SCHEMA, ROOT, people

from agglearn import __version__
from agglearn.cli import aggregate
from agglearn.cli.fit import FACTORS, parameters
from agglearn.estimator import Estimator
from agglearn.evaluation import normalized_log_likelihood
from agglearn.labelsums import AggregateSearch, TablesAndSampleClassifier
from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.penalty import moment_penalty
from agglearn.observations import ContingencyTables, TablesAndSample

QUICK = ["--set", "n_chains=200", "--set", "max_iter=20"]


def test_help_is_at_once_and_explains():
    code = "import sys; from agglearn.cli import parser; parser(); print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "[]"
    said = subprocess.check_output([sys.executable, "-m", "agglearn", "--version"], env=environment, text=True)
    assert said.strip() == f"agglearn {__version__}"


def test_values_of_fit_are_read_as_those_of_a_configuration():
    given = ["clip=inf", "step_mu=null", "step_theta=1e-3", "clip_ratio=false", "l2_theta=moments"]
    assert parameters(MaxEntClassifier, "maxent", given, 7) == {
        "clip": np.inf, "step_mu": None, "step_theta": 1e-3, "clip_ratio": False, "l2_theta": "moments", "random_state": 7,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["aggregate", "cost", "private", "fit", "predict"])
def test_every_help_has_an_example(capsys, command):
    assert run(command, "--help") == 0
    said = capsys.readouterr().out
    for word in ("example:", f"agglearn {command} ", "reads ", "writes ", "--force"):
        assert word in said


@pytest.mark.parametrize("method", ["maxent", "naive_bayes", "best_pair"])
def test_from_records_to_predictions(at, capsys, method):
    more = QUICK if method == "maxent" else []
    assert run("fit", "tables", "--method", method, "--seed", "3", "--out", "m", *more) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"m: {method} on 4 features and 10 tables of 300 records")
    assert {"maxent": "differ", "naive_bayes": "tables of single features (4;", "best_pair": "×"}[method] in said[1]
    assert run("predict", "m", "data.csv", "--out", "p.csv") == 0
    assert capsys.readouterr().err == ""
    written = pd.read_csv("p.csv")
    assert list(written) == ["probability"]
    frame = pd.read_csv("data.csv", na_values="?")
    expected = Estimator.load("m").predict_proba(frame)[:, 1]
    np.testing.assert_allclose(written.probability, expected, rtol=1e-8)
    assert expected.std() > 0.05
    assert run("fit", "tables", "--method", method, "--seed", "3", "--out", "again", *more) == 0
    np.testing.assert_array_equal(Estimator.load("again").predict_proba(frame)[:, 1], expected)


@pytest.mark.slow
def test_held_out_tables_choose_the_penalty(at, capsys):
    assert run("fit", "tables", "--tune", "--seed", "3", "--out", "m", *QUICK) == 0
    assert ", by held-out tables" in capsys.readouterr().out
    tables, model = ContingencyTables.load("tables"), Estimator.load("m")
    single, pair = moment_penalty(tables)
    strengths = [(single * factor, pair * factor) for factor in FACTORS]
    base = MaxEntClassifier(200, max_iter=20, random_state=3)
    search = AggregateSearch(base, values=strengths, random_state=3).fit(tables)
    assert model.l2_theta_ == search.value_
    frame = pd.read_csv("data.csv", na_values="?")
    np.testing.assert_array_equal(model.predict_proba(frame), search.predict_proba(frame))
    for more, said in (
        (["--method", "naive_bayes"], "no strength to choose"),
        (["--set", "l2_theta=3"], "give one of them"),
    ):
        assert run("fit", "tables", "--tune", *more, "--out", "n") == 2
        assert said in capsys.readouterr().err


def test_a_sample_corrects_the_model_of_the_tables(at, capsys):
    pd.read_csv("data.csv", dtype=str)[:120].to_csv("few.csv", index=False)
    assert run("fit", "tables", "--sample", "few.csv", "--seed", "3", "--out", "m", *QUICK) == 0
    assert "with the sample of 120 records the tables count" in capsys.readouterr().out
    tables, model = ContingencyTables.load("tables"), Estimator.load("m")
    few = TablesAndSample.from_records(tables, pd.read_csv("few.csv", dtype=str, na_values="?"), positive="yes")
    again = TablesAndSampleClassifier(model.base, random_state=3).fit(few)
    np.testing.assert_allclose(model.weights_, again.weights_)
    assert run("predict", "m", "data.csv", "--out", "p.csv") == 0
    raw = pd.read_csv("data.csv", dtype=str, na_values="?")
    np.testing.assert_allclose(pd.read_csv("p.csv")["probability"], again.predict_proba(raw)[:, 1], rtol=1e-8)


def test_samples_that_cannot_be_used_are_refused_in_one_line(at, capsys):
    frame = pd.read_csv("data.csv", dtype=str)
    frame.drop(columns="y").to_csv("unlabelled.csv", index=False)
    frame.drop(columns="age").to_csv("no_age.csv", index=False)
    frame[frame["y"] == "yes"].to_csv("alike.csv", index=False)
    frame.assign(age="old").to_csv("old.csv", index=False)
    for options, status, said in (
        (["--sample", "absent.csv"], 1, "absent.csv"),
        (["--sample", "unlabelled.csv"], 1, "'y'"),
        (["--sample", "no_age.csv"], 1, "'age'"),
        (["--sample", "alike.csv"], 1, "must have two values, it has 1"),
        (["--sample", "old.csv"], 1, "'old'"),
        (["--sample", "data.csv", "--positive", "perhaps"], 1, "has no value perhaps"),
        (["--sample", "data.csv", "--tune"], 2, "leave one of them out"),
        (["--positive", "yes"], 2, "--positive: is of the label of --sample"),
    ):
        assert run("fit", "tables", *options, "--out", "n", *QUICK) == status
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert said in line
        assert not Path("n").exists()


def test_aggregate_is_what_the_library_does(at, capsys):
    tables = ContingencyTables.load("tables")
    frame = pd.read_csv("data.csv", na_values="?")
    same = ContingencyTables.from_records(frame, "y", categorical=["zone"], positive="yes")
    assert tables.digest == same.digest
    frame.to_parquet("data.parquet", row_group_size=50)
    how = ["--label", "y", "--positive", "yes", "--categorical", "zone"]
    assert run("aggregate", "data.parquet", *how, "--out", "streamed") == 0
    assert ContingencyTables.load("streamed").digest == same.digest
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5
    assert said[0].startswith("streamed: 300 records, ")
    assert "age (10 bins), job (3 categories), home (2 categories and missing), zone (3 categories)" in said[1]
    assert said[2] == "taken for numbers, in bins: age"
    assert said[3].startswith("10 tables, ")
    assert "smallest cell" in said[4]


@pytest.mark.parametrize("mechanism", ["gaussian", "discrete_laplace"])
def test_private_tables(at, capsys, mechanism):
    delta = ["--delta", "1e-6"] if mechanism == "gaussian" else []
    how = ["--epsilon", "2", *delta, "--mechanism", mechanism, "--split", "cells", "--post", "project"]
    assert run("private", "declared", *how, "--out", "noisy") == 0
    said = capsys.readouterr().out.splitlines()
    assert "at most 7.39 times as likely with any one record as without it (epsilon 2)" in said[1]
    noisy, exact = ContingencyTables.load("noisy"), ContingencyTables.load("declared")
    assert noisy.noise.private
    assert (noisy.noise.mechanism, noisy.noise.epsilon) == (mechanism, 2.0)
    assert (noisy.dense(0, 1)[0] != exact.dense(0, 1)[0]).all()
    assert run("fit", "noisy", *QUICK, "--out", "from_noisy") == 0
    assert run("predict", "from_noisy", "data.csv", "--out", "p.csv") == 0


def test_fit_accounts_for_noise_or_refuses(at, capsys):
    assert run("private", "declared", "--epsilon", "1", "--delta", "1e-6", "--out", "noisy") == 0
    for method in ("naive_bayes", "best_pair"):
        before = state(at)
        assert run("fit", "noisy", "--method", method, "--out", "m") == 2
        assert "treats noisy tables as exact; use maxent" in capsys.readouterr().err
        assert state(at) == before
        assert run("fit", "noisy", "--method", method, "--ignore-noise", "--out", method) == 0
        said = capsys.readouterr()
        assert "agglearn: warning: " in said.err
        assert "takes noisy ContingencyTables" in said.err
        assert len(said.err.splitlines()) == 1
    assert run("fit", "noisy", *QUICK, "--out", "aware") == 0
    said = capsys.readouterr()
    assert said.out.startswith("aware: maxent, noise-aware, on 4 features")
    assert said.err == ""
    assert type(Estimator.load("aware")).__name__ == "NoiseAwareMaxEntClassifier"
    assert run("fit", "noisy", *QUICK, "--ignore-noise", "--out", "plain") == 0
    assert type(Estimator.load("plain")).__name__ == "MaxEntClassifier"
    assert run("fit", "declared", *QUICK, "--ignore-noise", "--out", "m") == 2
    assert "have no noise" in capsys.readouterr().err


@pytest.mark.slow
def test_the_private_route_ends_above_the_base_rate(at):
    """aggregate, private, fit as documented: plain training learns the noise by heart, and is far below the base rate."""
    people(3000, seed=3).to_csv("many.csv", index=False)
    frame, found = people(4000, seed=4), {}
    Path("many.yaml").write_text(PEOPLE_SCHEMA)
    assert run("aggregate", "many.csv", "--schema", "many.yaml", "--out", "t") == 0
    assert run("private", "t", "--epsilon", "0.15", "--delta", "1e-6", "--out", "noisy") == 0
    for out, more in (("aware", []), ("plain", ["--ignore-noise", "--set", "l2_theta=16"])):
        how = ["--set", "n_chains=2000", "--set", "max_iter=200", *more]
        assert run("fit", "noisy", *how, "--out", out) == 0
        found[out] = normalized_log_likelihood(frame.y, Estimator.load(out).predict_proba(frame)[:, 1])
    # The noise is secret, hence another one in each run of the test. In 40 runs these were -.002 to .07, and -2.4 to -.57.
    assert found["aware"] > -0.05
    assert found["plain"] < -0.1


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ([], 2, "--epsilon"),
        (["--epsilon", "0", "--delta", "1e-6"], 2, "epsilon: must be a number above 0"),
        (["--epsilon", "1"], 2, "needs a delta"),
        (["--epsilon", "1", "--delta", "1"], 2, "needs a delta"),
        (["--epsilon", "1", "--delta", ".9"], 2, "not below one over the number of records"),
        (["--epsilon", "1e9", "--delta", "1e-6"], 2, "--allow-large-epsilon"),
        (["--epsilon", "1", "--delta", "1e-6", "--mechanism", "laplace"], 2, "leave delta out"),
        (["--epsilon", "1", "--mechanism", "noise"], 2, "not known"),
        (["--epsilon", "1", "--delta", "1e-6", "--out", "declared", "--force"], 2, "is the folder to be read"),
    ],
)
def test_no_private_tables(at, capsys, how, status, said):
    before = state(at)
    assert run("private", "declared", *(how if "--out" in how else [*how, "--out", "noisy"])) == status
    assert said in capsys.readouterr().err
    assert state(at) == before


def test_noise_is_not_added_twice(at, capsys):
    how = ["--epsilon", "1", "--mechanism", "laplace"]
    assert run("private", "declared", *how, "--out", "noisy") == 0
    assert run("private", "noisy", *how, "--out", "noisier") == 1
    assert "already" in capsys.readouterr().err


def test_features_and_pairs(at):
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--binning", "width"]
    assert (
        run(
            "aggregate",
            "data.csv",
            *how,
            "--features",
            "age,job",
            "--features",
            "home",
            "--pairs",
            "age:job",
            "--out",
            "t",
        )
        == 0
    )
    tables = ContingencyTables.load("t")
    assert tables.names == ["age", "job", "home"]
    assert tables.pairs == [(0, 1)]
    assert run("aggregate", "data.csv", *how, "--pairs", "none", "--out", "u") == 0
    assert ContingencyTables.load("u").pairs == []


def test_names_with_commas_and_colons(at):
    Path("odd.csv").write_text('"a,b",c:d,e,y\n1,u,p,0\n2,v,q,1\n')
    how = ["--label", "y", "--features", '"a,b",c:d', "--pairs", '"a,b:c:d"']
    assert run("aggregate", "odd.csv", *how, "--out", "t") == 0
    assert ContingencyTables.load("t").pairs == [(0, 1)]
    assert ContingencyTables.load("t").names == ["a,b", "c:d"]


@pytest.mark.parametrize("separator", [";", "tab", "|"])
def test_separators_and_byte_order_marks(at, separator):
    sign = "\t" if separator == "tab" else separator
    text = Path("data.csv").read_text().replace(",", sign)
    Path("other.csv").write_text(text, encoding="utf-8-sig")
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
    assert run("aggregate", "other.csv", "--separator", separator, *how, "--out", "t") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest
    assert run("fit", "t", "--method", "naive_bayes", "--out", "m") == 0
    assert run("predict", "m", "other.csv", "--out", "p.csv") == 0  # the separator is remembered
    assert run("predict", "model", "data.csv", "--out", "q.csv") == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_predictions_to_standard_output(at, capsys):
    assert run("predict", "model", "data.csv") == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "probability"
    assert len(lines) == 301
    assert all(0 < float(x) < 1 for x in lines[1:])
    assert said.err.splitlines()[0].startswith("standard output: 300 rows")
    assert "every value was seen" in said.err


def test_unseen_values_are_reported_and_add_nothing(at, capsys):
    Path("new.csv").write_text("zone,home,job,age\n11,own,cook,30\n11,own,pilot,30\n99,?,,30\n")
    assert run("predict", "model", "new.csv") == 0
    said = capsys.readouterr()
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
    assert run("aggregate", "codes.csv", "--label", "y", "--out", "t") == 0
    assert ContingencyTables.load("t").encoder.features[0].values == ("01", "1", "3", "A")
    assert run("fit", "t", "--method", "naive_bayes", "--out", "m") == 0
    Path("new.csv").write_text("c\n01\n3\n")
    assert run("predict", "m", "new.csv", "--out", "p.csv") == 0
    p = pd.read_csv("p.csv").probability
    assert p[0] < 0.5 < p[1]


def test_force_replaces_only_its_own_kind(at, capsys):
    before = state(at / "tables")
    how = ["aggregate", "data.csv", "--label", "y", "--positive", "yes", "--pairs", "none"]
    assert run(*how, "--out", "tables") == 2
    assert state(at / "tables") == before
    assert run(*how, "--out", "tables", "--force") == 0
    assert ContingencyTables.load("tables").pairs == []
    for out in (".", "model"):
        kept = state(at)
        assert run(*how, "--out", out, "--force") == 2
        assert "holds something else" in capsys.readouterr().err
        assert state(at) == kept
    (at / "empty").mkdir()
    assert run(*how, "--out", "empty") == 0
    assert run("predict", "model", "data.csv", "--out", "p.csv") == 0
    assert run("predict", "model", "data.csv", "--out", "p.csv") == 2
    assert run("predict", "model", "data.csv", "--out", "p.csv", "--force") == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "lines", "said"),
    [("predict model data.csv", 1, "probability\n"), ("--completion", 0, ""), ("--help", 0, "")],
)
def test_a_reader_that_has_had_enough(at, call, lines, said):
    command = f"{sys.executable} -m agglearn {call} | head -n {lines}; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, said)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_compressed_files(at):
    pd.read_csv("data.csv").to_csv("data.csv.gz", index=False)
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
    assert run("aggregate", "data.csv.gz", *how, "--out", "t") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest
    Path("bad.csv.gz").write_text("a,y\n")
    assert run("aggregate", "bad.csv.gz", "--label", "y", "--out", "u") == 1


# -- columns of codes, and of many values -----------------------------------------------------------------------------


def codes(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {f"C{i}": rng.integers(0, 40 * i, n) for i in range(1, 15)}
    columns |= {"price": rng.random(n), "account": 7 * np.arange(n), "store_id": rng.integers(0, 3, n)}
    columns |= {"hash": rng.integers(1 << 60, 1 << 62, n), "zone": [f"0{k}" for k in rng.integers(1, 9, n)]}
    return pd.DataFrame(columns | {"y": rng.integers(0, 2, n)})


def test_columns_taken_for_numbers_are_named(at, capsys):
    codes().to_csv("codes.csv", index=False)
    assert run("aggregate", "codes.csv", "--label", "y", "--pairs", "none", "--out", "t") == 0
    told = capsys.readouterr()
    names = [*(f"C{i}" for i in range(1, 15)), "price", "account", "store_id", "hash", "zone"]
    assert f"taken for numbers, in bins: {', '.join(names)}\n" in told.out
    [line] = told.err.splitlines()
    assert line.startswith("agglearn: warning: columns were taken for numbers and binned")
    assert (
        "'account' (its whole numbers hardly ever repeat), 'store_id' (its name is that of a code), 'hash' (it has"
        in line
    )
    assert "above 2^53" in line
    assert "'zone' (some of its numbers begin with zeros); if" in line
    assert "--categorical" in line


@pytest.mark.parametrize("size", [["--budget", "10"], ["--budgets", "10,15,20"]])
def test_a_command_tells_a_warning_once(at, capsys, size):
    codes().to_csv("codes.csv", index=False)
    assert run("aggregate", "codes.csv", "--label", "y", "--features", "C1,C2", "--pairs", "none", "--out", "t") == 0
    for _ in range(2):  # and the next command tells it again
        capsys.readouterr()
        assert run("compress", "t", *size, "--out", "clusters.csv", "--force") == 0
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("agglearn: warning: features were taken for numbers")


@pytest.mark.parametrize("file", ["codes.csv", "codes.parquet"])
def test_patterns_and_hashing_of_all_large_columns(at, capsys, file):
    frame = codes()
    frame.to_csv("codes.csv", index=False)
    frame.to_parquet("codes.parquet")
    how = ["--label", "y", "--pairs", "none", "--features", "C*,price", "--categorical", "C*"]
    assert run("aggregate", file, *how, "--hash-above", "200:50", "--out", "t") == 0
    many = [f"C{i}" for i in range(1, 15) if frame[f"C{i}"].nunique() > 200]
    assert 0 < len(many) < 14
    assert f"hashed: {', '.join(many)}\n" in capsys.readouterr().out
    each = [part for name in many for part in ("--hash", f"{name}:50")]
    assert run("aggregate", file, *how, *each, "--out", "u") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("u").digest
    assert run("aggregate", file, *how, "--hash", "C1?:50", "--out", "v") == 0
    assert ContingencyTables.load("v").encoder.sizes.tolist()[9:14] == [50] * 5
    assert run("aggregate", file, "--label", "y", "--pairs", "none", "--features", "*", "--out", "w") == 0
    assert "y" not in ContingencyTables.load("w").names
    capsys.readouterr()
    for wrong, words in {"--hash=C*:none": "--hash: 'C*:none' is not COLUMN:BUCKETS, as C*:1000", "--hash=D*:5": "no column 'D*'",
                         "--hash=C1": "--hash: 'C1' is not COLUMN:BUCKETS, as C1:1000",
                         f"--hash=C1:{'9' * 5000}": "is not COLUMN:BUCKETS", f"--hash-above={'9' * 5000}:5": "VALUES:BUCKETS",
                         "--hash-above=1000": "'1000' is not VALUES:BUCKETS", "--categorical=D*": "no column 'D*'"}.items():  # fmt: skip
        assert run("aggregate", file, "--label", "y", wrong, "--out", "x") == (1 if "D*" in wrong else 2)
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_long_count_is_announced_and_a_large_one_is_refused(at, capsys, monkeypatch):
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (5, 3000))).add_prefix("f").assign(y=[0, 1, 0, 1, 1])
    wide.to_csv("wide.csv", index=False)
    assert run("aggregate", "wide.csv", "--label", "y", "--memory", "0.5", "--out", "t") == 1
    told = capsys.readouterr()
    assert "4,501,500 tables take about" in told.err
    assert "more than the 500 MB that are allowed; use fewer features" in told.err
    assert not Path("t").exists()
    monkeypatch.setattr(aggregate, "LONG", 0)
    how = ["--label", "y", "--positive", "yes", "--missing", "?"]
    assert run("aggregate", "data.csv", *how, "--memory", "1", "--out", "t") == 0
    assert capsys.readouterr().out.startswith("t: 10 tables take about")
    assert run("aggregate", "data.csv", *how, "--memory", "1e-6", "--out", "u") == 1


def test_tuning_tries_a_tenth_to_ten_times_the_strength_that_moments_suggest(at, monkeypatch):
    tried, init = [], AggregateSearch.__init__

    @functools.wraps(init)  # the signature is that of the class, which is kept for later tests
    def spied(self, base, **settings):
        tried.extend(settings["values"])
        init(self, base, **settings)

    monkeypatch.setattr(AggregateSearch, "__init__", spied)
    assert run("fit", "tables", "--tune", "--out", "m", *QUICK) == 0
    np.testing.assert_allclose(
        np.array(tried[:5]) / moment_penalty(ContingencyTables.load("tables")), np.transpose([[0.1, 0.3, 1, 3, 10]] * 2)
    )
