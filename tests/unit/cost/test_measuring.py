"""What releases are worth on records whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from agglearn.cost import measuring
from agglearn.cost.measuring import OVERLAP, RECORDS, measure_cost, summarise
from agglearn.encoding import FeatureMap, FrameEncoder, Schema
from agglearn.errors import ConfigError, DataError, RecordsLeftOut
from agglearn.evaluation import normalized_log_likelihood
from agglearn.labelsums import WALRClassifier
from agglearn.observations import LabelSums


def records(n=3000, slope=1.0):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("uvw"), n), "b": rng.choice(list("xy"), n), "who": np.arange(n) // 3})
    z = slope * ((frame.a == "u") - 1.0 * (frame.b == "x"))
    return frame.assign(y=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int))


def test_scores_of_every_release_at_every_budget():
    scores = measure_cost(records().drop(columns="who"), "y", epsilons=[0.05, 100.0], splits=2)
    assert list(scores) == ["release", "epsilon", "split", "nllh", "auc"]
    assert len(scores) == 2 * (4 * 3 + 1)
    assert (scores[scores.release == RECORDS].epsilon == np.inf).all()
    mean = scores.groupby(["release", "epsilon"]).nllh.mean().unstack()
    released = mean.drop(RECORDS)
    assert (released[0.05] < released[100.0]).all()
    assert (abs(released[100.0] - released[np.inf]) < 0.005).all()
    assert (abs(released[np.inf] - mean.loc[RECORDS, np.inf]) < 0.01).all()


@pytest.fixture
def trained(monkeypatch) -> list:
    """The training records of each split."""
    seen, observe = [], measuring._observe
    monkeypatch.setattr(measuring, "_observe", lambda part, *more: seen.append(part) or observe(part, *more))
    return seen


def test_models_learn_from_four_fifths_and_are_judged_by_the_others(trained):
    frame = records().drop(columns="who").assign(number=np.arange(3000))
    scores = measure_cost(frame, "y", epsilons=[], splits=2).groupby("release", sort=False).nllh
    x = frame.drop(columns="y")
    for split, training in enumerate(trained):
        learned = np.isin(frame.number, training.frame.number)
        assert learned.mean() == pytest.approx(1 / (1 + OVERLAP), abs=0.03)
        mapped = FeatureMap.fit("onehot", FrameEncoder.fit(x), x)
        sums = LabelSums.from_map(mapped, x[learned].reset_index(drop=True), frame.y[learned].to_numpy())
        p = WALRClassifier(l2="moments", tol=1e-2, max_iter=200).fit(sums).predict_proba(x[~learned])[:, 1]
        truth = normalized_log_likelihood(frame.y[~learned], p)
        assert scores.get_group("label sums, label protected").iloc[split] == pytest.approx(truth)


def test_all_records_of_a_unit_are_on_one_side_and_protected_together(trained, monkeypatch):
    kept, release = [], LabelSums.private
    monkeypatch.setattr(LabelSums, "private", lambda sums, *a, **k: kept.append(release(sums, *a, **k)) or kept[-1])
    frame = records().assign(number=np.arange(3000))
    with pytest.warns(RecordsLeftOut, match="1,000 of 3,000 records are left out, beyond 2 of each"):
        scores = measure_cost(frame, "y", epsilons=[1.0], splits=2, unit="who", max_rows=2)
    assert set(scores.release) == {
        "single tables, unit protected", "tables of pairs, unit protected", "tables of pairs, label protected",
        "label sums, label protected", RECORDS,
    }  # fmt: skip
    for training in trained:
        counts = np.bincount(training.frame.number // 3, minlength=1000)
        assert set(counts) == {0, 2}
    single = LabelSums.from_map(kept[0].map, kept[0].frame, np.zeros(len(kept[0].frame)))
    assert kept[0].noise.scale == pytest.approx(
        2 * single.private(1.0, kept[0].noise.delta, draw=lambda m, v, *_: v).noise.scale
    )


def test_a_schema_takes_the_place_of_learned_categories():
    whose, label = "reviewed: true\none_row_per_person: true", "label: {column: y, positive: 1, negative: 0}"
    schema = Schema.parse(f"{whose}\n{label}\nfeatures: {{a: {{values: [u, v]}}}}")
    assert len(measure_cost(records(), schema=schema, epsilons=[1.0], splits=1)) == 4 * 2 + 1


@pytest.mark.parametrize(
    ("change", "options", "error", "said"),
    [
        ({}, {"max_rows": "auto", "unit": "who"}, ConfigError, "max_rows: auto is for tables alone; give a number"),
        ({}, {"unit": "who"}, ConfigError, "max_rows: how many records of each 'who' count"),
        ({"y": 1}, {}, DataError, "label 'y' must have two values"),
        ({}, {"label": "z"}, DataError, "no label column 'z'"),
        ({"y": [1] + [0] * 2999}, {}, DataError, "label 'y': too few records have one of its values"),
    ],
)
def test_wrong_records_are_refused(change, options, error, said):
    with pytest.raises(error, match=said):
        measure_cost(records().assign(**change), **({"label": "y", "epsilons": [1.0], "splits": 2} | options))


def test_means_and_intervals_over_the_splits():
    scores = pd.DataFrame({"release": "r", "epsilon": 1.0, "split": range(4), "nllh": [0.1, 0.2, 0.2, 0.3], "auc": 0.7})
    [row] = summarise(scores).itertuples()
    error = np.std([0.1, 0.2, 0.2, 0.3], ddof=1) * np.sqrt(1 / 4 + OVERLAP)  # Nadeau and Bengio 2003
    assert (row.nllh, row.nllh_error) == pytest.approx((0.2, stats.t.ppf(0.975, 3) * error))
    assert row.auc == pytest.approx(0.7)
