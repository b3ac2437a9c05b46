"""Each example runs alone, draws a picture, and leaves results that are true."""

import importlib.util
import runpy
import shutil
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from forks import workflow_server
from samples import ROOT

EXAMPLES = {path.stem.removeprefix("plot_"): path for path in sorted((ROOT / "examples").glob("*.py"))}
SLOW = {"bags", "ladder", "own_method", "owner_decides", "spark"}
LACKING = importlib.util.find_spec("pyspark") is None or shutil.which("java") is None


def bags(left):
    """Counts teach as much as labels, and exact likelihood more than means."""
    accuracy = left["accuracy"]
    assert accuracy["cardinality, counts"] > 0.97
    assert accuracy["mean embedding, counts"] < accuracy["cardinality, counts"] < accuracy["all labels"] + 0.02
    assert left["posterior"].sum() == pytest.approx(left["bags"].counts[left["bag"], 1])


def birds(left):
    """The parameters of the birds."""
    assert left["model"].theta_ == pytest.approx(left["birds"].theta, rel=0.1)
    assert left["error"] < 0.15


def county_votes(left):
    """Learned shares are near the truth, averages of counties are not."""
    assert left["errors"]["learned from totals"] < 0.02
    assert left["errors"]["average of the county"] > 0.05


def distribution(left):
    """Embeddings of second order tell the entropy, means tell nothing."""
    scores = left["scores"]
    assert abs(scores["mean"]) < 0.1
    assert min(scores["random Fourier features"], scores["mean and covariance"]) > 0.8


def election(left):
    """Few voters are in a wrong cell, and the truth is inside most intervals and all bounds."""
    true, model = left["true"], left["model"]
    assert 50 * abs(model.tables_[0] - true).sum() / true.sum() < 3
    assert ((model.low_[0] <= true) & (true <= model.high_[0])).mean() >= 8 / 9
    assert ((model.minimum_[0] <= true) & (true <= model.maximum_[0])).all()


def label_sum(left):
    """The coefficients of one exact sum are those of all labels; noise moves them the more the smaller the budget."""
    away = left["coefficients"].sub(left["coefficients"]["all labels"], axis=0).abs().max()
    assert away["one sum"] < 1e-5 < away["one sum, ε = 3"] < away["one sum, ε = 0.3"]


def ladder(left):
    """More budget is worth more; pairs and sums are worth more than single features."""
    scores, records = left["scores"], left["records"]
    for values in scores.values():
        assert values[0] < values[2] <= values[-1] + 0.01
    assert scores["tables of single features"][-1] < scores["tables of pairs"][-1]
    assert [scores[name][-1] for name in ("tables of pairs", "label sums")] == pytest.approx([records] * 2, abs=0.01)


def learn_from_tables(left):
    """The AUC that the README states."""
    assert left["auc_tables"] == pytest.approx(0.990, abs=5e-4)
    assert left["auc_records"] == pytest.approx(0.986, abs=5e-4)


def million_values(left):
    """No method loses less than the optimum, more clusters lose less, and the paper's method is near the optimum."""
    lost = left["lost"]
    assert left["counts"].sum() == left["n_records"]
    for losses in lost.values():
        assert losses == sorted(losses, reverse=True)
        assert all(loss >= best - 1e-12 for loss, best in zip(losses, lost["optimum"], strict=True))
    assert lost["submodular"][3] < min(2 * lost["optimum"][3], 0.02)


def own_method(left):
    """The workflow has run the method of one's own beside the others, which use more features and are better."""
    assert left["finished"].returncode == 0, left["finished"].stderr
    table = left["table"].query("measure == 'auc'").set_index(["dataset", "method"])["mean"].unstack()
    assert list(table.index) == ["breast_cancer", "fair"]
    assert (table["one_feature"] > 0.6).all()
    assert (table["maxent"] > table["one_feature"]).all()


def clean_room(left):
    """Where many cells are hidden, a model that knows of it learns more, and nearly as much as from all cells."""
    unknown, zeros = left["scores"].values()
    assert unknown[-1] > zeros[-1] + 0.005
    assert min(unknown) > left["everything"] - 0.01


def owner_decides(left):
    """More budget is worth more to both, and the release is what the twin foretold."""
    cost = left["cost"].set_index(["release", "epsilon"])["nllh"]
    assert cost["tables of pairs, record protected", 0.3] < cost["tables of pairs, record protected", 3.0]
    assert list(left["guesses"].values()) == sorted(left["guesses"].values())
    assert left["released"] == pytest.approx(left["foretold"].nllh, abs=0.03)


def spark(left):
    """Spark's tables are those of one machine."""
    assert left["tables"].digest == left["local"].digest
    assert left["tables"].total == left["counts"].sum() == 20_000


def state_flows(left):
    """What is learned over the weeks is nearer to the small flows than what was published."""
    errors = left["errors"]
    assert errors["learned"] < errors["negative ones set to zero"] / 2 < errors["as published"] / 2


def three_features(left):
    """Section 4.2 of the paper: .9 and .1 in the place of .75 and .25."""
    assert left["from_pairs"] == pytest.approx([0.1, 0.9, 0.9, 0.1], abs=0.01)
    assert left["from_cross"] == pytest.approx(left["truth"], abs=0.001)


def test_every_example_is_checked():
    assert EXAMPLES.keys() <= globals().keys()
    assert all(path.name.startswith("plot_") for path in EXAMPLES.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXAMPLES])
def test_example(name, tmp_path, monkeypatch):
    if name == "spark" and LACKING:
        pytest.skip("PySpark is not installed (`make spark` installs it), or there is no Java")
    monkeypatch.chdir(tmp_path)  # nothing depends on where it runs
    monkeypatch.setattr(plt, "show", lambda: None)
    if name == "own_method":  # whose workflow runs in forks, which find libraries imported
        monkeypatch.setattr(sys, "executable", str(workflow_server().program))
    plt.switch_backend("agg")
    plt.close("all")
    left = runpy.run_path(str(EXAMPLES[name]), run_name="__main__")
    [number] = plt.get_fignums()
    plt.figure(number).savefig(Path("picture.png"))
    plt.close("all")
    globals()[name](left)
