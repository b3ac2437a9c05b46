"""Sums of all records with features of a sample: closed forms, redrawn samples, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from samples import people
from scipy import sparse
from scipy.special import expit

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.labelsums import WALRClassifier
from agglearn.linear.sum_logistic import curvature_at_rate, model_term_variance, penalties, prior_variance
from agglearn.observations import Halves, LabelSums
from agglearn.privacy import draw_seeded

FRAME = people(900)
X, Y = FRAME.drop(columns="y"), FRAME["y"].to_numpy()
MAPPED = FeatureMap.fit("onehot", FrameEncoder.fit(X, "deciles", ["zone"]), X)
NOISY = LabelSums.from_map(MAPPED, X, Y).private(1.0, 1e-5, draw=draw_seeded(0))


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of which the first weighs much, labels, and the coefficients."""
    rng = np.random.default_rng(seed)
    x, theta = rng.uniform(0, 1, (n, 6)), np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    return x, rng.binomial(1, expit(x @ theta - 1.0)), theta


def test_features_of_all_records_are_no_sample():
    kept = NOISY.keep_features(900, 1)
    assert kept.n_records is None
    assert kept.digest == NOISY.digest
    sample = NOISY.keep_features(200, 1)
    assert sample.n_records == 900
    assert sample.frame.merge(X, how="inner").shape[0] >= 200
    assert sample.sums.tolist() == NOISY.sums.tolist()
    assert sample.row_weights.tolist() == [4.5] * 200
    assert (NOISY.keep_features(200, 2).frame != sample.frame).any(axis=None)


@pytest.mark.parametrize("l2", [0.5, "moments"])
def test_rows_that_stand_for_copies_have_the_model_of_all(l2):
    """Each row thrice: with features of one in three the penalty alone differs, by the variance of the model term."""
    three = LabelSums.from_map(MAPPED, pd.concat([X] * 3, ignore_index=True), np.tile(Y, 3))
    sample = LabelSums(MAPPED, X, three.names, three.sums, n_records=2700)
    plain, sampled = (WALRClassifier("newton", l2=l2, noise_aware=False, tol=1e-11).fit(s) for s in (three, sample))
    if l2 == "moments":
        assert sampled.l2_ > plain.l2_  # the sums vary by the sample, too, which is no coefficient
        plain = WALRClassifier("newton", l2=sampled.l2_, noise_aware=False, tol=1e-11).fit(three)
    np.testing.assert_allclose(sampled.coef_, plain.coef_, rtol=0, atol=1e-10)
    assert sampled.held_out_score(sample) == pytest.approx(plain.held_out_score(three))
    assert sample.infeasible_coordinates().tolist() == three.infeasible_coordinates().tolist()


def test_the_stated_variance_is_that_of_redrawn_samples():
    """n times the mean of r·x over 60 of 400 rows. Of 20,000 draws a variance has a standard error of 1 %."""
    x = np.column_stack([np.random.default_rng(0).uniform(0, 1, (400, 3)), np.arange(400) < 80, np.ones(400)])
    sums, rng = np.array([0.0, 0, 0, 0, 120]), np.random.default_rng(1)
    rows = [rng.permutation(400)[:60] for _ in range(20_000)]
    redrawn = np.var([400 * 0.3 * x[r].mean(axis=0) for r in rows], axis=0)
    stated = np.mean([model_term_variance(sparse.csr_array(x[r]), sums, 400) for r in rows[:2000]], axis=0)
    one_more = 400 * 340 / 60 * 0.3**2 * np.max(x, axis=0) ** 2 / 60
    np.testing.assert_allclose((stated - one_more)[:4] * 60 / 59, redrawn[:4], rtol=0.06)


