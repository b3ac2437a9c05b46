"""Intervals of penalised learners against closed forms, enumeration, a bootstrap of bags, and wrong input."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from samples import people
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.base import clone

from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.labelsums import WALRClassifier
from agglearn.linear.penalised import FACTORS, UPPER, PenalisedSolution
from agglearn.maxent import (
    ExactMaxEntClassifier,
    ExactNoiseAwareMaxEntClassifier,
    MaxEntClassifier,
    NoiseAwareMaxEntClassifier,
)
from agglearn.maxent.cell_noise import gains
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.intervals import weight_rows
from agglearn.maxent.weight_index import positions
from agglearn.observations import Bags, ContingencyTables, LabelSums, with_gaussian_noise
from agglearn.privacy import draw_seeded
from agglearn.proportions import CardinalityClassifier, group_shares

Z = norm.ppf(0.975)


def records(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    return x, rng.binomial(1, expit(x @ [1.0, -0.5, 0.0] + 0.3))


def solution(**changes) -> PenalisedSolution:
    """Least squares of three coefficients with unit variance of the errors."""
    rng = np.random.default_rng(1)
    gram = (x := rng.normal(size=(50, 3))).T @ x
    zero, one = np.zeros(3), np.ones(3)
    parts = {"theta": one, "slope": gram, "variance": gram, "penalty": zero, "prior": np.inf * one, "scaled": zero > 0}
    return PenalisedSolution(**(parts | changes))


def test_the_covariance_is_that_of_least_squares_and_under_the_penaltys_prior_that_of_the_posterior():
    penalty = np.array([1.0, 2.0, 5.0])
    for one in (solution(), solution(penalty=penalty, prior=1 / penalty)):
        np.testing.assert_allclose(one.covariance(), np.linalg.inv(one.slope + np.diag(one.penalty)), rtol=1e-10)


def test_the_prior_grows_where_coefficients_are_larger_and_never_shrinks():
    penalty, rng = np.full(400, 2.0), np.random.default_rng(0)
    for deviation, expected in ((0.1, 1.0), (5.0, 2 * (25.0 + 0.25))):  # slope 4, variance 4: u/4 has 25 + 1/4
        u = 4 * rng.normal(0, np.sqrt(deviation**2 + 0.25), 400)
        four = 4 * np.eye(400)
        found = PenalisedSolution(u / 6, four, four, penalty, 1 / penalty, penalty > 0).prior_factor()
        assert abs(np.log(found / expected)) < 0.3, (deviation, found)  # 4 standard errors of a variance
        assert found in FACTORS


def test_a_penalty_chosen_from_the_data_takes_a_quantile_of_the_priors_posterior():
    """Three coefficients with slope 4, variance 4 and prior variance ½: u ~ N(0, 4 + 8f), ln f uniform."""
    u, factors = np.array([3.0, -1.0, 8.0]), np.exp(np.linspace(0, np.log(1000), 100_001))
    density = norm.pdf(u[:, None], 0, np.sqrt(4 + 8 * factors)).prod(axis=0)
    quantile = factors[np.searchsorted(density.cumsum() / density.sum(), UPPER)]
    two, four = np.full(3, 2.0), 4 * np.eye(3)
    one = PenalisedSolution(u / 6, four, four, two, 1 / two, two > 0)
    assert one.prior_factor() == FACTORS[np.log(norm.pdf(u, 0, np.sqrt(4 + 8 * FACTORS[:, None]))).sum(axis=1).argmax()]
    assert abs(np.log(replace(one, upper=UPPER).prior_factor() / quantile)) < np.log(FACTORS[1])


def test_learners_say_where_the_data_chose_their_penalty():
    x, y = records(300)
    sums = LabelSums.from_records(x, y, bounds=(-1, 1))
    bags = Bags(x, np.arange(0, 301, 10), y.reshape(-1, 10).sum(axis=1))
    encoder = FrameEncoder([CodedEncoder("a", 2), CodedEncoder("b", 2)])
    tables = ContingencyTables.from_codes(encoder, (x[:, :2] > 0).astype(int), y)
    for learner, aggregates, penalty, by_data in (
        (WALRClassifier, sums, "l2", "moments"),
        (CardinalityClassifier, bags, "l2", "held_out"),
        (partial(MaxEntClassifier, n_chains=100, max_iter=5), tables, "l2_theta", "moments"),
    ):
        assert learner(**{penalty: by_data}).fit(aggregates)._solution().upper in (0.73, UPPER)
        assert learner(**{penalty: 1.0}).fit(aggregates)._solution().upper is None


def test_label_sums_without_noise_have_the_intervals_of_logistic_regression():
    x, y = records()
    model = WALRClassifier(l2=1e-9, solver="newton", tol=1e-9).fit(LabelSums.from_records(x, y))
    design = np.column_stack([x, np.ones(len(x))])
    theta = np.append(model.coef_, model.intercept_)
    gradient = lambda t: design.T @ (y - expit(design @ t))  # noqa: E731
    steps = 1e-5 * np.eye(4)
    hessian = np.array([(gradient(theta - e) - gradient(theta + e)) / 2e-5 for e in steps])
    covariance = np.linalg.inv(hessian)
    half = Z * np.sqrt(np.diag(covariance))[:3]
    np.testing.assert_allclose(model.coef_interval_, [model.coef_ - half, model.coef_ + half], rtol=1e-4)
    z, half = design @ theta, Z * np.sqrt(np.einsum("ni,ij,nj->n", design, covariance, design))
    np.testing.assert_allclose(model.predict_interval(x), expit([z - half, z + half]).T, rtol=1e-4)
    narrow = logit(model.predict_interval(x, level=0.5)) - z[:, None]
    np.testing.assert_allclose(narrow, np.outer(half, [-1, 1]) * norm.ppf(0.75) / Z, rtol=1e-4)


def test_noise_and_weights_enter_the_sandwich_of_label_sums():
    x, y = records(500)
    weights = np.random.default_rng(2).uniform(0.5, 2, 500)
    sums = LabelSums.from_records(x, y, bounds=(-1, 1), weights=weights)
    noisy = sums.private(1.0, 1e-5, draw=draw_seeded(0))
    model = WALRClassifier(l2=0.5).fit(noisy)
    design = np.column_stack([x, np.ones(len(x))])
    p = model.predict_proba(x)[:, 1]
    h = np.einsum("n,ni,nj->ij", weights * p * (1 - p), design, design) + 2 * np.diag(model.penalty_)
    meat = np.einsum("n,ni,nj->ij", weights**2 * p * (1 - p), design, design) + noisy.noise_scale**2 * np.eye(4)
    meat += np.diag((2 * model.penalty_) ** 2) * model._solution().prior_factor()  # the prior variance of λ = ½ is 1
    bread = np.linalg.inv(h)
    half = Z * np.sqrt(np.diag(bread @ meat @ bread))[:3]
    np.testing.assert_allclose(model.coef_interval_, [model.coef_ - half, model.coef_ + half], rtol=1e-6)


@pytest.fixture(scope="module")
def bags() -> Bags:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 2))
    labels = rng.binomial(1, expit(x @ [1.0, -0.5]))
    return Bags(x, np.arange(0, 1201, 6), labels.reshape(-1, 6).sum(axis=1), names=("a", "b"))


def test_intervals_of_bags_are_those_of_a_bootstrap_of_bags(bags):
    learner = CardinalityClassifier(l2=0.01, tol=1e-8)
    drawn = group_shares(learner, bags, np.arange(1200), n_draws=150, random_state=0).xs(1, level="class")
    found = logit(learner.fit(bags).predict_interval(bags.X))
    ratio = np.diff(found, axis=1)[:, 0] / (logit(drawn["high"]) - logit(drawn["low"])).to_numpy()
    assert abs(np.log(np.median(ratio))) < 0.2  # percentiles of 150 draws are within 15 %
    assert learner.coef_interval_.shape == (2, 1, 2)


def test_columns_of_bags_are_matched_by_name(bags):
    model = CardinalityClassifier(l2=1.0).fit(bags)
    frame = pd.DataFrame(bags.X, columns=["a", "b"])
    np.testing.assert_array_equal(model.predict_interval(frame[["b", "a"]]), model.predict_interval(frame))


def small_tables(n: int = 3000) -> tuple[ContingencyTables, pd.DataFrame]:
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3, n)])
    y = rng.binomial(1, expit(codes @ [0.8, -0.6]))
    encoder = FrameEncoder([CodedEncoder("a", 2), CodedEncoder("b", 3)])
    frame = pd.DataFrame([[a, b] for a in range(2) for b in range(3)], columns=["a", "b"])
    return ContingencyTables.from_codes(encoder, codes, y), frame


def test_rows_of_weights_are_the_cells_of_the_enumeration():
    tables, frame = small_tables()
    model = Enumeration.from_tables(tables)
    found = weight_rows(model.index, positions(tables.encoder, frame)).toarray()
    np.testing.assert_array_equal(found, model.cells)
    unseen = weight_rows(model.index, np.array([[-1, 2]], np.int32)).toarray()
    assert unseen.sum() == 1  # the single feature alone


def test_intervals_of_tables_are_those_of_the_enumerated_model():
    tables, frame = small_tables()
    model = ExactMaxEntClassifier(l2_mu=1.0, l2_theta=2.0).fit(tables)
    exact = Enumeration.from_tables(tables)
    index = exact.index
    mu, theta = (w[index.rows, index.columns] for w in (model.mu_, model.theta_))
    joint = np.exp(exact.log_joint(mu, theta))
    rows = np.vstack([np.hstack([exact.cells, y * exact.cells]) for y in (0, 1)])
    mass = joint.T.ravel()
    covariance = 3000 * ((rows.T * mass) @ rows - np.outer(mass @ rows, mass @ rows))
    penalty = np.repeat([2.0, 4.0], len(theta))
    of_theta = np.arange(len(penalty)) >= len(theta)
    whole = PenalisedSolution(np.append(mu, theta), covariance, covariance, penalty, 1 / penalty, of_theta)
    x = np.hstack([0 * exact.cells, exact.cells])
    half = Z * np.sqrt(np.einsum("ni,ij,nj->n", x, whole.covariance(), x))
    found = np.diff(logit(model.predict_interval(frame)), axis=1)[:, 0] / 2
    np.testing.assert_allclose(found, half, rtol=0.05)  # 10,000 sampled states
    sampled = MaxEntClassifier(l2_mu=1.0, l2_theta=2.0, random_state=0).fit(tables)
    np.testing.assert_allclose(sampled.predict_interval(frame), model.predict_interval(frame), atol=0.01)


def test_noisy_tables_move_the_model_as_far_as_the_gains_say():
    """The fixed point's change by one observed label sum, by two fits, is a column of H⁻¹·gains."""
    tables, frame = small_tables(30_000)
    noise = with_gaussian_noise(tables, 60.0, 0).noise  # stated, and not drawn
    learner = ExactNoiseAwareMaxEntClassifier(l2_mu=0.05, l2_theta=0.05, tol=1e-6, max_iter=5000)

    def fit(change: float) -> ExactNoiseAwareMaxEntClassifier:
        single = tables.tables[1,]
        moved = replace(single, label_sums=single.label_sums + np.array([0.0, change, 0.0]))
        return clone(learner).fit(replace(tables, tables=tables.tables | {(1,): moved}, noise=noise))

    low, model, high = (fit(change) for change in (-20.0, 0.0, 20.0))
    slope = (logit(high.predict_proba(frame)) - logit(low.predict_proba(frame)))[:, 1] / 40
    found, index = model._solution(), model._evidence.index
    mu, theta = np.split(found.theta, 2)
    exact = replace(Enumeration.from_tables(tables), intercept=model.intercept_)
    gain = gains(*exact.compute_expectations(mu, theta), *model._evidence.noise)
    cell, follow = index.cells[1, 1] + 1, np.zeros((2, len(mu)))
    follow[:, cell] = gain.dc[cell], gain.cc[cell]
    change = np.linalg.solve(found.slope + np.diag(found.penalty), follow.ravel())
    np.testing.assert_allclose(model._derivatives(frame) @ change, slope, atol=0.1 * abs(slope).max())


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, "high", float("nan"), None])
def test_a_level_outside_0_and_1_is_refused(bags, level):
    with pytest.raises(ConfigError, match="level: must be a number between 0 and 1"):
        CardinalityClassifier(l2=1.0).fit(bags).predict_interval(bags.X, level)


