"""Learning: M steps against their optimality conditions, EM against its monotone objective, estimators as users meet them."""

from dataclasses import replace

import numpy as np
import pytest
from collective_worlds import flat, observe

from agglearn.collective import (
    ChainModel,
    FlowReconstruction,
    FreeTables,
    GibbsVersusMAP,
    HomogeneousPotentials,
    LogLinearTransitions,
    MigrationEM,
    MobilityBaseline,
    MobilityEM,
    PublishedCounts,
    SharedTableEM,
    infer,
    kernels,
    learn,
    learning,
)
from agglearn.collective.problem import Problem
from agglearn.datasets import BirdMigration, HumanMobility
from agglearn.errors import ConfigError, DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.tasks import FlowLearning, TaskInput

THETA = np.array([0.5, 1.0, 1.0, 1.0])


def birds(side=3, steps=6, years=2, theta=THETA, population=500, seed=0, **params):
    drawn = BirdMigration(side, steps, population, theta, years).draw(seed)
    return FlowLearning().observe(TaskInput("birds", {}, {}, drawn), FlowInstances, params, seed)


def law_of(observation):
    model = MigrationEM(n_iter=0).fit(observation)
    return model.parametric_model()


def check_moments(kernel):
    rng = np.random.default_rng(0)
    features, weights, theta = rng.normal(size=(2, 3, 3, 2)), rng.random((2, 3)), rng.normal(size=2)
    allowed = np.array([[True, False, True], [True, True, True], [False, True, False]])
    value = lambda t: float((weights * np.log((allowed * np.exp(features @ t)).sum(axis=2))).sum())  # noqa: E731
    gradient, hessian, h = np.empty(2), np.empty((2, 2)), 1e-5
    assert kernel(features, allowed, weights, theta, 0.0, gradient, hessian) == pytest.approx(value(theta))
    for k, unit in enumerate(np.eye(2)):
        assert gradient[k] == pytest.approx((value(theta + h * unit) - value(theta - h * unit)) / (2 * h), rel=1e-6)
        up, down, scratch = np.empty(2), np.empty(2), np.empty((2, 2))
        kernel(features, allowed, weights, theta + h * unit, 0.0, up, scratch)
        kernel(features, allowed, weights, theta - h * unit, 0.0, down, scratch)
        np.testing.assert_allclose(hessian[k], (up - down) / (2 * h), rtol=1e-6)


def test_softmax_moments_are_derivatives():
    check_moments(kernels.fill_softmax_moments)
    with pytest.raises(AssertionError):
        check_moments(lambda f, a, w, t, s, g, h: kernels.fill_softmax_moments(f, a, np.ones_like(w), t, s, g, h))
    with pytest.raises(AssertionError):
        check_moments(lambda f, a, w, t, s, g, h: kernels.fill_softmax_moments(f, np.ones_like(a), w, t, s, g, h))


def test_homogeneous_potentials_match_the_moments_they_are_fitted_to():
    rng = np.random.default_rng(1)
    law = HomogeneousPotentials(4, 5)
    tables = law.model(rng.normal(size=20)).sample_tables(100_000, rng)
    theta = law.fit(np.zeros(20), law.statistics(tables), 500)
    got = law.statistics(law.model(theta).edge_marginals)
    np.testing.assert_allclose(got, law.statistics(tables) / 100_000, atol=1e-4)


def test_free_tables_have_their_closed_form():
    tables = [[np.array([[3.0, 1], [0, 4]])], [np.array([[1.0, 1], [0, 2]])]]
    model = FreeTables(2).model(FreeTables(2).maximise(np.zeros(4), tables))
    np.testing.assert_allclose(model.edge_marginals[0], [[4 / 12, 2 / 12], [0, 6 / 12]], atol=1e-9)


def test_every_em_iteration_improves_the_joint_objective():
    """Both steps minimise F(n; θ) + M log Z(θ), one over tables, one over parameters."""
    observation, _ = birds()
    law, seen = law_of(observation), []
    improve = law.maximise

    def keep(theta, tables):
        seen.append(0.0)
        for k, (counts, n) in enumerate(zip(observation.instances, tables, strict=True)):
            model = law.model(theta, k)
            seen[-1] += Problem(model, counts, 500).objective_of(n) + 500 * model.log_partition
        return improve(theta, tables)

    law.maximise = keep
    learn(law, list(observation.instances), [500, 500], np.array([2.0, -1, 0, 1]), learner="em", n_iter=12)
    assert np.diff(seen).max() <= 1e-4
    assert seen[0] - seen[-1] > 10