def test_the_penalty_has_the_variance_of_the_model_term():
    sample = NOISY.keep_features(200, 1)
    x, sums = sample.matrix, sample.sums
    noise = np.sqrt(NOISY.noise_scale**2 + model_term_variance(x, sums, 900))
    model = WALRClassifier(l2="moments").fit(sample)
    assert model.l2_ == pytest.approx(1 / (0.6 * prior_variance(x, sums, noise, n=900)))
    expected = penalties(model.l2_, curvature_at_rate(x, sums, 900), noise, True)
    np.testing.assert_allclose(model.penalty_, expected)
    dense, rate = x.toarray(), sums[-1] / 900
    np.testing.assert_allclose(curvature_at_rate(x, sums, 900), 900 * rate * (1 - rate) * dense.var(axis=0), atol=1e-9)


def test_a_value_that_the_sample_lacks_has_no_weight():
    x = np.column_stack([np.arange(1000) < 3, np.arange(1000) % 2])
    y = np.where(np.arange(1000) < 3, 1, np.arange(1000) % 3 == 0).astype(int)
    sums = LabelSums.from_records(x, y)
    rare = LabelSums.from_release(x[500:600], pd.Series(sums.sums, sums.names), noise=None, n_records=1000)
    assert rare.matrix[:, [0]].nnz == 0
    model = WALRClassifier().fit(rare)
    assert abs(model.coef_[0]) < 1e-6
    assert 0.3 < model.predict_proba(x[500:])[:, 1].mean() < 0.37


def test_intervals_have_the_variance_of_the_model_term():
    """Deviations of coefficients over samples, from the middle of the sandwich, with a penalty that is next to nothing."""
    x, y, _ = world(20_000)
    sums = LabelSums.from_records(x, y)
    fits = [WALRClassifier("newton", l2=1e-9).fit(sums.keep_features(2000, s)) for s in range(300)]
    widths = np.mean([np.diff(model.coef_interval_, axis=0)[0] for model in fits], axis=0) / (2 * 1.959964)
    of_labels = np.diff(WALRClassifier("newton", l2=1e-9).fit(sums).coef_interval_, axis=0)[0] / (2 * 1.959964)
    ratio = np.std([model.coef_ for model in fits], axis=0) / np.sqrt(widths**2 - of_labels**2)
    assert abs(np.log(ratio)).max() < 0.25  # five standard errors of a deviation from 300


SUMS = LabelSums.from_map(MAPPED, X, Y)
SAMPLE = SUMS.keep_features(50, 0)
RELEASED = pd.Series(SUMS.sums[:3], ["a", "b", "intercept"])
NUMBERS = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})


def from_release(rows=2, n=9, **how) -> LabelSums:
    return LabelSums.from_release(NUMBERS[:rows], RELEASED, noise=None, n_records=n, **how)


def without_intercept() -> LabelSums:
    return LabelSums.from_release(NUMBERS, RELEASED[:2], noise=None, n_records=9, intercept=False)


WRONG = [
    (lambda: SAMPLE.private(1.0, 1e-5), "^sensitivity: needs the features of all records that the sums count; release"),
    (lambda: SAMPLE.sensitivity(of="features"), r"release the sums \(private\) before `keep_features`$"),
    (lambda: SAMPLE.keep_features(20), "^keep_features: the features are those of a sample already$"),
    (lambda: SUMS.keep_features(1), "^keep_features: must be from 2 to the 900 rows, got 1$"),
    (lambda: SUMS.keep_features(901), "^keep_features: must be from 2 to the 900 rows, got 901$"),
    (lambda: from_release(n=1), "^n_records: 1 records for 2 rows with features; give 2 rows or more of all"),
    (lambda: from_release(rows=1), "^n_records: 9 records for 1 rows with features; "),
    (lambda: from_release(weights=np.ones(2)), "^weights: are those of a sample's rows alone; "),
    (lambda: WALRClassifier().fit(without_intercept()), "^intercept: features of a sample need sums with an intercept"),
    (lambda: Halves(SAMPLE, SAMPLE), "^halves: with features of a sample; give features of all records$"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_what_a_sample_does_not_go_with(call, said):
    with pytest.raises((ConfigError, DataError), match=said):
        call()
