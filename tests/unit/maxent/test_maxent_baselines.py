"""Skyline, naive Bayes and best pair against scikit-learn and exact enumeration."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.estimator import Estimator
from agglearn.linear.sparse_design import Cells
from agglearn.maxent import BestPairClassifier, LogisticSkyline, NaiveBayesClassifier
from agglearn.maxent.best_pair import fit_pair
from agglearn.maxent.naive_bayes import discriminative
from agglearn.observations import ContingencyTables, NoiseSpec, Records, Table


def one_hot(*columns) -> np.ndarray:
    """0/1 design of several columns of codes, one block each."""
    return np.hstack([pd.get_dummies(pd.Series(c)).to_numpy(float) for c in columns])


def peer(design, y, l2):
    """scikit-learn's logistic regression with the same penalty λ‖w‖² (its C is 1/2λ)."""
    return LogisticRegression(C=1 / (2 * l2), tol=1e-10, max_iter=10_000).fit(design, y)


@pytest.mark.parametrize("dense", [0, 1 << 20])
def test_cells_looked_up_or_searched_for(monkeypatch, dense):
    """Numbers are those of the distinct cells in order; of a row that never occurred, or is unseen, the last."""
    monkeypatch.setattr("agglearn.linear.sparse_design.DENSE", dense)
    codes = np.random.default_rng(0).integers((1, 5), (3, 280), size=(200, 2))
    unseen = np.array([[0, 7], [3, 299], [-1, 5], [2, -1]])
    cells = Cells.from_codes(codes, np.array([4, 300]))
    flat = codes[:, 0] * 300 + codes[:, 1]
    expected = [np.unique(column, return_inverse=True)[1] for column in (*codes.T, flat)]
    starts = np.cumsum([0, *(found.max() + 1 for found in expected)])
    assert (cells.index(codes) == np.add(expected, starts[:-1, None])).all()
    assert (cells.index(unseen)[2] == cells.size).all()


@pytest.mark.parametrize("quadratic", [True, False])
def test_skyline_is_scikit_learns_on_the_explicit_design(records, quadratic):
    y, x = records["label"].to_numpy(), records.drop(columns="label")
    seen = Records.from_records(records, "label")
    model = LogisticSkyline(quadratic=quadratic, l2=2.0, max_iter=2000, tol=1e-14).fit(seen)
    columns = [x[c] for c in x]
    if quadratic:
        columns += [x[a] + "|" + x[b] for a, b in (("f0", "f1"), ("f0", "f2"), ("f1", "f2"))]
    other = peer(one_hot(*columns), y, 2.0)
    assert np.allclose(model.coef_, other.coef_[0], atol=1e-4)
    assert np.allclose(model.predict_proba(records), other.predict_proba(one_hot(*columns)), atol=1e-4)


def test_skyline_on_unseen_values_and_cells(records):
    model = LogisticSkyline(l2=1.0).fit(Records.from_records(records, "label"))
    odd = records.head(1).assign(f0="new", f1="new", f2="new")
    assert np.isclose(model.predict_proba(odd)[0, 1], 1 / (1 + np.exp(-model.intercept_)))


@pytest.mark.slow
def test_pcd_naive_bayes_comes_to_the_generative_one(records, tables):
    settings = {"l2_theta": 0.1, "step_theta": 0.3, "step_mu": 0.6, "average": 0.5, "random_state": 0}
    model = NaiveBayesClassifier("pcd", **settings).fit(tables)
    exact = NaiveBayesClassifier(smoothing=0.0).fit(tables)
    assert np.abs(model.predict_proba(records) - exact.predict_proba(records)).mean() < 0.01
    stages = list(model.staged_predict_proba(records))
    assert len(stages) == 200
    assert (stages[-1][2] == model.predict_proba(records)[:, 1]).all()


def test_naive_bayes_by_hand():
    frame = pd.DataFrame({"a": list("uuuvv"), "b": list("xyxyy"), "y": [1, 1, 0, 0, 0]})
    model = NaiveBayesClassifier(smoothing=0.5).fit(ContingencyTables.from_records(frame, "y"))
    rate = lambda ones, of, zeros, all_: np.log((ones + 0.5) / (of + 1)) - np.log((zeros + 0.5) / (all_ + 1))  # noqa: E731
    z = np.log(2 / 3) + rate(2, 2, 1, 3) + rate(1, 2, 2, 3)
    p = model.predict_proba(pd.DataFrame({"a": ["u"], "b": ["y"]}))[0, 1]
    assert p == pytest.approx(1 / (1 + np.exp(-z)))
    unseen = model.predict_proba(pd.DataFrame({"a": ["w"], "b": ["z"]}))[0, 1]
    assert unseen == pytest.approx(0.4)


def test_logistic_naive_bayes_is_one_regression_per_feature(records, tables):
    y, x = records["label"].to_numpy(), records.drop(columns="label")
    model = NaiveBayesClassifier("logistic", l2=3.0).fit(tables)
    base = np.log(y.mean() / (1 - y.mean()))
    expected = base + sum(peer(one_hot(x[c]), y, 3.0).decision_function(one_hot(x[c])) - base for c in x)
    got = model.predict_proba(records)[:, 1]
    assert np.allclose(got, 1 / (1 + np.exp(-expected)), atol=1e-4)
    stages = {model.l2_grid_[step]: p for step, _, p in model.staged_predict_proba(records)}
    at_one = NaiveBayesClassifier("logistic", l2=1.0).fit(tables)
    assert np.allclose(stages[1.0], at_one.predict_proba(records)[:, 1])


