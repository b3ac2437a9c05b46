"""Samplers of collective graphical models follow their exact laws; a sampler with one wrong factor does not.

Chi-square tests with fixed seeds, at a false-alarm rate of 1e-6 per test.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, norm

sys.path.insert(0, str(Path(__file__).parents[1] / "unit/collective"))
from collective_worlds import fixed_tree, flat, observe, populations, random_tree, unflat

from agglearn.collective import ChainModel, gibbs, infer
from agglearn.collective.gibbs import Chain
from agglearn.collective.noise import noise_model
from agglearn.collective.problem import Problem
from agglearn.errors import NotAvailable
from agglearn.observations import FlowCounts

pytestmark = pytest.mark.slow

RATE = 1e-6


def p_value(seen: Counter, law: dict) -> float:
    """Chi-square of counts against a law, rare outcomes together."""
    n = sum(seen.values())
    if set(seen) - set(law):
        return 0.0
    common = {k: p for k, p in law.items() if n * p >= 5}
    rest = n - sum(seen[k] for k in common), n * (1 - sum(common.values()))
    cells = [(seen[k], n * p) for k, p in common.items()] + ([rest] if rest[1] >= 5 else [])
    return chi2.sf(sum((o - e) ** 2 / e for o, e in cells), len(cells) - 1)


def test_populations_and_tables_follow_the_law_of_tables():
    model, m, n = fixed_tree("mixed", np.random.default_rng(0)), 2, 5000
    law, rng = populations(model, m), np.random.default_rng(1)
    direct = Counter(flat(model.sample_tables(m, rng)) for _ in range(n))
    individuals = model.sample_individuals(m * n, rng).reshape(n, m, -1)
    counted = Counter(flat(model.tables_of(x)) for x in individuals)
    assert p_value(direct, law) > RATE
    assert p_value(counted, law) > RATE
    other = populations(fixed_tree("mixed", np.random.default_rng(2)), m)
    assert p_value(direct, other) < RATE


def posterior_of_chain(noise, on, sabotage=None, runs=2000, moves=60):
    """p-value of where chains end that start from the exact posterior."""
    rng = np.random.default_rng(3)
    model, m = fixed_tree("mixed", rng), 2
    parameters = {"poisson": {"rate": 0.8}, "gaussian": {"scale": 1.5}, "laplace": {"scale": 0.9}}[noise]
    counts = observe(model, model.sample_tables(m, rng), noise, rng, on, **parameters)
    law, prior = {}, populations(model, m)
    problem = Problem(model, counts, m)
    for key, p in prior.items():
        tables = unflat(model, key)
        energy = (
            problem.objective_of(tables)
            + model.score(tables)
            + model.bethe_entropy(tables, model.node_tables_of(tables))
        )
        law[key] = p * np.exp(-energy)
    total = sum(law.values())
    law = {k: p / total for k, p in law.items()}
    keys, p = list(law), np.array(list(law.values()))
    ends = Counter()
    chain = Chain(problem, rng, unflat(model, keys[0]))
    if sabotage:
        sabotage(chain)
    for run in range(runs):
        start = unflat(model, keys[rng.choice(len(keys), p=p)])
        chain.tables[:] = model.pad_edges(start)
        for i, row in enumerate(model.node_tables_of(start)):
            chain.nodes[i, : len(row)] = row
        chain.run(moves, run)
        ends[tuple(np.round(flat(chain.problem.model.split_edges(chain.tables))).astype(int))] += 1
    return p_value(ends, law)


@pytest.mark.parametrize(("noise", "on"), [("poisson", "node"), ("laplace", "node"), ("gaussian", "edge")])
def test_gibbs_leaves_the_exact_posterior_invariant(noise, on):
    assert posterior_of_chain(noise, on) > RATE


def test_a_sampler_that_forgets_the_evidence_is_rejected():
    def forget(chain):
        chain.evidence.nodes.codes[:] = 0

    assert posterior_of_chain("poisson", "node", forget) < RATE


def test_gibbs_reaches_the_posterior_from_anywhere():
    """From one fixed start, long runs have the exact mean."""
    rng = np.random.default_rng(4)
    model, m = random_tree(rng, 4, most=3), 5
    counts = observe(model, model.sample_tables(m, rng), "poisson", rng)
    exact = infer(model, counts, m, method="exact", kind="marginals")
    means = [
        flat(infer(model, counts, m, method="gibbs", n_moves=30_000, random_state=k).edge_tables) for k in range(16)
    ]
    error = np.std(means, axis=0, ddof=1) / 4
    z = np.abs(np.mean(means, axis=0) - np.array(flat(exact.edge_tables))) / np.maximum(error, 1e-9)
    assert z.max() < 9  # Student's t with 15 degrees: below 1e-6 with all cells counted


def geweke(wrong=None, rounds=1500):
    """Joint-distribution test (Geweke 2004): draws of (n, y) forwards, and by alternating y | n with moves of n | y.

    Returns the largest |z| over the means of some statistics.
    """
    rng, m, noise = np.random.default_rng(5), 12, noise_model("poisson", rate=0.7)
    model = fixed_tree("chain", rng)

    def statistics(tables, y):
        n = model.node_tables_of(tables)
        return [tables[0][0, 0], tables[1][0, 1] ** 2, n[1][0], n[3][1] * y[3][1], y[2][0] ** 2, n[2][0] * n[0][0]]

    forward = []
    for _ in range(rounds):
        tables = model.sample_tables(m, rng)
        forward.append(statistics(tables, [noise.sample(n, rng) for n in model.node_tables_of(tables)]))

    def counted(tables):
        return [noise.sample(n, rng) for n in model.node_tables_of(tables)]

    def problem(y):
        return Problem(model, FlowCounts(node_counts=y, rate=0.7), m)

    tables, alternating = model.sample_tables(m, rng), []
    y = counted(tables)
    chain = Chain(problem(counted(model.sample_tables(m, rng))), rng, tables)  # its proposals suit other counts
    for k in range(rounds):
        chain.evidence = problem(y).evidence()
        if wrong:
            wrong(chain)
        chain.run(25, k)
        tables = [np.round(t) for t in chain.problem.model.split_edges(chain.tables)]
        y = counted(tables)
        alternating.append(statistics(tables, y))
    a, b = np.array(forward), np.array(alternating)
    batches = b.reshape(50, -1, b.shape[1]).mean(axis=1)  # batch means carry the autocorrelation
    error = np.sqrt(a.var(axis=0) / len(a) + batches.var(axis=0, ddof=1) / len(batches))
    return float(np.max(np.abs(a.mean(axis=0) - b.mean(axis=0)) / error))


def test_joint_distribution_of_tables_and_counts():
    bound = norm.isf(RATE / 12) * 1.3  # six statistics, both sides; t with 49 degrees has wider tails
    assert geweke() < bound


def test_joint_distribution_notices_counts_that_were_not_seen():
    def wrong(chain):
        chain.evidence.nodes.counts[:, 0] += 3

    assert geweke(wrong) > 8


def test_exact_node_counts_are_kept_while_tables_move():
    rng = np.random.default_rng(6)
    model, m = fixed_tree("chain", rng), 4
    counts = observe(model, model.sample_tables(m, rng), "exact", rng)
    exact = infer(model, counts, m, method="exact", kind="marginals")
    found = infer(model, counts, m, method="gibbs", n_moves=400_000, random_state=0)
    assert flat(found.node_tables) == pytest.approx(flat(exact.node_tables))
    np.testing.assert_allclose(flat(found.edge_tables), flat(exact.edge_tables), atol=0.02)


RING = np.where(np.eye(3) > 0, -np.inf, [[0, 0.4, -0.3], [0.8, 0, 0.1], [-0.5, 0.2, 0]])  # nobody stays
ROAD = np.array([[0.0, -np.inf], [0.3, 0.2]])
FULL = [np.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.6], [0.0, 0.7, 0.2]]), np.array([[-0.4, 0.3, 0.0], [0.6, 0.1, -0.2], [0.2, 0.0, 0.5]])]  # fmt: skip
NAN = np.nan
HARD = {  # potentials, noise, node counts, edge counts
    "six cells": ([RING], {"noise": "exact"}, [[2, 2, 2], [2, 2, 2]], None),
    "six cells, noisy": ([RING, RING], {"noise": "laplace"}, [[2, 1, 1], [2, 1, 0], [1, 1, 1]], None),
    "nobody moves": ([np.where(np.eye(2) > 0, [[0, 0], [0, 0.5]], -np.inf)] * 2, {"noise": "laplace"}, [[2, 2]] * 3, None),
    "one-way road": ([ROAD] * 3, {"noise": "gaussian"}, [[2, 3], [3, 3], [3, 2], [1, 4]], None),
    "whole edge table": (FULL, {"noise": "exact"}, None, [[[1, 1, 0], [1, 0, 1], [0, 0, 1]], [[NAN] * 3] * 3]),
    "one cell of an edge": (
        FULL, {"noise": "exact"}, [[2, 2, 1], [2, 1, 2], [1, 2, 2]], [[[1, NAN, NAN], [NAN] * 3, [NAN] * 3], [[NAN] * 3] * 3],
    ),
    "one free node": (FULL, {"noise": "exact"}, [[2, 2, 1], [NAN] * 3, [1, 2, 2]], None),
}  # fmt: skip


def hard(case):
    potentials, noise, nodes, edges = HARD[case]
    given = {k: np.array(v, float) for k, v in (("node_counts", nodes), ("edge_counts", edges)) if v is not None}
    m = {"six cells": 6, "six cells, noisy": 4, "nobody moves": 4}.get(case, 5)
    return ChainModel(potentials), FlowCounts(**given, **noise), m


@pytest.mark.parametrize("case", HARD)
def test_moves_reach_all_tables_that_exact_counts_and_potentials_leave(case):
    problem = hard(case)
    exact = flat(infer(*problem, method="exact", kind="marginals").edge_tables)
    runs = [flat(infer(*problem, method="gibbs", n_moves=20_000, random_state=k).edge_tables) for k in range(16)]
    error = np.std(runs, axis=0, ddof=1) / 4
    assert np.std(exact) > 0
    assert (np.abs(np.mean(runs, axis=0) - exact) <= 9 * error + 1e-9).all()


def test_exact_edge_counts_are_kept_while_tables_move():
    model, counts, m = hard("whole edge table")
    found = infer(model, counts, m, method="gibbs", n_moves=5000, random_state=0)
    np.testing.assert_array_equal(found.edge_tables[0], counts.edge_counts[0])


def test_exact_counts_that_moves_may_not_reach_are_refused():
    edges = np.array([[[1, NAN, NAN], [NAN] * 3, [NAN] * 3], [[NAN] * 3] * 3])
    with pytest.raises(
        NotAvailable, match="edge 0–1 has cells that are fixed or forbidden, and node 1 has no exact counts"
    ):
        infer(ChainModel(FULL), FlowCounts(edge_counts=edges, noise="exact"), 5, method="gibbs")
    nodes = np.array([[2.0, 1], [NAN, NAN], [1, 2]])
    with pytest.raises(NotAvailable, match="fixed or forbidden"):
        infer(ChainModel([ROAD] * 2), FlowCounts(node_counts=nodes, noise="exact"), 3, method="gibbs")


def test_without_long_cycles_and_paths_moves_do_not_reach_all_tables(monkeypatch):
    """With rectangles and shifts alone the test above fails."""
    fixed = gibbs.Fixed.__init__

    def short(self, problem):
        fixed(self, problem)
        self.incomplete = self.needs_paths = False

    monkeypatch.setattr(gibbs.Fixed, "__init__", short)
    with pytest.raises(AssertionError):
        test_moves_reach_all_tables_that_exact_counts_and_potentials_leave("six cells")
    stuck = infer(*hard("nobody moves"), method="gibbs", n_moves=5000, random_state=0).edge_tables
    assert all((t == np.round(t)).all() for t in stuck)  # it never left its first tables
