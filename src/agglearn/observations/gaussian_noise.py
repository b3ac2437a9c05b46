"""Seeded Gaussian noise on tables (σ = 17 in the AdKDD'21 data, Gilotte et al. 2022, section 5.1): not private."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from agglearn.errors import ConfigError
from agglearn.observations.base import NoiseSpec
from agglearn.observations.counting import Key
from agglearn.observations.release import add_noise, draw_totals
from agglearn.observations.tables import ContingencyTables
from agglearn.privacy.budget import TOTALS
from agglearn.privacy.calibration import gaussian_epsilon
from agglearn.privacy.mechanisms import Mechanism, draw_seeded


def with_gaussian_noise(
    tables: ContingencyTables, sigma: float, seed: int, delta: float = 1e-5, merged: Sequence[np.ndarray] | None = None
) -> ContingencyTables:
    """The tables with independent N(0, σ²) on count and label sum of every cell, empty ones too, and on both totals.

    Parameters
    ----------
    tables : ContingencyTables
        Without noise. DataError for others, or too many cells to hold.
    sigma, seed, delta : float, int, float
        σ in records (0: no noise), and the δ at which `noise.epsilon` is stated, as if OpenDP had drawn the noise.
    merged : Sequence[ndarray] or None
        Per feature, (modalities,) values whose noisy cells were summed into each: a cell's variance is σ² times these.
    """
    if not 0 <= sigma < math.inf:
        raise ConfigError(f"sigma: must be a number of records from 0 on, got {sigma}")
    if sigma == 0 and tables.noise is None:
        return tables
    noises: dict[Key | str, Mechanism] = {TOTALS: Mechanism("gaussian", sigma)}
    for key in tables.tables:
        root = 1.0  # of the number of noisy cells behind each cell, flat
        if merged is not None:
            root = np.sqrt(functools.reduce(np.multiply.outer, [merged[i] for i in key])).ravel()
        noises[key] = Mechanism("gaussian", sigma * root)
    epsilon = promised_epsilon(sigma, len(tables.tables), delta)
    spec, draw = NoiseSpec("gaussian", float(sigma), epsilon, delta), draw_seeded(seed)
    return add_noise(tables, noises, draw, spec, draw_totals(tables, noises[TOTALS], draw, spec.adjacency))


def promised_epsilon(sigma: float, n_tables: int, delta: float) -> float:
    """ε at δ of σ on n tables and totals. A record changes one count and ≤ 1 label sum of each by 1: Δ² = 2(n + 1)."""
    return gaussian_epsilon(sigma, math.sqrt(2 * (n_tables + 1)), delta)