def test_naive_bayes_with_labels_that_a_modality_never_has():
    frame = pd.DataFrame({"a": ["p", "p", "q", "q", "r", "r"], "label": [0, 0, 1, 1, 0, 1]})
    tables = ContingencyTables.from_records(frame, "label")
    for kind in ("generative", "logistic"):
        p = NaiveBayesClassifier(kind, smoothing=0.0, l2=0.0).fit(tables).predict_proba(frame)[:, 1]
        assert np.isfinite(p).all()
        assert np.allclose(p, [0, 0, 1, 1, 0.5, 0.5], atol=1e-3)


@pytest.mark.slow
def test_best_pair_is_scikit_learns_on_expanded_records(records, tables):
    y = records["label"].to_numpy()
    model = BestPairClassifier(l2=2.0).fit(tables)
    assert model.pairs_ == [("f0", "f1"), ("f0", "f2"), ("f1", "f2")]
    for step, _, p in model.staged_predict_proba(records):
        a, b = (records[name] for name in model.pairs_[step])
        design = one_hot(a, b, a + "|" + b)
        assert np.allclose(p, peer(design, y, 2.0).predict_proba(design)[:, 1], atol=1e-4)


def test_best_pair_does_not_choose_noise():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, size, 2000) for name, size in (("a", 30), ("b", 30), ("s", 2))})
    frame["label"] = (rng.random(2000) < 0.4 + 0.2 * frame["s"]).astype(int)
    frame["t"] = rng.integers(0, 2, 2000)
    tables = ContingencyTables.from_records(frame.astype(dict.fromkeys("abst", str)), "label")
    model = BestPairClassifier(l2=1.0).fit(tables)
    assert set(model.pairs_[model.best_]) == {"s", "t"}


def test_best_pair_of_tables_that_lost_records(records, tables):
    """Noise or a threshold can leave a table two cells, or none. Then its likelihood is the largest."""
    best = BestPairClassifier().fit(tables)
    chosen = best.pairs_[best.best_]
    for kept in (2, 0):
        few = {key: t.select(np.arange(len(t.counts)) < kept) for key, t in tables.tables.items()}
        one = next(key for key in tables.pairs if tuple(tables.names[i] for i in key) != chosen)
        model = BestPairClassifier().fit(replace(tables, tables={**tables.tables, one: few[one]}))
        assert model.pairs_[model.best_] == chosen
        assert all(np.isfinite(p).all() for _, _, p in model.staged_predict_proba(records))
    with pytest.raises(DataError, match="no table of a pair has a record"):
        BestPairClassifier().fit(replace(tables, tables=few))


def test_best_pair_of_tables_that_noise_gave_records():
    """Noise makes records in empty cells, whose labels are certain. A table gets likelier by each, and learns nothing."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {name: rng.integers(0, size, 2000) for name, size in (("a", 30), ("b", 30), ("s", 2), ("t", 2))}
    )
    frame["label"] = (rng.random(2000) < 0.1 + 0.8 * frame["s"]).astype(int)
    exact = ContingencyTables.from_records(frame, "label", categorical="abst")
    more = Table((30, 30), np.arange(900), exact.dense(0, 1)[0].ravel() + 30, exact.dense(0, 1)[1].ravel())
    noisy = replace(exact, tables={**exact.tables, (0, 1): more}, noise=NoiseSpec("gaussian", 30.0, 1.0, 1e-6))
    for tables in (exact, noisy):
        model = BestPairClassifier().fit(tables)
        assert "s" in model.pairs_[model.best_]


def test_stages_survive_saving_where_they_are_part_of_the_model(records, tmp_path, tables):
    for model in (NaiveBayesClassifier("logistic"), BestPairClassifier()):
        model.fit(tables).save(tmp_path)
        before, after = (list(m.staged_predict_proba(records)) for m in (model, Estimator.load(tmp_path)))
        assert all((a[2] == b[2]).all() for a, b in zip(before, after, strict=True))
        assert np.isfinite(model.predict_proba(records.assign(f1="unseen"))).all()
    with pytest.raises(NotAvailable):
        next(NaiveBayesClassifier().fit(tables).staged_predict_proba(records))


def test_bad_parameters_and_tables(records):
    singles = ContingencyTables.from_records(records, "label", pairs="none")
    with pytest.raises(DataError, match="pairs"):
        BestPairClassifier().fit(singles)
    with pytest.raises(ConfigError, match="kind"):
        NaiveBayesClassifier("bayesian").fit(singles)
    with pytest.raises(ConfigError, match="l2"):
        LogisticSkyline(l2="strong").fit(Records.from_records(records, "label"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_label_in_every_record_leaves_finite_odds(label):
    d = np.array([5.0, 7.0])
    odds = discriminative(d, label * d, 1.0)
    assert np.isfinite(odds).all()
    assert (np.sign(odds) == 2 * label - 1).all()


def test_the_odds_of_a_feature_are_stationary():
    """Σ w = 0 at the optimum, since the intercept is free; so the odds alone give w, and the gradient must be 0."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = np.round(10 ** rng.uniform(0, 5, rng.integers(2, 6)))
        c, l2 = np.floor(d * rng.beta(0.1, 0.1, len(d))), 10 ** rng.uniform(-2, 1)
        if 0 < c.sum() < d.sum():
            odds = discriminative(d, c, l2)
            gradient = d * expit(odds) - c + 2 * l2 * (odds - odds.mean())
            np.testing.assert_allclose(gradient, 0, atol=1e-5 * d.max())


def test_cells_without_a_record_are_left_out_of_a_pair():
    table = Table((2, 2), np.arange(4), np.array([30.0, 0.0, 20.0, 10.0]), np.array([10.0, 0.0, 15.0, 2.0]))
    one, two = (fit_pair(t, 1.0, 100) for t in (table, table.select(table.counts > 0)))
    assert one[1] == pytest.approx(two[1])
