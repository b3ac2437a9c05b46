"""Seeded Gaussian noise on tables (σ = 17 in the AdKDD'21 data, Gilotte et al. 2022, section 5.1), which is not
private, and encodings that are computed from noisy tables, which failed there.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agglearn.encoding import CategoricalEncoder, FrameEncoder, TargetEncoder
from agglearn.encoding.frame import FeatureEncoder
from agglearn.encoding.target import MISSING_VALUE
from agglearn.errors import ConfigError
from agglearn.observations.base import NoiseSpec
from agglearn.observations.counting import Key
from agglearn.observations.release import add_noise, draw_totals
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables, Pairs
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


def tables_with_noisy_encoding(
    encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, sigma: float, seed: int, above: int, modalities: int,
    label: str = "label", pairs: Pairs = "all",
) -> ContingencyTables:  # fmt: skip
    """Tables over noisy target encodings, summed from noisy tables over the values themselves.

    Tables of pairs have the distribution of such sums: the noise of k cells is N(0, kσ²), drawn at once.

    Parameters
    ----------
    encoder, codes, y : FrameEncoder, ndarray of shape (n, D), ndarray of shape (n,)
        Of the raw values, codes of the records, and labels in {0, 1}.
    sigma, seed, above, modalities : float, int, int, int
        Noise as in `with_gaussian_noise`. Features of more values than `above` get fewer than `modalities`.
    label, pairs
        As in `ContingencyTables.from_records`.
    """
    raw = with_gaussian_noise(ContingencyTables.from_codes(encoder, codes, y, label, "none"), sigma, seed)
    features, recodings = zip(*(_recode(raw, i, above, modalities) for i in range(len(encoder.features))), strict=True)
    new = np.stack([recoding[codes[:, i]] for i, recoding in enumerate(recodings)], axis=1)
    tables = ContingencyTables.from_codes(FrameEncoder(features), new, y, label, pairs)
    merged = [np.bincount(recoding, minlength=f.size) for f, recoding in zip(features, recodings, strict=True)]
    noisy = with_gaussian_noise(tables, sigma, seed, merged=merged)
    singles: dict[Key, Table] = {
        (i,): raw.tables[i,].merge_cells(recoding[raw.tables[i,].cells], (features[i].size,))
        for i, recoding in enumerate(recodings)
    }
    return replace(noisy, tables=noisy.tables | singles)


def _recode(raw: ContingencyTables, i: int, above: int, modalities: int) -> tuple[FeatureEncoder, np.ndarray]:
    feature = raw.encoder.features[i]
    if feature.size <= above or not isinstance(feature, CategoricalEncoder):
        return feature, np.arange(feature.size)
    values = (*feature.values, *([MISSING_VALUE] if feature.has_missing else []))
    rate = raw.positives / raw.total
    encoder = TargetEncoder.from_counts(feature.name, values, *raw.dense(i), rate, modalities)
    return encoder, np.asarray(encoder.codes)
