"""Gaussian noise of a given size on contingency tables, seeded, for experiments: reproducible, hence not private.

Gilotte et al. 2022, section 5.1: the tables of the AdKDD'21 challenge carry Gaussian noise of σ = 17 on every count and
every label sum. Noise of a given ε is in `agglearn.privacy`. Both draw by the same mechanism.
"""

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
    sigma, seed : float, int
        Standard deviation, in records (0 returns the tables as they are; ConfigError below 0), and seed of the noise.
    delta : float
        At which `noise.epsilon` is stated, the guarantee of the same noise if OpenDP had drawn it (`promised_epsilon`).
    merged : Sequence[ndarray] or None
        Of each feature, (modalities,) number of values in each modality, where the noise was added to tables of these
        values and their cells then summed. A cell's variance is σ² times the cells in it.
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
    """ε of (ε, δ)-differential privacy of σ on counts and label sums of `n_tables` tables and the totals.

    One record more or less changes one count and at most one label sum of each by 1, hence Δ² = 2·(n_tables + 1) of one
    Gaussian mechanism (Balle and Wang 2018, theorem 8).
    """
    return gaussian_epsilon(sigma, math.sqrt(2 * (n_tables + 1)), delta)
