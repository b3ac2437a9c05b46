"""The Gibbs sampler leaves the exact law invariant; a sampler that forgets one pair term does not.

Chi-square with fixed seeds, at a false-alarm rate of 1e-6 per test.
"""

import numpy as np
import pytest
from chi_square import N, exact_positions, p_value_of

from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.kernels import LINE

pytestmark = pytest.mark.slow


def p_value(world, n_sweeps, sabotage=lambda chains, layout: None, sampler="gibbs") -> float:
    """Start N chains from the exact law, sweep, and test the law of where they are."""
    layout, exact, mu, theta = world
    chains = Chains(layout, N, exact.intercept, seed=11, sampler=sampler)
    chains.positions[:] = exact_positions(world)
    chains.set_weights(mu, theta)
    sabotage(chains, layout)
    for step in range(n_sweeps):
        chains.sweep(step)
    return p_value_of(world, chains.positions)


def forget_one_pair(chains, layout):
    """The sampler no longer sees feature 0 when it draws feature 2."""
    line, at = np.divmod(layout.padded, LINE)
    for rows, columns in ((layout.span(0), layout.span(2)), (layout.span(2), layout.span(0))):
        for row in range(rows.start, rows.stop):
            chains.weights[line[columns], row, at[columns]] = 0
            chains.weights[line[columns], row + layout.n_modalities + 1, at[columns]] = 0


def forget_the_label(chains, layout):
    """The label no longer depends on X."""
    chains.theta[:] = 0


def test_sweeps_leave_the_exact_law_invariant(world):
    assert p_value(world, 1) > 1e-6
    assert p_value(world, 5) > 1e-6


def forget_the_proposal(chains, layout):
    """Acceptance by the ratio of weights alone, as if proposals were even."""
    chains.proposals.log_q[:] = 0


def mix_both(chains, layout):
    """Metropolis–Hastings on one feature, Gibbs on the others: right."""
    chains.proposals.wide[:] = [False, False, True]


def test_metropolis_hastings_leaves_the_exact_law_invariant(world):
    assert p_value(world, 1, sampler="mh") > 1e-6
    assert p_value(world, 5, sampler="mh") > 1e-6
    assert p_value(world, 5, mix_both) > 1e-6


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
@pytest.mark.parametrize("sabotage", [forget_one_pair, forget_the_label])
def test_wrong_samplers_are_rejected(world, sabotage, sampler):
    assert p_value(world, 5, sabotage, sampler) < 1e-6


def test_a_wrong_acceptance_rule_is_rejected(world):
    assert p_value(world, 5, forget_the_proposal, "mh") < 1e-6


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_chains_find_the_exact_law_from_a_wrong_start(world, sampler):
    layout, exact, mu, theta = world
    chains = Chains(layout, N, exact.intercept, seed=3, start="uniform", sampler=sampler)
    chains.set_weights(mu, theta)
    for step in range(30):
        counts, sums = chains.sweep(step)
    d, c = exact.compute_expectations(mu, theta)
    scale = N / exact.total
    for got, truth in ((counts, d * scale), (sums, c * scale)):
        assert np.all(np.abs(got - truth) < 6 * np.sqrt(truth) + 1)


@pytest.mark.parametrize("marginalize", [True, False])
def test_drawn_and_marginalised_labels_have_the_same_mean(world, marginalize):
    layout, exact, mu, theta = world
    chains = Chains(layout, N, exact.intercept, seed=4)
    chains.set_weights(mu, theta)
    for step in range(20):
        _, sums = chains.sweep(step, 2, marginalize)
    truth = exact.compute_expectations(mu, theta)[1] * N / exact.total
    assert np.all(np.abs(sums - truth) < 6 * np.sqrt(truth) + 1)
