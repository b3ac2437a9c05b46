"""Steps on noisy tables that cost no privacy: clip counts, average effects over tables, thin a release to two halves."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, map_scales
from agglearn.observations.counting import Key
from agglearn.observations.table import Table, TableSet, table_name
from agglearn.privacy.budget import TOTALS
from agglearn.privacy.mechanisms import Mechanism

__all__ = ["clip_tables", "project_tables"]

Tables = TypeVar("Tables", bound=TableSet)


def clip_tables(tables: Tables) -> Tables:
    """Tables with counts from 0 on and label sums within them. Exact ones stay. Small counts grow in the mean.

    Parameters
    ----------
    tables : Tables
    """
    if tables.noise is None:
        return tables
    clipped = {}
    for key, t in tables.tables.items():
        counts = np.maximum(t.counts, 0)
        clipped[key] = replace(t, counts=counts, label_sums=np.clip(t.label_sums, 0, counts))
    return replace(tables, tables=clipped, noise=replace(tables.noise, postprocessing="clipped"))


def project_tables(tables: Tables) -> Tables:
    """The nearest tables that agree on total and marginals, counts and label sums apart. Weights are inverse variances.

    Exact tables, hashed pairs, and counts beside noisy label sums stay as they are.

    Parameters
    ----------
    tables : Tables
    """
    if tables.noise is None:
        return tables
    hashed, released = tables.hashed_pairs, _released_variances(tables, tables.noise)
    dense = {k: np.stack(t.dense()) for k, t in tables.tables.items() if k not in hashed}
    precision = {k: 1 / released[k] for k in dense}
    totals = np.array([tables.total, tables.positives], float)
    agreed = _grand_totals(dense, precision, totals, 1 / released[TOTALS])
    effects = _main_effects(dense, precision)
    projected = {k: _assemble(k, t, agreed, effects) for k, t in dense.items()}
    new = {k: Table(t[0].shape, np.arange(t[0].size), t[0].ravel(), t[1].ravel()) for k, t in projected.items()}
    total, positives = possible_totals(*agreed)
    noise = replace(tables.noise, postprocessing="projected")
    return replace(tables, total=total, positives=positives, tables=tables.tables | new, noise=noise)


def possible_totals(total: float, positives: float) -> tuple[float, float]:
    """Noisy totals as floats, moved to where there is at least one record of each label."""
    total = max(float(total), 2.0)
    return total, min(max(float(positives), 1.0), total - 1)


def noise_variances(tables: TableSet) -> dict[Key, float]:
    """{table: variance of the noise on one of its cells}, 0 without noise. Projection changes all but interactions."""
    if tables.noise is None:
        return dict.fromkeys(tables.tables, 0.0)
    released = _released_variances(tables, tables.noise)
    variances = {k: released[k] for k in tables.tables}
    if tables.noise.postprocessing != "projected":
        return variances
    shapes = {k: t.shape for k, t in tables.tables.items() if k not in tables.hashed_pairs}
    total, effects = 1 / released[TOTALS], dict.fromkeys(range(len(tables.names)), 0.0)
    for key, shape in shapes.items():
        size = math.prod(shape)
        total += 1 / (released[key] * size)
        for i in key:
            effects[i] += tables.encoder.sizes[i] / (released[key] * size)
    for key, shape in shapes.items():
        size = math.prod(shape)
        pair = released[key] * math.prod(1 - 1 / n for n in shape) if len(key) == 2 else 0.0
        mains = sum((1 - 1 / n) / effects[i] / (size / n) ** 2 for i, n in zip(key, shape, strict=True))
        variances[key] = pair + mains + 1 / (total * size**2)
    return variances


def thin_tables(tables: Tables, rng: np.random.Generator) -> tuple[Tables, Tables]:
    """Two sets of tables that add up to the given ones. Tables of the same records are still dependent."""
    if tables.noise is not None and tables.noise.threshold:
        raise DataError("tables with a threshold have no halves; set l2_theta, or leave the default")
    variance = noise_variances(tables)
    halves = {key: thin_table(t, variance[key], tables.noise, rng) for key, t in tables.tables.items()}
    noise = tables.noise or NoiseSpec("gaussian", np.sqrt(2), np.inf)  # equal weights of the tables in a projection
    noise = map_scales(noise, lambda scale: scale / np.sqrt(2))
    half = replace(tables, total=tables.total / 2, positives=tables.positives / 2, noise=noise)
    first, second = ({key: pair[i] for key, pair in halves.items()} for i in (0, 1))
    return replace(half, tables=first), replace(half, tables=second)


def thin_table(
    t: Table, variance: float, noise: NoiseSpec | None, rng: np.random.Generator, fraction: float = 0.5
) -> tuple[Table, Table]:
    """Two tables that add up to a table. The first has a fraction of its records and of the variance of its noise."""
    if noise is None:  # halves of Poisson numbers are independent
        c, zeros = (rng.binomial(v.astype(np.int64), fraction) for v in (t.label_sums, t.counts - t.label_sums))
        d, c = (c + zeros).astype(t.counts.dtype), c.astype(t.label_sums.dtype)
    else:  # normal numbers, Neufeld et al. 2024
        ones, zeros = np.maximum(t.label_sums, 0), np.maximum(t.counts - t.label_sums, 0)
        own_d, own_c, ones, zeros = (  # noise on counts and on label sums, counting errors of label 1 and 0
            rng.normal(size=t.counts.shape) * np.sqrt(v * (1 - fraction) / fraction)
            for v in (0.0 if noise.adjacency == "label" else variance, variance, ones, zeros)
        )
        d, c = fraction * (t.counts + own_d + ones + zeros), fraction * (t.label_sums + own_c + ones)
    return Table(t.shape, t.cells, d, c), Table(t.shape, t.cells, t.counts - d, t.label_sums - c)


def _released_variances(tables: TableSet, noise: NoiseSpec) -> dict[Key | str, float]:
    keys: list[Key | str] = [*tables.tables, TOTALS]
    scales = {k: (noise.scales or {}).get(table_name(tables, k), noise.scale) for k in keys}
    return {k: Mechanism(noise.mechanism, scale).variance for k, scale in scales.items()}


def _grand_totals(
    dense: Mapping[Key, np.ndarray], precision: Mapping[Key, float], totals: np.ndarray, weight: float
) -> np.ndarray:
    """(2,) records and positives. The sum of a table's n cells has n times the variance of one."""
    weights = [weight, *(precision[k] / t[0].size for k, t in dense.items())]
    sums = [totals, *(t.reshape(2, -1).sum(axis=1) for t in dense.values())]
    return np.average(sums, axis=0, weights=weights)


