"""Seeded noise on contingency tables, for experiments: reproducible, hence not private.

Gilotte et al. 2022, section 5.1: the tables of the AdKDD'21 challenge carry Gaussian noise of σ = 17 on every count and
every label sum.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agglearn.errors import ConfigError, DataError
from agglearn.observations.base import NoiseSpec
from agglearn.observations.tables import ContingencyTables, Table
from agglearn.seeds import generator

MOST_CELLS = 100_000_000  # with noise every cell is occupied: 24 bytes each


def with_gaussian_noise(
    tables: ContingencyTables, sigma: float, seed: int, delta: float = 1e-5, merged: Sequence[np.ndarray] | None = None
) -> ContingencyTables:
    """The tables with independent N(0, σ²) on count and label sum of every cell, empty ones too, and on both totals.

    The noise of a table depends on seed and names of its features only, not on which other tables there are. Totals are
    kept apart from nonsense: at least one record of each label.

    Parameters
    ----------
    sigma : standard deviation, in records. 0 gives the tables back.
    seed : of the noise.
    delta : at which `noise.epsilon` is stated: what this law would promise if it were drawn in secret (`promised`).
    merged : of each feature, (modalities,) values that each modality stands for, where the noise was added to tables
        of these values and their cells then summed: a cell's variance is σ² times the cells in it.

    Raises
    ------
    ConfigError : negative or infinite σ. DataError : tables that have noise already, or too many cells to hold.
    """
    if not 0 <= sigma < math.inf:
        raise ConfigError(f"sigma: must be a number of records from 0 on, got {sigma}")
    if tables.noise is not None:
        raise DataError(f"the tables have {tables.noise.mechanism} noise already")
    if sigma == 0:
        return tables
    cells = sum(math.prod(t.shape) for t in tables.tables.values())
    if cells > MOST_CELLS:
        raise DataError(
            f"noise on all {cells:,} cells needs too much memory; use fewer pairs, or hash the largest features"
        )
    names = tables.names
    noisy = {
        k: _noisy(t, sigma * _summed(merged, k), generator("gaussian noise", seed, [names[i] for i in k]))
        for k, t in tables.tables.items()
    }
    shift = generator("gaussian noise", seed, "totals").normal(0, sigma, 2)
    total = max(tables.total + shift[0], 2.0)
    positives = min(max(tables.positives + shift[1], 1.0), total - 1)
    spec = NoiseSpec("gaussian", float(sigma), promised(sigma, len(noisy), delta), delta, "record", private=False)
    return replace(tables, total=float(total), positives=float(positives), tables=noisy, noise=spec)


def promised(sigma: float, n_tables: int, delta: float) -> float:
    """ε of (ε, δ)-differential privacy of σ on counts and label sums of `n_tables` tables and the totals.

    One record more or less changes one count and at most one label sum of each by 1, hence Δ² = 2·(n_tables + 1);
    ρ = Δ²/2σ² and ε = ρ + 2·√(ρ·ln(1/δ)) (Bun and Steinke 2016, propositions 1.6 and 1.3).
    """
    rho = (n_tables + 1) / sigma**2
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def _summed(merged, key) -> float | np.ndarray:
    """Root of the number of noisy cells behind each cell of a table, flat; 1 where none were summed."""
    if merged is None:
        return 1.0
    return np.sqrt(functools.reduce(np.multiply.outer, [merged[i] for i in key])).ravel()


def _noisy(table: Table, sigma, rng: np.random.Generator) -> Table:
    counts, sums = rng.normal(0, sigma, (2, math.prod(table.shape)))
    counts[table.cells] += table.counts
    sums[table.cells] += table.label_sums
    return Table(table.shape, np.arange(len(counts)), counts, sums)
