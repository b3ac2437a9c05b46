"""Belief propagation and the law of tables against enumeration."""

import numpy as np
import pytest
from collective_worlds import TREES, assignments, fixed_tree, flat, populations, random_tree, unflat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from agglearn.collective import ChainModel, TreeModel, from_cliques, kernels, propagation
from agglearn.errors import DataError


def check_marginals(model, propagate, potentials, edge_potentials):
    """log Z and marginals of nodes and edges equal the sums over all assignments."""
    states, weights = assignments(model)
    padded = model.split_edges(edge_potentials)
    for k in range(model.n_nodes):
        weights = weights * np.exp(potentials[k, states[:, k]])
    for (i, j), table in zip(model.edges, padded, strict=True):
        weights = weights * np.exp(table[states[:, i], states[:, j]])
    found = propagate(model, np.where(model.states, potentials, -np.inf), edge_potentials)
    np.testing.assert_allclose(found.log_z, np.log(weights.sum()), rtol=1e-10, atol=1e-10)
    p = weights / weights.sum()
    for k, mine in enumerate(model.split_nodes(found.marginals)):
        np.testing.assert_allclose(mine, np.bincount(states[:, k], p, model.sizes[k]), atol=1e-12)
    for (i, j), mine in zip(model.edges, model.split_edges(found.pairs), strict=True):
        cells = states[:, i] * model.sizes[j] + states[:, j]
        np.testing.assert_allclose(mine.ravel(), np.bincount(cells, p, mine.size), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([0.0, 0.3]))
def test_beliefs_equal_enumeration_in_scaled_numbers_and_in_logs(seed, n_nodes, zeros):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, n_nodes, zeros)
    nodes = rng.normal(size=(model.n_nodes, model.size))
    edges = rng.normal(size=(model.n_nodes, model.size, model.size))
    for propagate in (propagation._propagate_scaled, propagation._propagate_logs):
        check_marginals(model, propagate, nodes, edges)


@pytest.mark.parametrize("sabotage", ["forgets siblings", "forgets weights", "mixes up the axes"])
def test_a_wrong_sweep_is_noticed(sabotage, monkeypatch):
    model = fixed_tree("star", np.random.default_rng(3))
    right = kernels.sweep

    def wrong(tables, which, tree, weights, messages):
        if sabotage == "forgets siblings":
            tree = tree._replace(bounds=np.zeros_like(tree.bounds))
        if sabotage == "forgets weights":
            weights = np.ones_like(weights)
            messages.subtree[:] = 1.0
        if sabotage == "mixes up the axes":
            tables = tables.transpose(0, 2, 1).copy()
        return right(tables, which, tree, weights, messages)

    rng = np.random.default_rng(4)
    potentials, edges = rng.normal(size=(4, 2)), rng.normal(size=(4, 2, 2))
    check_marginals(model, propagation._propagate_scaled, potentials, edges)
    monkeypatch.setattr(kernels, "sweep", wrong)
    with pytest.raises(AssertionError):
        check_marginals(model, propagation._propagate_scaled, potentials, edges)


def check_tangent(model, beliefs_of, rng, kinds=(False, True)):
    """Directional derivatives of marginals equal finite differences."""
    shape = (model.n_nodes, model.size)
    nodes, v = rng.normal(size=(2, *shape))
    edges, w = rng.normal(size=(2, *shape, model.size))
    nodes = np.where(model.states, nodes, -np.inf)
    for with_edges in kinds:
        at = lambda h: beliefs_of(model, nodes + h * v, edges + h * w if with_edges else None)  # noqa: E731, B023
        change, pairs = at(0).covariance_product(v, w if with_edges else None)
        np.testing.assert_allclose((at(1e-5).marginals - at(-1e-5).marginals) / 2e-5, change, atol=1e-8)
        if with_edges:
            np.testing.assert_allclose((at(1e-5).pairs - at(-1e-5).pairs) / 2e-5, pairs, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_covariance_products_are_derivatives(seed):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 5, zeros=0.2)
    for beliefs_of in (propagation._propagate_scaled, propagation._propagate_logs):
        check_tangent(model, beliefs_of, rng)


def test_single_precision_changes_derivatives_by_its_rounding_only(monkeypatch):
    rng = np.random.default_rng(0)
    model = ChainModel([rng.normal(0, 3, (20, 20)) for _ in range(6)])
    v = rng.normal(size=(7, 20))
    double, _ = model.beliefs.covariance_product(v)
    monkeypatch.setattr(propagation, "LARGE", 1)
    single, _ = model.beliefs.covariance_product(v)
    assert 0 < np.abs(single - double).max() < 1e-6


@pytest.mark.parametrize("with_edges", [False, True])
def test_a_wrong_tangent_is_noticed(with_edges, monkeypatch):
    right, rng = kernels.covariance_product, np.random.default_rng

    def wrong(tables, which, tree, messages, *arrays):  # inner messages forgotten
        return right(tables, which, tree, messages._replace(context=np.ones_like(messages.context)), *arrays)

    monkeypatch.setattr(kernels, "covariance_product", wrong)
    with pytest.raises(AssertionError):
        check_tangent(random_tree(rng(0), 5), propagation._propagate_scaled, rng(1), [with_edges])