def _main_effects(dense: Mapping[Key, np.ndarray], precision: Mapping[Key, float]) -> dict[int, np.ndarray]:
    """{feature: (2, size) deviations of its marginal from evenness}. A sum over n cells has n times the variance."""
    effects: dict[int, list[tuple[np.ndarray, float]]] = {}
    for key, t in dense.items():
        for axis, i in enumerate(key):
            marginal = t if len(key) == 1 else t.sum(axis=2 - axis)
            width = math.prod(t.shape[1:]) / t.shape[1 + axis]
            centred = marginal - marginal.mean(axis=1, keepdims=True)
            effects.setdefault(i, []).append((centred, precision[key] / width))
    return {i: np.average([c for c, _ in e], axis=0, weights=[w for _, w in e]) for i, e in effects.items()}


def _assemble(key: Key, table: np.ndarray, totals: np.ndarray, effects: Mapping[int, np.ndarray]) -> np.ndarray:
    if len(key) == 1:
        return totals[:, None] / table.shape[1] + effects[key[0]]
    rows, columns = table.shape[1:]
    first, second = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
    interaction = table - first - second + table.mean(axis=(1, 2), keepdims=True)
    mean = totals[:, None, None] / (rows * columns)
    return interaction + mean + effects[key[0]][:, :, None] / columns + effects[key[1]][:, None, :] / rows
