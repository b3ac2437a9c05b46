"""The L2 penalties on θ that the tables themselves suggest, by moments."""

import itertools
from typing import Literal, TypeAlias

import numpy as np

from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import noise_variances
from agglearn.settings import NonNegative

Penalty: TypeAlias = Literal["moments"] | NonNegative | tuple[NonNegative, NonNegative]

LEAST_VARIANCE = 0.1  # of the log-odds: below it, a model of the base rate is nearly as good
OF_PAIRS = 0.3  # share of that variance which weights of pairs have: chosen on training records, see docs/maxent.md


def theta_penalty(
    l2_theta: Literal["moments"] | float | tuple[float, float], tables: ContingencyTables
) -> tuple[float, float]:
    """λ of the weights of single features, and of those of pairs."""
    if isinstance(l2_theta, str):
        return moment_penalty(tables)
    first, second = np.broadcast_to(l2_theta, 2)
    return float(first), float(second)


def moment_penalty(tables: ContingencyTables) -> tuple[float, float]:
    """Return λ = T / 2s² for weights of the T single features, and of the T pairs, that the tables are of.

    The log-odds are sums of one weight each. They then have the variance s², of which pairs have `OF_PAIRS`, and all
    where no other table is.
    """
    n_pairs, variance = len(tables.pairs), max(log_odds_variance(tables), LEAST_VARIANCE)
    n_single = len(tables.tables) - n_pairs
    of_pairs = OF_PAIRS if n_single and n_pairs else float(n_pairs > 0)
    terms = ((n_single, 1 - of_pairs), (n_pairs, of_pairs))
    first, second = (n / (2 * variance * part_of) if n else 0.0 for n, part_of in terms)
    return first, second


def log_odds_variance(tables: ContingencyTables) -> float:
    """Return s², by the label sums of single features. It can be negative.

    For g = c − r·d of single cells, base rate r, v = r(1 − r) and K = Σ (φ − φ̄)(φ − φ̄)ᵀ: E‖g‖² = v tr K + v²s²‖K‖²/D.
    The stated noise and one standard error of s² are subtracted. Pairs without a table are taken for independent.
    """
    rate = tables.positives / tables.total
    v, noise = rate * (1 - rate), noise_variances(tables)
    single = [_marginals(tables, noise, i) for i in range(len(tables.names))]
    of_residual = [(1 + rate**2) * variance for *_, variance in single]  # of the noise on c − r·d
    energy = sum(np.sum((c - rate * d) ** 2 - n) for (d, c, _), n in zip(single, of_residual, strict=True))
    trace = sum(np.sum(d - d**2 / tables.total) for d, _, _ in single)
    spread = max(_squared_norm(tables, noise, single), trace**2 / tables.encoder.offsets[-1])
    if spread == 0:  # hashed pairs alone: no table of a single feature, nor of a pair that could be summed up
        return 0.0
    error = np.sqrt(2 * (v**2 * spread + sum(len(d) * n**2 for (d, *_), n in zip(single, of_residual, strict=True))))
    return float(len(single) * (energy - v * trace - error) / (v**2 * spread))


def _marginals(tables: ContingencyTables, noise: dict, i: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Counts and label sums of a feature's modalities, and their noise's variance, from its own table or a pair's."""
    if (i,) in tables.tables:
        return *tables.dense(i), noise[i,]
    for key in tables.pairs:
        if i in key and key not in tables.hashed_pairs:
            axis = 1 - key.index(i)
            d, c = (counts.sum(axis=axis) for counts in tables.dense(*key))
            return d, c, noise[key] * int(tables.encoder.sizes[key[axis]])
    return np.zeros(1), np.zeros(1), 0.0


def _squared_norm(tables: ContingencyTables, noise: dict, single: list) -> float:
    within = sum(
        np.sum(d**2) - 2 * np.sum(d**3) / tables.total + (np.sum(d**2) / tables.total) ** 2 for d, *_ in single
    )
    across = 0.0
    for i, j in itertools.combinations(range(len(single)), 2):
        if (i, j) in tables.tables and (i, j) not in tables.hashed_pairs:
            d = tables.dense(i, j)[0]
            across += np.sum((d - np.outer(single[i][0], single[j][0]) / tables.total) ** 2) - noise[i, j] * d.size
    return float(within + 2 * across)