def test_log_space_takes_over_where_numbers_vanish():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(4, 4)) for _ in range(4)]
    tables[1][2, 1] = -2000.0
    model = ChainModel(tables)
    states, _ = assignments(model)
    potentials = np.zeros((5, 4))
    potentials[1, 2], potentials[2, 1] = 3000.0, 3000.0  # both at once, over a pair of potential exp(−2000)
    assert np.isnan(propagation._propagate_scaled(model, potentials, None).log_z)
    found = propagation.propagate(model, potentials, None)
    scores = sum(t[states[:, k], states[:, k + 1]] for k, t in enumerate(model.log_potentials))
    scores += potentials[np.arange(5), states].sum(axis=1)
    assert found.log_z == pytest.approx(logsumexp(scores))
    p = np.exp(scores - logsumexp(scores))
    for k in range(5):
        np.testing.assert_allclose(found.marginals[k], np.bincount(states[:, k], p, 4), atol=1e-12)


@pytest.mark.parametrize("name", list(TREES))
def test_law_of_tables_equals_enumeration_and_adds_up_to_one(name):
    model, m = fixed_tree(name, np.random.default_rng(1)), 2
    law = populations(model, m)
    for key, p in law.items():
        for form in ("potentials", "marginals"):
            assert model.log_probability(unflat(model, key), m, form) == pytest.approx(np.log(p), abs=1e-9)
    assert sum(law.values()) == pytest.approx(1)
    outside = unflat(model, next(iter(law)))
    outside[0] = outside[0] + np.array([[1, 0], [0, -1]])
    assert model.log_probability(outside, m) == -np.inf


def test_tables_of_individuals_are_consistent():
    model = random_tree(np.random.default_rng(5), 6)
    tables = model.tables_of(model.sample_individuals(500, np.random.default_rng(6)))
    assert model.violation(tables, 500) == 0
    assert model.violation(model.sample_tables(500, np.random.default_rng(6)), 500) == 0
    assert model.violation([t * 1.01 for t in tables], 500) > 0


def test_junction_tree_of_a_triangle_with_a_tail():
    """p(a, b, c, d) ∝ f(a, b, c) g(c, d): marginals and entropy against enumeration."""
    rng = np.random.default_rng(2)
    f, g = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    sizes = {"a": 2, "b": 3, "c": 2, "d": 3}
    model, nodes = from_cliques(sizes, [("a", "b", "c"), ("c", "d"), ("d",)], [f, g, np.zeros(3)])
    joint = np.exp(f[..., None] + g[None, None])
    joint /= joint.sum()
    marginals = model.node_marginals
    np.testing.assert_allclose(marginals[nodes["a", "b", "c"]], joint.sum(axis=3).ravel())
    np.testing.assert_allclose(marginals[nodes["c", "d"]], joint.sum(axis=(0, 1)).ravel())
    np.testing.assert_allclose(marginals[nodes["d",]], joint.sum(axis=(0, 1, 2)))
    entropy = model.bethe_entropy(model.edge_marginals, marginals)
    assert entropy == pytest.approx(-(joint * np.log(joint)).sum())


def test_cliques_that_make_no_junction_tree_are_refused():
    sizes = dict.fromkeys("abc", 2)
    with pytest.raises(DataError, match="no junction tree"):
        from_cliques(sizes, [("a", "b"), ("b", "c"), ("c", "a")], [np.zeros((2, 2))] * 3)
    with pytest.raises(DataError, match="not connected"):
        from_cliques(sizes, [("a", "b"), ("c",)], [np.zeros((2, 2)), np.zeros(2)])


@pytest.mark.parametrize(
    ("edges", "shapes", "said"),
    [
        ([(0, 1), (1, 2), (2, 0)], [(2, 2)] * 3, "edge 2–0 closes a cycle"),
        ([(0, 1), (2, 3)], [(2, 2)] * 2, "node 2 is not connected"), ([(0, 2)], [(2, 2)], "node 1 has no edge"),
        ([(0, -1)], [(2, 2)], "node -1: nodes are numbered from 0"),
        ([(0, 1), (1, 2)], [(2, 3), (2, 2)], "node 1 has 2 states here and 3"),
        ([(0, 1)], [(2, 2)] * 2, "1 edges but 2 tables"), ([(0, 1)], [(2,)], "must be a table"),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_named(edges, shapes, said):
    with pytest.raises(DataError, match=said):
        TreeModel(edges, [np.zeros(s) for s in shapes])


def test_potentials_that_forbid_everything_are_refused():
    open_, closed = np.array([[0.0, -np.inf], [-np.inf, -np.inf]]), np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    with pytest.raises(DataError, match="forbid every assignment"):
        ChainModel([open_, closed])


def test_equal_potentials_are_kept_once():
    table = np.zeros((3, 3))
    assert len(ChainModel([table] * 5).tables) == 1
    assert flat(ChainModel([table] * 2).edge_marginals) == pytest.approx([1 / 9] * 18)


def test_in_logs_small_shares_keep_their_digits():
    table, below = np.array([[0.0, 0.0], [-320.0, -410.0]]), np.array([0.0, -330.0])
    beliefs = propagation._propagate_logs(ChainModel([table]), np.array([[0.0, 0.0], below]), None)
    rows = table + below
    exact = rows - np.logaddexp(rows[:, :1], rows[:, 1:])
    np.testing.assert_allclose(np.log(beliefs.tables[1]), exact, rtol=1e-13, atol=1e-13)