FRAME = people(203)
X_PEOPLE, Y_PEOPLE = FRAME.drop(columns="y"), FRAME["y"]


def test_fits_without_intervals_give_the_reason(bags, tmp_path):
    CardinalityClassifier(l2=1.0).fit(bags).save(tmp_path)
    hybrid = WALRClassifier(solver="hybrid", max_iter=2, random_state=0).fit(X_PEOPLE, Y_PEOPLE)
    three = Bags(bags.X, bags.offsets, np.column_stack([bags.counts, np.zeros(200, int)]).astype(int))
    noisy = with_gaussian_noise(small_tables()[0], 5.0, 0)
    apart = NoiseAwareMaxEntClassifier(posterior="apart", max_iter=3, n_chains=40, random_state=0).fit(noisy)
    hashed = ContingencyTables.from_records(FRAME, "y", cross_buckets=3)
    wide = MaxEntClassifier(max_iter=3, n_chains=40, random_state=0).fit(hashed)
    cases = [
        (CardinalityClassifier.load(tmp_path), bags.X, "a saved model does not hold"),
        (hybrid, X_PEOPLE, "hybrid ends beside the optimum"),
        (CardinalityClassifier(l2=1.0, max_iter=2).fit(three), bags.X, "two classes"),
        (wide, X_PEOPLE, "hashed pairs"),
        (apart, small_tables()[1], "posterior='joint'"),
    ]
    for model, x, reason in cases:
        with pytest.raises(NotAvailable, match=reason) as raised:
            model.predict_interval(x)
        assert "\n" not in str(raised.value)


def test_a_fit_replaces_what_the_last_one_left(bags):
    model = CardinalityClassifier(l2=1.0).fit(bags)
    first = model.predict_interval(bags.X)
    second = model.fit(bags.take(np.arange(50))).predict_interval(bags.X)
    assert (np.diff(second) > np.diff(first)).all()


def test_coefficients_that_nothing_determines_are_refused():
    model = WALRClassifier(l2=0).fit(X_PEOPLE, Y_PEOPLE)  # indicators of two features add up to the same
    with pytest.raises(DataError, match="do not determine all coefficients"):
        model.predict_interval(X_PEOPLE)
