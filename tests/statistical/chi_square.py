"""Chains that start from the exact law of a world, and the test of where they are later."""

import numpy as np
from scipy.stats import chi2

N, SIZES = 100_000, (2, 3, 20)  # the largest does not fit into a line of the cache


def law_of(world) -> np.ndarray:
    """Probability of every state of X."""
    _, exact, mu, theta = world
    return np.exp(exact.log_joint(mu, theta)).sum(axis=1)


def exact_positions(world) -> np.ndarray:
    """(N, D) positions drawn from the exact law."""
    layout, exact, _, _ = world
    drawn = np.random.default_rng(5).choice(len(exact.states), N, p=law_of(world))
    return exact.states[drawn] + layout.offsets


def p_value_of(world, positions: np.ndarray) -> float:
    """Chi-square test that positions are drawn from the exact law."""
    law, codes = law_of(world), positions - world[0].offsets
    observed = np.bincount(np.ravel_multi_index(codes.T, SIZES), minlength=len(law))
    return chi2.sf(np.sum((observed - N * law) ** 2 / (N * law)), len(law) - 1)
