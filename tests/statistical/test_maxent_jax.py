"""The JAX engine samples the law that the other engines sample, and learns what they learn."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from chi_square import N, exact_positions, p_value_of

from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.engines import jax_chains
from agglearn.maxent.engines.jax_chains import JaxChains
from agglearn.maxent.exact import Enumeration

pytestmark = pytest.mark.slow


def moved(world, sweeps, sampler="gibbs", sabotage=lambda chains: None) -> float:
    """p-value of where N chains are that started from the exact law."""
    layout, exact, mu, theta = world
    chains = JaxChains(layout, N, exact.intercept, seed=11, sampler=sampler)
    chains.blocks = [
        jnp.asarray(part, jnp.int32) for part in np.array_split(exact_positions(world), len(chains.blocks))
    ]
    chains.set_weights(mu, theta)
    sabotage(chains)
    for step in range(sweeps):
        chains.sweep(step)
    return p_value_of(world, chains.positions)


def forget_one_pair(chains):
    """Feature 2 is drawn without a look at feature 0."""
    leading, k = list(chains.weights.leading), len(chains.weights.theta)
    for first in (0, k + 1):
        leading[2] = leading[2].at[first : first + chains.shape.sizes[0]].set(0)
    chains.weights = chains.weights._replace(leading=leading)


def forget_the_label(chains):
    chains.weights = chains.weights._replace(theta=jnp.zeros_like(chains.weights.theta))


def forget_the_proposal(chains):
    chains.weights = chains.weights._replace(log_q=jnp.zeros_like(chains.weights.log_q))


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_sweeps_leave_the_exact_law_invariant(world, sampler):
    assert moved(world, 5, sampler) > 1e-6


@pytest.mark.parametrize(
    ("sampler", "sabotage"),
    [("gibbs", forget_one_pair), ("mh", forget_one_pair), ("gibbs", forget_the_label), ("mh", forget_the_proposal)],
)
def test_wrong_samplers_are_rejected(world, sampler, sabotage):
    assert moved(world, 5, sampler, sabotage) < 1e-6


@pytest.mark.parametrize(("n_sweeps", "marginalize"), [(1, True), (2, False)])
def test_sums_are_those_of_the_exact_law(world, n_sweeps, marginalize):
    layout, exact, mu, theta = world
    chains = JaxChains(layout, N, exact.intercept, seed=3, start="uniform")
    chains.set_weights(mu, theta)
    for step in range(30):
        counts, sums = chains.sweep(step, n_sweeps, marginalize)
    for got, truth in zip((counts, sums), exact.compute_expectations(mu, theta), strict=True):
        truth = truth * N / exact.total
        assert np.all(np.abs(got - truth) < 6 * np.sqrt(truth) + 1)


def test_training_agrees_with_the_compiled_engine(tables):
    how = {"n_chains": N, "max_iter": 400, "l2_theta": 2.0, "random_state": 0}
    a, b, again = (MaxEntClassifier(engine=e, **how).fit(tables) for e in ("numba", "jax", "jax"))
    states = pd.DataFrame(Enumeration.from_tables(tables).states.astype(str), columns=tables.names)
    p, q = (model.predict_proba(states)[:, 1] for model in (a, b))
    assert np.max(np.abs(p - q)) < 0.02
    assert (b.theta_ == again.theta_).all()


def test_sums_do_not_depend_on_how_many_chains_are_added_up_at_a_time(world, monkeypatch):
    """Blocks of a hundred chains: counters are read after every block, or after the last one."""
    layout, exact, mu, theta = world
    monkeypatch.setattr(jax_chains, "LARGEST_ARRAY", 100 * max(*layout.sizes, layout.n_tables, len(layout.sizes) ** 2))
    taken = []
    for most in (1 << 20, 100):
        chains = JaxChains(layout, 300, exact.intercept, seed=5)
        assert len(chains.blocks) == 3
        monkeypatch.setattr(jax_chains, "MAX_CHAINS", most)
        chains.set_weights(mu, theta)
        taken.append(chains.sweep(0))
        monkeypatch.setattr(jax_chains, "MAX_CHAINS", 1 << 20)
    (counts, sums), (others, other_sums) = taken
    np.testing.assert_array_equal(counts, others)
    np.testing.assert_allclose(sums, other_sums, rtol=1e-6)
    assert counts[layout.single].sum() == 300 * len(layout.sizes)
