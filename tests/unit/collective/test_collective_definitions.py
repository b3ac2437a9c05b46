"""Sizes, balance, features and traces of collective models against what is written out: of unequal sizes, by hand."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from agglearn.collective import ChainModel, PublishedCounts, SharedTableEM, gibbs, infer, learning
from agglearn.collective.em import balance_flows, fit_ignoring_noise
from agglearn.collective.gaussian import _Smoother, _tilted_moments
from agglearn.collective.migration import migration_features
from agglearn.collective.noise import noise_model
from agglearn.collective.parametric_models import HomogeneousPotentials
from agglearn.collective.population import population_size
from agglearn.collective.problem import Problem
from agglearn.collective.reconstruction import _seconds_to_lowest
from agglearn.collective.results import Iterate, Recorder
from agglearn.datasets.flows import commuting_potentials
from agglearn.errors import DataError
from agglearn.observations import FlowCounts, FlowInstances


def test_the_population_is_the_mean_of_complete_tables():
    """Tables of 8 and 6 detected persons at half a rate, and one that is not complete; other noise has no rate."""
    nodes = np.array([[5.0, 3.0], [1.0, np.nan], [2.0, 4.0]])
    assert population_size(FlowCounts(nodes, rate=0.5)) == 14
    assert population_size(FlowCounts(nodes, noise="gaussian", rate=0.5)) == 7
    edges = np.array([[[1.0, 2.0], [3.0, 5.0]]])
    assert population_size(FlowCounts(nodes, edges, noise="laplace")) == pytest.approx((8 + 6 + 11) / 3)
    assert population_size(FlowCounts(nodes, population_size=99)) == 99
    with pytest.raises(DataError, match="population_size"):
        population_size(FlowCounts(nodes[1:2]))


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
    np.testing.assert_allclose(features[:, 1, 3], [[-math.sqrt(2), root, 0, 1]] * 2, atol=1e-12)
    goal = 2 / math.sqrt(5)
    np.testing.assert_allclose(features[:, 0, 2], [[-2, -1, goal, 1], [-2, 0, goal, 1]], atol=1e-12)
    np.testing.assert_allclose(features[:, 5, 4], [[-1, 1, 0, 1], [-1, 0, 0, 1]], atol=1e-12)  # leaves the goal
    np.testing.assert_allclose(features[:, 4, 4], np.zeros((2, 4)))


def test_noise_where_nobody_can_go_does_not_move_the_start():
    """Noisy counts of moves that cannot occur are left out of first and last steps too."""
    allowed = np.array([[True, True, False], [False, True, True], [True, False, True]])
    counts = np.where(allowed, np.random.default_rng(0).uniform(20, 90, (4, 3, 3)), 0.0)
    noise_there = np.where(allowed, 0.0, [[0, 0, 35.0], [60.0, 0, 0], [0, -8.0, 0]])
    law, given = HomogeneousPotentials(3, 5, allowed=allowed), {"population_size": 500, "context": {"allowed": allowed}}
    flows = [FlowCounts(edge_counts=c, noise="laplace", **given) for c in (counts, counts + noise_there)]
    np.testing.assert_array_equal(*(fit_ignoring_noise(law, FlowInstances((f,)), 50) for f in flows))


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_moments_of_a_gaussian_site_are_those_of_a_product_of_normals(variance):
    noise, y, mean = noise_model("gaussian", scale=1.5), np.array([3.0]), np.array([2.0])
    precision = 1 / variance + 1 / 1.5**2
    expected = (mean / variance + y / 1.5**2) / precision
    found = _tilted_moments(noise, y, mean, np.array([variance]))
    np.testing.assert_allclose(found, (expected, [1 / precision]), rtol=1e-3)


def test_moments_of_node_tables_are_those_of_the_joint_normal():
    """The Gaussian that the Kalman smoother conditions, written out over all nodes at once."""
    rng, m = np.random.default_rng(1), 30
    model = ChainModel([rng.normal(0, 1, (2, 2)) for _ in range(3)])
    y = rng.uniform(5, 25, (4, 2))
    seen = FlowCounts(node_counts=y, noise="gaussian", scale=0.5, population_size=m)
    problem = Problem(model, seen, m)
    nodes = model.node_marginals
    steps = [pairs / pairs.sum(axis=1, keepdims=True) for pairs in model.edge_marginals]
    joint = np.zeros((4, 2, 4, 2))
    for t in range(4):
        reached = np.diag(nodes[t])
        for s in range(t, 4):
            block = reached - np.outer(nodes[t], nodes[s])
            joint[t, :, s, :], joint[s, :, t, :] = block, block.T
            reached = reached @ steps[s] if s < 3 else reached
    cov, mean = m * joint.reshape(8, 8), m * np.ravel(nodes)
    gain = cov @ np.linalg.inv(cov + 0.25 * np.eye(8))
    found = _Smoother(problem).posterior(y, np.full((4, 2), 4.0))
    np.testing.assert_allclose(np.ravel(found[0]), mean + gain @ (y.ravel() - mean), rtol=1e-6)
    np.testing.assert_allclose(np.ravel(found[1]), np.diag(cov - gain @ cov), rtol=1e-6)
    whole = infer(model, seen, m, method="gaussian")
    np.testing.assert_allclose(np.ravel(whole.node_tables), mean + gain @ (y.ravel() - mean), rtol=1e-6)


def test_the_clock_of_tuning_stops_where_the_objective_stays():
    trace = lambda *pairs: [Iterate(k, s, f, 0.0) for k, (s, f) in enumerate(pairs)]  # noqa: E731
    runs = [SimpleNamespace(trace=t) for t in (
        trace((1.0, -9.0), (2.0, -10.0), (3.0, -9.5), (4.0, -10.0), (5.0, -10.0)), trace((0.5, -9.0), (1.0, -9.9)),
        trace((0.5, -9.0), (0.6, np.nan)), trace((7.0, -10.0 + 1e-8)),
    )]  # fmt: skip
    assert [_seconds_to_lowest(r.trace, runs) for r in runs] == [
        (4.0, -10.0), (math.inf, -9.9), (math.inf, math.inf), (7.0, -10.0 + 1e-8)
    ]  # fmt: skip


def test_stages_of_a_sampler_have_streams_of_their_own(monkeypatch):
    seeds, run = [], gibbs.Chain.run

    def spied(chain, n_moves, seed):
        seeds.append((n_moves, seed))
        run(chain, n_moves, seed)

    monkeypatch.setattr(gibbs.Chain, "run", spied)
    counts = FlowCounts(node_counts=np.array([[3.0, 3], [2, 4]]))
    model = gibbs.TreeModel([(0, 1)], [np.zeros((2, 2))])
    found = infer(model, counts, 6, "gibbs", trace=True, n_moves=100, burn_in=0.2, stages=4, random_state=1)
    assert [n for n, _ in seeds] == [20, 20, 20, 20, 20]
    assert len({s for _, s in seeds}) == 5
    assert [moves for _, moves, _ in found.details["means"]] == [40, 60, 80, 100]
    assert sum(t.sum() for t in found.edge_tables) == pytest.approx(6)


def test_commuters_live_at_the_top_right_and_work_at_the_bottom_left():
    first, last, step = commuting_potentials(2, 4, 2.0, 1.0, 0.5)
    xy = [(k % 4, k // 4) for k in range(8)]
    for k, (x, y) in enumerate(xy):
        assert first[k] == pytest.approx(-((x - 2.5) ** 2 + (y - 1.0) ** 2) / 8)
        assert last[k] == pytest.approx(-((x - 0.5) ** 2 + (y - 0.0) ** 2) / 2)
        for j, (u, v) in enumerate(xy):
            assert step[k, j] == pytest.approx(-((x - u) ** 2 + (y - v) ** 2) / 0.5)


def test_distance_from_tables_that_fit_together():
    model = ChainModel(np.zeros((2, 2, 2)))
    first, second = np.array([[2.0, 1], [0, 3]]), np.array([[1.0, 1], [2, 3]])  # middle sums (2, 4) and (2, 5)
    # each edge is half a person from their mean; six, six and a half, and seven persons
    assert model.violation([first, second], 6) == pytest.approx(0.5 + 0.5 + 0.5 + 1)
    apart = np.abs(first.sum(0) - first[::-1].T.sum(1)).sum()
    assert model.violation([first, first[::-1].T], 6) == pytest.approx(apart)
    lone = ChainModel(np.zeros((1, 2, 2)))
    assert lone.violation([first], 6) == 0
    assert lone.violation([first - np.array([[0, 2], [0, -2]])], 6) == pytest.approx(1)
    assert lone.violation([first], 5) == 2


def test_iterates_are_recorded_ever_more_rarely():
    model = SimpleNamespace(violation=lambda tables, m: 0.5)
    record = Recorder(SimpleNamespace(objective_of=float, M=1.0, model=model))
    for k in range(100):
        record(k)
    rows = record.finish()
    steps = [r[0] for r in rows]
    assert steps[:21] == list(range(21))
    assert steps[-1] == 99
    gaps = np.diff(steps)
    assert (gaps[:20] == 1).all()
    assert all(b <= max(a + 1, int(1.05 * a)) for a, b in itertools.pairwise(steps))
    assert [r[2:] for r in rows] == [(float(k), 0.5) for k in steps]
    assert (np.diff([r[1] for r in rows]) >= 0).all()


def test_published_tables_and_what_learning_starts_from():
    years = FlowInstances(tuple(
        FlowCounts(edge_counts=np.array([t]), noise="laplace", population_size=10)
        for t in ([[3.0, -1.0], [4.0, 2.0]], [[1.0, -2.0], [2.0, 0.0]])
    ))  # fmt: skip
    plain, cut = PublishedCounts().fit(years), PublishedCounts(clip=True).fit(years)
    assert [t[0].tolist() for t in plain.edge_tables_] == [[[3, -1], [4, 2]], [[1, -2], [2, 0]]]
    assert [t[0].tolist() for t in cut.edge_tables_] == [[[3, 0], [4, 2]], [[1, 0], [2, 0]]]
    start = SharedTableEM(n_iter=0, learner="em").fit(years)
    np.testing.assert_allclose(np.exp(start.theta_), np.maximum(np.array([4, 0, 6, 2]) / 12, 1e-12))
    assert [(k, theta.tolist()) for k, _, theta in start.trace_] == [(0, start.theta_.tolist())]
    assert start.evaluations_ == 0


def test_a_trace_of_learning_is_thinned_and_has_both_ends(monkeypatch):
    monkeypatch.setattr(learning, "infer", lambda *a, **k: SimpleNamespace(edge_tables=[], objective=0.0, details={}))
    model = SimpleNamespace(log_partition=0.0)
    law = SimpleNamespace(model=lambda theta, k: model, maximise=lambda theta, tables: theta + 1)
    found = learning.learn(law, [None], [1.0], np.zeros(1), learner="em", n_iter=7, trace_every=3)
    assert [(k, float(theta[0])) for k, _, theta in found.trace] == [(0, 0), (3, 3), (6, 6), (7, 7)]
    assert (float(found.theta[0]), found.evaluations) == (7, 7)
