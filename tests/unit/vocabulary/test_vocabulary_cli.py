"""`agglearn compress`: what it writes is what the library finds; bad input is one line."""

import numpy as np
import pandas as pd
import pytest

from agglearn.cli import main
from agglearn.observations import ContingencyTables, with_gaussian_noise
from agglearn.vocabulary import OptimalQuantizer, held_out_information

DEFAULTS = {"min_count": 10, "shrinkage": "beta_binomial"}


@pytest.fixture
def at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    page = rng.zipf(1.5, 2000).clip(max=100)
    y = (rng.random(2000) < np.random.default_rng(1).beta(1, 2, 101)[page]).astype(int)
    pd.DataFrame({"page": page, "job": rng.choice(list("abcd"), 2000), "y": y}).to_csv("d.csv", index=False)
    assert main(["aggregate", "d.csv", "--label", "y", "--categorical", "page", "--pairs", "none", "--out", "t"]) == 0
    return tmp_path


def test_clusters_are_the_library_s(at, capsys):
    assert main(["compress", "t", "--budget", "12", "--out", "c.csv"]) == 0
    said = capsys.readouterr().out
    written = pd.read_csv("c.csv", dtype={"value": str}, keep_default_na=False)
    tables = ContingencyTables.load("t")
    found = OptimalQuantizer(12, **DEFAULTS).fit(tables)
    for feature in tables.encoder.features:
        part = written[(written.feature == feature.name) & (written.value != "")]
        assert part["value"].tolist() == feature.labels
        assert part["cluster"].tolist() == found.labels_[feature.name].tolist()
        [unseen] = written[(written.feature == feature.name) & (written.value == "")]["cluster"]
        assert unseen == found.unseen_[feature.name]
    assert written["count"].sum() == 2 * 2000
    held_out = held_out_information(found, tables, 0)
    assert f"held-out information: {held_out:.4g} nats; on the records" in said
    assert f"that made the clusters: {found.information_:.4g}\n" in said
    assert "lost" not in said


@pytest.mark.parametrize("method", ["submodular", "distributed", "agglomerative", "divisive", "bucketing", "frequency"])
def test_every_method(at, method):
    more = ["--method", method, "--min-count", "3", "--shrink"]
    assert main(["compress", "t", "--budget", "0.3", *more, "--out", "c.csv"]) == 0


def test_a_new_file_is_compressed(at, capsys):
    new = pd.DataFrame({"id": ["007", "008", "009"], "job": ["a", "z", "b"], "page": [1, 2, 10**6]})
    new.to_csv("n.csv", index=False)
    assert main(["compress", "t", "--budget", "12", "--apply", "n.csv", "--out", "c.csv"]) == 0
    assert "3 rows of n.csv; values that the tables do not hold: page 1, job 1" in capsys.readouterr().out
    written, found = pd.read_csv("c.csv", dtype=str), OptimalQuantizer(12, **DEFAULTS).fit(ContingencyTables.load("t"))
    assert written.columns.tolist() == ["id", "job", "page"]
    assert written["id"].tolist() == ["007", "008", "009"]
    expected = found.transform(pd.read_csv("n.csv", dtype=str))
    assert written[["page", "job"]].astype(int).to_numpy().tolist() == expected.tolist()


def test_counts_of_noisy_tables_are_possible(at, capsys):
    with_gaussian_noise(ContingencyTables.load("t"), 5.0, 0).save("n")
    assert main(["compress", "n", "--budget", "6", "--out", "c.csv"]) == 0
    assert "(estimated, the tables have noise)" in capsys.readouterr().out
    written = pd.read_csv("c.csv")
    assert (written["count"] >= 0).all()
    assert (written["label_sum"].between(0, written["count"] + 1e-9)).all()


@pytest.mark.parametrize("budget", ["2.5", "1.0", "nan", "many"])
def test_a_budget_is_a_whole_number_or_a_share(at, capsys, budget):
    with pytest.raises(SystemExit):
        main(["compress", "t", "--budget", budget, "--out", "c.csv"])
    assert f"--budget: {budget!r} is " in capsys.readouterr().err
    assert not (at / "c.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t", "--budget", "1", "--out", "c.csv"], "budget: too few clusters, 1 for 2 features"),
        (["t", "--budget", "9999", "--out", "c.csv"], "more than the"),
        (["t", "--budget", "9", "--apply", "none.csv", "--out", "c.csv"], "none.csv"),
        (["none", "--budget", "9", "--out", "c.csv"], "no contingency tables here"),
        (["t", "--budget", "9", "--out", "d.csv"], "d.csv: already there"),
    ],
)
def test_bad_input_is_one_line(at, capsys, arguments, said):
    before = sorted(p.name for p in at.iterdir())
    assert main(["compress", *arguments]) in (1, 2)
    captured = capsys.readouterr()
    assert captured.err.startswith("agglearn: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert sorted(p.name for p in at.iterdir()) == before
