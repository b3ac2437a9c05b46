"""Every noise model against its law in SciPy, and what learners take from counts: of unequal sizes, by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from agglearn.collective import noise
from agglearn.collective.em import balance_flows, fit_ignoring_noise
from agglearn.collective.migration import migration_features
from agglearn.collective.noise import NoiseModel, noise_model
from agglearn.collective.parametric_models import HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.population import population_size
from agglearn.datasets.flows import commuting_potentials
from agglearn.observations import FlowCounts, FlowInstances

LAWS = {
    "poisson": ({"rate": 0.7}, lambda z: stats.poisson(0.7 * z)),
    "gaussian": ({"scale": 1.3}, lambda z: stats.norm(z, 1.3)),
    "laplace": ({"scale": 0.6}, lambda z: stats.laplace(z, 0.6)),
}
DRAWS = 40_000


def test_every_noise_has_a_law():
    kinds = {type(noise_model(name)) for name in (*LAWS, "exact")}
    assert kinds == {k for k in vars(noise).values() if isinstance(k, type) and NoiseModel in k.__mro__[1:]}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("z", [0.4, 9.0])
def test_the_loss_is_minus_the_logarithm_of_the_law(name, z):
    given, law = LAWS[name]
    y = np.arange(13.0)
    log = law(z).logpmf if name == "poisson" else law(z).logpdf
    np.testing.assert_allclose(noise_model(name, **given).loss(y, np.full(13, z)), -log(y))


@pytest.mark.parametrize("name", LAWS)
def test_counts_are_drawn_by_the_law(name):
    """Mean and variance; the smallest mistake noticed is 5 % of the scale or the rate, which is planted."""
    given, law = LAWS[name]

    def differs(made: dict) -> bool:
        drawn = noise_model(name, **made).sample(np.full(DRAWS, 30.0), np.random.default_rng(0))
        variance, kurtosis = law(30.0).var(), law(30.0).stats("k")
        far = abs(drawn.mean() - law(30.0).mean()) > 5 * math.sqrt(variance / DRAWS)
        return bool(far or abs(drawn.var() / variance - 1) > 5 * math.sqrt((2 + kurtosis) / DRAWS))

    assert not differs(given)
    assert differs({k: 1.05 * v for k, v in given.items()})


@pytest.mark.parametrize("name", LAWS)
def test_the_variance_is_that_of_an_estimate_of_the_true_count(name):
    """Of y/rate. Where it depends on the true count, this is taken for (y + 1)/rate."""
    given, law = LAWS[name]
    y = np.array([0.0, 3.0, 20.0])
    rate = given.get("rate", 1.0)
    expected = [law((v + 1) / rate if name == "poisson" else v).var() / rate**2 for v in y]
    np.testing.assert_allclose(np.broadcast_to(noise_model(name, **given).variance(y), 3), expected)


def test_the_population_is_the_mean_of_complete_tables():
    """Tables of 8 and 6 detected persons at half a rate, and one that is not complete; other noise has no rate."""
    nodes = np.array([[5.0, 3.0], [1.0, np.nan], [2.0, 4.0]])
    assert population_size(FlowCounts(nodes, rate=0.5)) == 14
    assert population_size(FlowCounts(nodes, noise="gaussian", rate=0.5)) == 7
    edges = np.array([[[1.0, 2.0], [3.0, 5.0]]])
    assert population_size(FlowCounts(nodes, edges, noise="laplace")) == pytest.approx((8 + 6 + 11) / 3)
    assert population_size(FlowCounts(nodes, population_size=99)) == 99


def test_balanced_flows_are_those_of_a_population():
    """Three states, one way forbidden: what arrives and what was there is what leaves and what is left."""
    rng = np.random.default_rng(0)
    first, last, pairs = np.array([9.0, 2, 5]), np.array([1.0, 8, 6]), rng.random((3, 3)) * 4
    allowed = np.array([[True, True, False], [True, True, True], [True, True, True]])
    a, b, p = balance_flows(first, last, pairs, allowed, rounds=2000)
    np.testing.assert_allclose(a + p.sum(axis=0), b + p.sum(axis=1), atol=1e-6)
    assert p[0, 2] == 0
    assert min(a.min(), b.min(), p.min()) >= 0
    again = balance_flows(a, b, p, allowed)
    for found, before in zip(again, (a, b, p), strict=True):  # already those of a population: they stay
        np.testing.assert_allclose(found, before, atol=1e-6)


def test_features_of_a_step_by_hand():
    """Two rows of three cells; from cell 1 (x 1, y 0) to cell 3 (x 0, y 1), in a wind to the left, then upwards twice as strong."""
    features = migration_features(2, 3, np.array([[-1.0, 0.0], [0.0, 2.0]]))
    root = math.sqrt(0.5)
    # the goal is at (2, 1), hence the way to it is (1, 1): at a right angle to the step (−1, 1)
    np.testing.assert_allclose(
        features[:, 1, 3], [[-math.sqrt(2), root, 0, 1], [-math.sqrt(2), root, 0, 1]], atol=1e-12
    )
    np.testing.assert_allclose(
        features[:, 0, 2], [[-2, -1, 2 / math.sqrt(5), 1], [-2, 0, 2 / math.sqrt(5), 1]], atol=1e-12
    )
    np.testing.assert_allclose(features[:, 4, 4], np.zeros((2, 4)))


def test_potentials_of_commuters_by_hand():
    """Two rows of four cells: home at (2.5, 1), work at (.5, 0)."""
    home, work, step = commuting_potentials(2, 4, 1.5, 2.0, 0.5)
    assert home[6] == pytest.approx(-(0.5**2 + 0) / 4.5)
    assert home[0] == pytest.approx(-(2.5**2 + 1) / 4.5)
    assert work[7] == pytest.approx(-(2.5**2 + 1) / 8)
    assert step[0, 6] == step[6, 0] == pytest.approx(-(4 + 1) / 0.5)


def test_transitions_are_learned_from_departures():
    """One instance, two steps, three states: the log-likelihood's gradient by differences of Σ n log p."""
    rng = np.random.default_rng(1)
    model = LogLinearTransitions([rng.normal(size=(2, 3, 3, 2)), rng.normal(size=(1, 3, 3, 2))], np.zeros(3))
    tables = [rng.integers(0, 9, (2, 3, 3)).astype(float), rng.integers(0, 9, (1, 3, 3)).astype(float)]

    def loss(theta):
        total = 0.0
        for f, n in zip(model.features, tables, strict=True):
            score = f @ theta
            total -= (n * (score - np.log(np.exp(score).sum(axis=2, keepdims=True)))).sum()
        return total

    theta, step = np.array([0.3, -0.8]), 1e-6
    numeric = [(loss(theta + step * e) - loss(theta - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(model.gradient(theta, tables)[0], numeric, rtol=1e-5)


def test_noise_where_nobody_can_go_does_not_move_the_start():
    """Noisy counts of moves that cannot occur are left out of first and last steps too."""
    allowed = np.array([[True, True, False], [False, True, True], [True, False, True]])
    counts = np.where(allowed, np.random.default_rng(0).uniform(20, 90, (4, 3, 3)), 0.0)
    noise_there = np.where(allowed, 0.0, [[0, 0, 35.0], [60.0, 0, 0], [0, -8.0, 0]])
    start = [
        fit_ignoring_noise(
            HomogeneousPotentials(3, 5, allowed=allowed),
            FlowInstances(
                (FlowCounts(edge_counts=c, noise="laplace", population_size=500, context={"allowed": allowed}),)
            ),
            50,
        )
        for c in (counts, counts + noise_there)
    ]
    np.testing.assert_array_equal(*start)
