"""Inference against brute force, against an independent solver, and against each other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from collective_worlds import NOISES, TREES, fixed_tree, flat, observe, populations, random_tree, sampled, unflat
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import printed_with_threads

from agglearn.collective import ChainModel, FlowReconstruction, SharedTableEM, TreeModel, infer, kernels, newton
from agglearn.collective.inference import POINT_METHODS
from agglearn.collective.noise import noise_model
from agglearn.collective.problem import Problem
from agglearn.errors import ConfigError, DataError
from agglearn.observations import FlowCounts


def posterior(model, counts, m, on):
    """p(n, y) of all tables, by brute force."""
    noise, seen, found = noise_model(counts.noise, counts.rate, counts.scale), getattr(counts, f"{on}_counts"), {}
    for key, p in populations(model, m).items():
        tables = unflat(model, key)
        for n, y in zip(model.node_tables_of(tables) if on == "node" else tables, seen, strict=True):
            inside = y[tuple(map(slice, np.shape(n)))]
            known = ~np.isnan(inside)
            p = p * np.exp(-noise.loss(inside[known], np.asarray(n, float)[known]).sum())
        found[key] = p
    return found


@pytest.mark.parametrize("name", [*TREES, "unequal"])
@pytest.mark.parametrize(("noise", "on"), [("poisson", "node"), ("laplace", "node"), ("gaussian", "edge")])
def test_exact_inference_equals_brute_force(name, noise, on):
    rng = np.random.default_rng(7)
    unequal = TreeModel([(0, 1), (1, 2)], [rng.normal(size=(3, 2)), rng.normal(size=(2, 3))])
    model = unequal if name == "unequal" else fixed_tree(name, rng)
    m = 3 if len(model.edges) == 3 else 2
    counts = observe(model, model.sample_tables(m, rng), noise, rng, on, missing=0.2, **NOISES[noise])
    law = posterior(model, counts, m, on)
    total = sum(law.values())
    means = infer(model, counts, m, method="exact", kind="marginals")
    assert means.details["log_evidence"] == pytest.approx(np.log(total))
    mean = sum(np.array(k) * p for k, p in law.items()) / total
    np.testing.assert_allclose(flat(means.edge_tables), mean, atol=1e-10)
    best = infer(model, counts, m, method="exact")
    assert best.details["log_posterior"] == pytest.approx(np.log(max(law.values())))
    assert law[tuple(np.round(flat(best.edge_tables)).astype(int))] == pytest.approx(max(law.values()))


def matching_inference(triples, m, **options):
    """Exact inference in the model of Theorem 3: X0 is one of the triples, Xi its element i, and every element counts 1."""
    tables = [np.full((len(triples), m), -np.inf) for _ in range(3)]
    for e, triple in enumerate(triples):
        for i, a in enumerate(triple):
            tables[i][e, a] = 0.0
    model = TreeModel([(0, 1), (0, 2), (0, 3)], tables)
    counts = FlowCounts(node_counts=[np.full(len(triples), np.nan), *np.ones((3, m))], noise="exact")
    return infer(model, counts, m, method="exact", **options)


def has_matching(triples, m):
    return any(all(len({t[i] for t in s}) == m for i in range(3)) for s in itertools.combinations(triples, m))


def test_exact_map_decides_random_instances_of_three_dimensional_matching():
    """MAP of Theorem 3 against enumeration, on 40 instances of which many have a matching and many have none."""
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        m = int(rng.integers(2, 4))
        triples = [tuple(t) for t in np.unique(rng.integers(0, m, (2 * m, 3)), axis=0).tolist()]
        found.append(has_matching(triples, m))
        if not found[-1]:
            with pytest.raises(DataError, match=r"no tables|forbid"):
                matching_inference(triples, m)
            continue
        chosen = matching_inference(triples, m).node_tables[0]
        covered = [t for t, n in zip(triples, chosen, strict=True) if n == 1]
        assert len(covered) == m
        assert has_matching(covered, m)
        mean = matching_inference(triples, m, kind="marginals").node_tables
        assert mean[0].sum() == pytest.approx(m)
        np.testing.assert_allclose(mean[1:], 1)
    assert 10 <= sum(found) <= 30


def check_optimal(model, counts, m, found):
    """Feasible, the gap closed, and −λ a sub-gradient of the noise at z (KKT) for every observed cell."""
    problem = Problem(model, counts, m)
    assert model.violation(found.edge_tables, m) <= 1e-8 * m
    if counts.noise != "exact":  # whose loss is infinite beside the last digit
        assert problem.objective_of(found.edge_tables) == pytest.approx(found.objective, rel=1e-6, abs=1e-6)
    assert found.gap <= 1e-6 * max(1, abs(found.objective))
    point = problem.point(found.details["dual"])
    for t in problem.terms:
        z, dual = point.z[t.indices], point.dual[t.indices]
        if t.noise.smooth:
            residual = t.noise.mean(t.y, dual) - z
            assert (np.abs(residual) <= 1e-2 * np.sqrt(m) + 1e-3 * z).all()
        elif isinstance(t.noise, type(noise_model("laplace"))):
            inside = np.abs(dual) < 0.999 / t.noise.scale
            np.testing.assert_allclose(z[inside], t.y[inside], atol=1e-2 * np.sqrt(m))
            outside = ~inside & (np.abs(z - t.y) > 1e-2 * np.sqrt(m))
            assert (np.sign(z - t.y)[outside] == np.sign(dual)[outside]).all()
        else:
            np.testing.assert_allclose(z, t.y, atol=1e-4 * m)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([*NOISES, "exact"]), st.sampled_from(["node", "edge"]),
    st.sampled_from([0.0, 0.4]), st.sampled_from([1.0, 6.0]), st.sampled_from([5, 1000]),
)  # fmt: skip
@example(seed=1781, n_nodes=2, noise="laplace", on="node", missing=0.4, strength=1.0, m=5)  # at the rounding of D
def test_dual_newton_always_converges(seed, n_nodes, noise, on, missing, strength, m):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, n_nodes, zeros=0.2, most=4, strength=strength)
    counts = observe(model, model.sample_tables(m, rng), noise, rng, on, missing, **NOISES.get(noise, {}))
    found = infer(model, counts, m)
    assert found.converged
    check_optimal(model, counts, m, found)


def test_newton_s_method_takes_few_steps(monkeypatch):
    """With a covariance product that is not the derivative it would need many more, or give up."""
    rng = np.random.default_rng(0)
    model = random_tree(rng, 12, most=6, strength=3.0)
    counts = observe(model, model.sample_tables(10_000, rng), "poisson", rng)
    monkeypatch.setattr(newton, "CHEAP_FACTOR", 0.0)  # no other steps
    found = infer(model, counts, 10_000, trace=True)
    assert found.converged
    assert len(found.trace) <= 12


FIRST_ORDER = [
    ("nlbp-feasible", {"damping": 0.1}), ("bethe-rda", {}), ("bethe-rda", {"beta": 2.0, "schedule": "thesis"}),
    ("bethe-rda", {"schedule": "thesis"}), ("mirror-descent", {}), ("mirror-descent", {"schedule": "thesis"}),
    ("accelerated-rda", {}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "options"), FIRST_ORDER)
@pytest.mark.parametrize("on", ["node", "edge"])
def test_first_order_methods_reach_the_same_optimum(method, options, on):
    model, counts, m = sampled("mixed", 2, 200, "poisson", on, rate=0.5)
    best = infer(model, counts, m)
    found = infer(model, counts, m, method=method, tol=1e-7, max_iter=20_000, **options)
    assert found.converged
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    np.testing.assert_allclose(flat(found.edge_tables), flat(best.edge_tables), atol=0.2)


@pytest.mark.parametrize("method", ["bethe-rda", "mirror-descent"])
def test_defaults_of_first_order_methods_do_not_diverge(method):
    """On these chains the thesis's RDA never converges, and its mirror descent on some: the first gradient is huge."""
    converged = {"safe": [], "thesis": []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model, m = ChainModel([rng.normal(0, 2, (20, 20)) for _ in range(9)]), 100
        counts = observe(model, model.sample_tables(m, rng), "poisson", rng)
        best = infer(model, counts, m)
        for schedule, seen in converged.items():
            options = {} if schedule == "safe" else {"schedule": schedule}
            found = infer(model, counts, m, method=method, max_iter=300, **options)
            assert not found.converged or found.objective == pytest.approx(best.objective, rel=1e-6)
            seen.append(found.converged)
    assert all(converged["safe"])
    assert not all(converged["thesis"])


def test_rda_recovers_from_a_count_that_the_model_all_but_forbids():
    """One of 100 people was counted where e⁻¹⁵ of them is expected: β must fall as fast as it rose."""
    model = ChainModel([np.array([[0.0, -15.0], [-15.0, -30.0]])] * 3)
    counts = FlowCounts(node_counts=np.array([[100.0, 0], [100, 1], [100, 0], [100, 1]]), noise="poisson")
    inference = infer(model, counts, 100, method="bethe-rda", max_iter=500)
    assert inference.converged
    assert inference.objective == pytest.approx(infer(model, counts, 100).objective, rel=1e-6)


@pytest.mark.parametrize("estimator", [FlowReconstruction(), SharedTableEM()])
def test_warming_up_compiles_what_numbers_that_underflow_need(estimator, monkeypatch):
    compiled = []
    log_sweep = kernels.log_sweep
    monkeypatch.setattr(kernels, "log_sweep", lambda *arrays: compiled.append(log_sweep(*arrays)) or compiled[-1])
    estimator.warm_up()
    assert compiled


def test_what_ended_at_infinity_has_not_converged():
    """A tilt that overflows leaves an objective and a gap without a number; no tolerance makes that a result."""
    model, m = ChainModel([np.zeros((2, 2))]), 4
    problem = Problem(model, FlowCounts(node_counts=np.full((2, 2), 2.0)), m)
    point = problem.point(np.zeros(problem.size))
    for changes in ({"objective": np.inf, "duality_gap": np.inf}, {"objective": np.nan}, {"duality_gap": np.nan}):
        for tol in (1e-8, np.inf):
            assert not problem.is_solved(replace(point, **changes), tol)
    for damping in (0, 1.5, np.inf, np.nan, -0.1):
        for method in ("nlbp-feasible", "nlbp-naive", "gaussian"):
            with pytest.raises(ConfigError, match="damping"):
                infer(model, FlowCounts(node_counts=np.ones((2, 2))), 2, method=method, damping=damping)


def test_no_damping_ends_at_infinity_and_claims_to_have_converged():
    bad = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model, m = ChainModel([rng.normal(0, 4, (8, 8)) for _ in range(7)]), 60
        counts = observe(model, model.sample_tables(m, rng), "poisson", rng)
        for damping in (1.0, 0.5):
            found = infer(model, counts, m, method="nlbp-feasible", damping=damping, max_iter=100)
            bad += not np.isfinite(found.objective)
            assert not found.converged or (np.isfinite(found.objective) and found.gap < 1e-6 * abs(found.objective))
    assert bad  # otherwise this test has nothing to notice


@pytest.mark.parametrize("on", ["node", "edge"])
def test_naive_nlbp_reaches_the_same_optimum(on):
    model, counts, m = sampled("mixed", 2, 200, "poisson", on, rate=0.5)
    found = infer(model, counts, m, method="nlbp-naive", tol=1e-8, damping=0.2)
    assert found.converged
    assert model.violation(found.edge_tables, m) < 1e-4
    np.testing.assert_allclose(flat(found.edge_tables), flat(infer(model, counts, m).edge_tables), rtol=1e-4, atol=1e-2)


def test_a_wrong_naive_round_is_noticed(monkeypatch):
    right = kernels.run_naive_round

    def wrong(tables, which, tree, degrees, states, evidence, *rest):  # counts too large
        nodes = evidence.nodes._replace(counts=evidence.nodes.counts * 1.1)
        return right(tables, which, tree, degrees, states, evidence._replace(nodes=nodes), *rest)

    monkeypatch.setattr(kernels, "run_naive_round", wrong)
    with pytest.raises(AssertionError):
        test_naive_nlbp_reaches_the_same_optimum("node")


def test_every_iterate_of_feasible_nlbp_is_feasible_and_naive_ones_are_not():
    model, counts, m = sampled("chain", 3, 50)
    feasible = infer(model, counts, m, method="nlbp-feasible", trace=True).trace
    naive = infer(model, counts, m, method="nlbp-naive", trace=True).trace
    assert len(feasible) > 5
    assert max(violation for *_, violation in feasible) < 1e-9 * m
    assert max(violation for *_, violation in naive[:5]) > 1e-3


@pytest.mark.parametrize("method", POINT_METHODS)
def test_the_gap_bounds_the_distance_from_the_optimum(method):
    model, counts, m = sampled("star", 4, 100, "gaussian", scale=2.0)
    best = infer(model, counts, m, tol=1e-12).objective
    for max_iter in (1, 3, 10):
        found = infer(model, counts, m, method=method, max_iter=max_iter, tol=0)
        assert -1e-7 <= found.objective - best <= found.gap + 1e-7
    assert [row[0] for row in infer(model, counts, m, method=method, max_iter=3, tol=0, trace=True).trace][:2] == [0, 1]


def test_gaussian_approximation_is_exact_in_the_gaussian_limit():
    """With a large population the posterior is Gaussian, so that GCGM and the mode agree."""
    rng = np.random.default_rng(5)
    model, m = ChainModel([rng.normal(0, 0.5, (3, 3)) for _ in range(4)]), 100_000
    noises = {"gaussian": {"scale": 150.0}, "poisson": {"rate": 0.3}, "laplace": {"scale": 100.0}}
    for noise, parameters in noises.items():
        counts = observe(model, model.sample_tables(m, rng), noise, rng, **parameters)
        found, mode = infer(model, counts, m, method="gaussian"), infer(model, counts, m)
        assert found.converged
        close = 2e-3 if noise != "laplace" else 6e-3  # a kinked likelihood has its mode beside its mean
        np.testing.assert_allclose(flat(found.edge_tables), flat(mode.edge_tables), atol=close * m / 3)
        assert model.violation(found.edge_tables, m) < 1e-5 * m


def test_repeated_and_mixed_observations_add_their_evidence():
    rng = np.random.default_rng(8)
    model, m = fixed_tree("chain", rng), 300
    tables = model.sample_tables(m, rng)
    one, two = (observe(model, tables, "poisson", rng, missing=0.3) for _ in range(2))
    stacked = FlowCounts(node_counts=np.stack([one.node_counts, two.node_counts]))
    together = infer(model, stacked, m, tol=1e-10)
    apart = infer(model, [one, two], m, tol=1e-10)
    np.testing.assert_allclose(flat(together.edge_tables), flat(apart.edge_tables), rtol=1e-4, atol=1e-3)
    seen = [one, observe(model, tables, "gaussian", rng, "edge", scale=2.0)]
    both, turned = (infer(model, counts, m, tol=1e-12) for counts in (seen, seen[::-1]))
    assert both.converged
    np.testing.assert_allclose(flat(both.edge_tables), flat(turned.edge_tables), rtol=1e-5)
    assert Problem(model, [one], m).objective_of(both.edge_tables) >= infer(model, one, m).objective - 1e-6


def test_repeated_laplace_counts_have_the_median_between_them():
    """Two counts per cell: between them the loss is flat, so both pull with opposite signs or cancel."""
    model, m = ChainModel([np.zeros((2, 2))]), 100
    twice = np.array([[[70.0, 30.0], [50, 50]], [[80, 20], [50, 50]]])
    counts = FlowCounts(node_counts=twice, noise="laplace", scale=0.01)
    found = infer(model, counts, m)
    assert found.converged
    assert 70 - 1e-3 <= found.node_tables[0][0] <= 80 + 1e-3


@pytest.mark.parametrize("m", [1e3, 1e9])
def test_population_size_does_not_change_shares_without_evidence(m):
    model = random_tree(np.random.default_rng(9), 5)
    counts = FlowCounts(node_counts=[np.full(s, np.nan) for s in model.sizes])
    found = infer(model, counts, m)
    np.testing.assert_allclose(flat(found.edge_tables), m * np.array(flat(model.edge_marginals)))


THREADS = """
import numba, numpy as np
from agglearn.collective import infer
from collective_worlds import flat, observe, random_tree
rng = np.random.default_rng(10)
model = random_tree(rng, 8, most=6)
counts = observe(model, model.sample_tables(500, rng), "poisson", rng)
for threads in (1, 2, 4):
    numba.set_num_threads(threads)
    tables = [flat(infer(model, counts, 500, method=k).edge_tables) for k in ("dual-newton", "nlbp-naive")]
    print(np.concatenate(tables).tobytes().hex())
"""


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_threads():
    first, *others = printed_with_threads(THREADS)
    assert others == [first, first]