FEATURES = [np.random.default_rng(k).normal(size=(steps, 3, 3, 2)) for k, steps in enumerate((4, 2))]
LAWS = {
    "migration": lambda mask: LogLinearTransitions(FEATURES, np.zeros(3), mask),
    "mobility": lambda mask: HomogeneousPotentials(3, 5, allowed=mask),
    "shared": lambda mask: FreeTables(3, allowed=mask),
}
NETWORK = np.array([[True, True, False], [False, True, True], [True, False, True]])  # a ring, one way


def masked(name, mask, noise="poisson", seed=1):
    """A law, its true parameters, and noisy node counts (edge counts for the shared table) of two populations."""
    law, rng = LAWS[name](mask), np.random.default_rng(seed)
    theta, m = rng.normal(size=law.n_parameters), 2000
    models, on = [law.model(theta, k) for k in range(2)], "edge" if name == "shared" else "node"
    counts = [observe(model, model.sample_tables(m, rng), noise, rng, on) for model in models]
    return law, theta, counts, [m] * len(counts)


def marginal_objective(law, theta, counts, sizes):
    found = [infer(law.model(theta, k), y, m, tol=1e-12) for k, (y, m) in enumerate(zip(counts, sizes, strict=True))]
    value = sum(f.objective + m * law.model(theta, k).log_partition for k, (f, m) in enumerate(zip(found, sizes, strict=True)))  # fmt: skip
    return value, found


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("mask", [None, NETWORK], ids=["complete", "network"])
def test_the_gradient_of_the_marginal_objective_is_its_derivative(name, mask):
    law, theta, counts, sizes = masked(name, mask)
    at = theta + np.random.default_rng(2).normal(0, 0.3, len(theta))
    _, found = marginal_objective(law, at, counts, sizes)
    gradient, curvature = law.gradient(at, [f.edge_tables for f in found])
    assert (curvature > 0).all()
    for k, step in enumerate(1e-4 * np.eye(len(at))):
        up, down = (marginal_objective(law, at + s, counts, sizes)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((up - down) / 2e-4, abs=1e-2 + 1e-3 * abs(gradient[k]))


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("mask", [None, NETWORK], ids=["complete", "network"])
def test_lbfgs_ends_at_least_as_low_as_em_after_fewer_e_steps(name, mask):
    law, _, counts, sizes = masked(name, mask)
    start = np.zeros(law.n_parameters)
    em = learn(law, counts, sizes, start, learner="em", n_iter=100)
    found = learn(law, counts, sizes, start, n_iter=60)
    lower, upper = (marginal_objective(law, f.theta, counts, sizes)[0] for f in (found, em))
    assert lower <= upper + 1e-6 * abs(upper)
    assert found.evaluations < em.evaluations
    assert np.isfinite(found.theta).all()
    for model, inference in zip([law.model(found.theta, 0)], found.inferences[:1], strict=True):
        assert (np.array(inference.edge_tables)[:, ~law.allowed] == 0).all()
        assert (np.array(model.edge_marginals)[:, ~law.allowed] == 0).all()


def test_a_network_is_learned_by_the_estimators_from_its_mask():
    """Forbidden steps stay impossible although the noisy counts have people there; without a mask they do not."""
    law, theta = HomogeneousPotentials(3, 6, allowed=NETWORK), np.random.default_rng(3).normal(size=9)
    model, rng, m = law.model(theta), np.random.default_rng(4), 5000
    counts = observe(model, model.sample_tables(m, rng), "laplace", rng, "edge", scale=20.0)
    pairs = {}
    for learner in ("lbfgs", "em"):
        for context in ({}, {"allowed": NETWORK}):
            given = replace(counts, context=context, population_size=m)
            found = MobilityEM(n_iter=30, learner=learner).fit(FlowInstances((given,)))
            assert np.isfinite(found.theta_).all()
            pairs[bool(context)] = np.array(found.models()[0].edge_marginals)
        assert (pairs[True][:, ~NETWORK] == 0).all()
        assert pairs[False][:, ~NETWORK].sum() > 0
        true = np.array(model.edge_marginals)
        assert np.abs(pairs[True] - true).sum() < np.abs(pairs[False] - true).sum()
    with pytest.raises(DataError, match="allowed: must be a 3 × 3 table of true and false"):
        HomogeneousPotentials(3, 5, allowed=np.ones((3, 3)))
    with pytest.raises(DataError, match="allowed: no step leaves state 1"):
        LogLinearTransitions([np.zeros((2, 2, 2, 1))], np.zeros(2), np.array([[True, True], [False, False]]))


def test_a_step_to_where_the_counts_are_impossible_is_shortened(monkeypatch):
    observation, _ = birds()
    asked, honest = [], learning._Steps.infer

    def infer(self, theta):
        asked.append(np.array(theta))
        if len(asked) == 2:  # the first trial of the line search
            raise DataError("node 0, state 0: counted, but potentials of zero let nobody be there")
        return honest(self, theta)

    monkeypatch.setattr(learning._Steps, "infer", infer)
    monkeypatch.setattr(learning, "STEEP", np.inf)  # no iteration of EM comes first
    found = MigrationEM(n_iter=3).fit(observation)
    assert np.allclose(asked[2] - asked[0], (asked[1] - asked[0]) / 2)
    assert np.isfinite(found.theta_).all()
    assert len(asked) > 3


@pytest.mark.parametrize("learner", ["lbfgs", "em"])
def test_parameters_of_migration_are_recovered(learner):
    theta = np.array([5.0, 10, 10, 10])
    observation, truth = birds(4, 12, 3, theta, 1000)
    found = MigrationEM(n_iter=40, learner=learner).fit(observation)
    assert np.abs(found.theta_ - truth.theta).sum() / truth.theta.sum() < 0.1
    assert np.abs(found.trace_[0][2] - truth.theta).sum() / truth.theta.sum() > 0.5


@pytest.mark.slow
def test_lbfgs_finds_the_optimum_of_em_from_far_away():
    """Without EM before it, one start in three led to an optimum of nearly twice the objective."""
    for seed in range(4):
        observation, _ = birds(6, 20, 3, np.array([5.0, 10, 10, 10]), 1000, seed)
        ends = []
        for learner in ("em", "lbfgs"):
            found = MigrationEM(n_iter=60, learner=learner).fit(observation)
            sizes = [c.population_size for c in observation.instances]
            ends.append(marginal_objective(found.parametric_model(), found.theta_, observation.instances, sizes)[0])
        assert ends[1] <= ends[0] * (1 + 1e-6)


def mobility(evidence="edge", scale=5.0, **params):
    drawn = HumanMobility(3, 4, 5, 50_000).draw(0)
    given = {"evidence": evidence, "noise": "laplace", "scale": scale} | params
    return FlowLearning().observe(TaskInput("mobility", {}, {}, drawn), FlowInstances, given, 0)


def errors(estimator, truth):
    wanted = ["pairwise_mae", "node_mae"]
    return {m.measure: m.value for m in FlowLearning().measure(estimator, truth, wanted) if m.step is None}


def test_edge_evidence_beats_the_baseline():
    observation, truth = mobility(scale=60.0)
    edge = errors(MobilityEM(n_iter=40).fit(observation), truth)
    baseline = errors(MobilityBaseline().fit(observation), truth)
    assert edge["pairwise_mae"] < baseline["pairwise_mae"]


def test_node_sums_are_the_noisy_edges_added_up():
    edges, nodes = (mobility(evidence)[0].instances[0] for evidence in ("edge", "node_sums"))
    np.testing.assert_allclose(nodes.node_counts[:-1], edges.edge_counts.sum(axis=2))
    np.testing.assert_allclose(nodes.node_counts[-1], edges.edge_counts[-1].sum(axis=0))
    gaussian = mobility("node_sums", summed_as="gaussian")[0].instances[0]
    assert gaussian.noise == "gaussian"
    assert gaussian.scale == pytest.approx(5.0 * np.sqrt(2 * 12))
    found = MobilityEM(n_iter=3, start="random", random_state=0).fit(mobility("node_sums")[0])
    assert np.isfinite(errors(found, mobility()[1])["node_mae"])


@pytest.mark.parametrize("estimator", [MigrationEM(n_iter=2), MobilityEM(n_iter=2)], ids=lambda e: type(e).__name__)
def test_a_saved_model_has_its_law(estimator, tmp_path):
    estimator.fit((birds if isinstance(estimator, MigrationEM) else mobility)()[0]).save(tmp_path)
    assert flat(Estimator.load(tmp_path).models()[0].edge_marginals) == flat(estimator.models()[0].edge_marginals)


def small_chain(population):
    rng = np.random.default_rng(3)
    model = ChainModel([rng.normal(size=(3, 3)) for _ in range(3)])
    nodes = model.node_tables_of(model.sample_tables(population, rng))
    return FlowCounts(
        node_counts=[rng.poisson(n).astype(float) for n in nodes], population_size=population,
        context={"log_potentials": np.array(model.log_potentials)},
    )  # fmt: skip


@pytest.mark.slow
def test_gibbs_is_compared_with_map_by_the_exact_mean():
    """Errors are those from enumeration, and longer runs come nearer than MAP, whatever the number of runs."""
    counts, m = small_chain(4), 4
    model = ChainModel(list(counts.context["log_potentials"]))
    exact = np.array(infer(model, counts, m, method="exact", kind="marginals").edge_tables)
    best = np.array(infer(model, counts, m, tol=1e-6).edge_tables)
    for n_runs in (2, 4):
        found = GibbsVersusMAP(n_runs=n_runs, n_moves=200_000, stages=8, reference="exact", random_state=0).fit(counts)
        assert found.map_error_ == pytest.approx(np.abs(best - exact).sum() / exact.sum())
        assert found.reference_error_ == 0
        assert found.reached_
        assert found.gibbs_error_ < found.map_error_
        assert 0 < found.gibbs_moves_ <= 200_000
        assert found.gibbs_seconds_ > 0


@pytest.mark.slow
def test_a_reference_of_runs_is_independent_of_the_runs_that_it_judges():
    """The mean of the other runs made the ratio of the errors √R: with long runs apart it does not depend on R."""
    counts, ratios = small_chain(200), {}
    for n_runs in (2, 6):
        found = GibbsVersusMAP(n_runs=n_runs, n_moves=20_000, stages=4, n_references=4, reference_moves=400_000, random_state=0).fit(counts)  # fmt: skip
        assert found.reference_error_ < found.gibbs_error_ / 3
        ratios[n_runs] = found.gibbs_error_ / found.map_error_
    assert ratios[6] == pytest.approx(ratios[2], rel=0.35)  # √3 apart otherwise


def test_simulators_draw_whole_populations_that_depend_on_the_seed():
    for simulator in (BirdMigration(3, 5, 100), HumanMobility(3, 3, 4, 100)):
        one, same, other = (simulator.draw(seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.edge_tables, same.edge_tables)
        assert not np.array_equal(one.edge_tables, other.edge_tables)
        assert (np.sum(one.edge_tables[0], axis=(1, 2)) == 100).all()
        assert ChainModel(list(one.log_potentials[0])).violation(list(one.edge_tables[0]), 100) == 0
        with pytest.raises(ConfigError, match="takes no 'wings'"):
            type(simulator).from_entry({}, {"wings": 2})


def test_birds_reach_the_other_corner():
    tables = BirdMigration(6, 12, 500, (5, 10, 10, 10)).draw(0).edge_tables[0]
    assert tables[0].sum(axis=1)[0] == 500
    assert tables[-1].sum(axis=0)[-1] > 100


NODES = FlowCounts(node_counts=np.ones((3, 2)), population_size=2)
PLACED = replace(NODES, context={"shape": np.array([2, 1]), "wind": np.ones((2, 2)), "log_initial": np.zeros(2)})
UNSEEN = FlowCounts(node_counts=np.full((3, 2), np.nan))


@pytest.mark.parametrize(
    ("learner", "seen", "said"),
    [
        (MobilityEM(), FlowInstances((NODES,)), r"no edge_counts, which the baseline needs .* use start='random'"),
        (MobilityEM(start="random"), FlowInstances((UNSEEN,)), "not given"),
        (MigrationEM(), FlowInstances((PLACED, NODES)), "instance 1: the counts have no shape, wind, log_initial in"),
        (
            MigrationEM("gaussian", 1),
            FlowInstances((PLACED,)),
            r"'gaussian' does not minimise eq\. 2\.7: L-BFGS has no gradient",
        ),
        (SharedTableEM(), FlowInstances((NODES,)), "instance 0: has no edge_counts, which SharedTableEM needs"),
        (PublishedCounts(), FlowInstances((NODES,)), "instance 0: has no edge_counts, which PublishedCounts needs"),
        (FlowReconstruction(), NODES, "the counts have no log_potentials in their context"),
    ],
)
def test_what_a_learner_lacks_is_named(learner, seen, said):
    with pytest.raises(DataError, match=said):
        learner.fit(seen)


def test_laws_and_instances_that_do_not_fit_are_named():
    with pytest.raises(DataError, match="2 instances and 1 population sizes"):
        learn(FreeTables(2), [None, None], [1], np.zeros(4))
    with pytest.raises(DataError, match="features: must be"):
        LogLinearTransitions([np.zeros((2, 3, 3))], np.zeros(3))
