"""`agglearn compress`: what it writes is what the library finds; bad input is one line."""

import numpy as np
import pandas as pd
import pytest

from agglearn.cli import main
from agglearn.observations import ContingencyTables
from agglearn.vocabulary import OptimalQuantizer


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
    found = OptimalQuantizer(12).fit(tables)
    for feature in tables.encoder.features:
        part = written[(written.feature == feature.name) & (written.value != "")]
        assert part["value"].tolist() == feature.labels
        assert part["cluster"].tolist() == found.labels_[feature.name].tolist()
        [unseen] = written[(written.feature == feature.name) & (written.value == "")]["cluster"]
        assert unseen == found.unseen_[feature.name]
    assert written["count"].sum() == 2 * 2000
    assert f"lost: {100 * found.relative_loss_:.3g} %" in said


@pytest.mark.parametrize("method", ["submodular", "distributed", "agglomerative", "divisive", "bucketing", "frequency"])
def test_every_method(at, method):
    more = ["--method", method, "--min-count", "3", "--shrink"]
    assert main(["compress", "t", "--budget", "0.3", *more, "--out", "c.csv"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t", "--budget", "1", "--out", "c.csv"], "budget: 1 clusters are too few for 2 features"),
        (["t", "--budget", "9999", "--out", "c.csv"], "more than the"),
        (["t", "--budget", "2.5", "--out", "c.csv"], "budget: 2.5 is not allowed; it must be a whole number"),
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
