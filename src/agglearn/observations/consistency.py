"""What may be done to noisy tables without costing privacy: cutting counts, and making tables agree with one another.

Agreement: every table is a sum of orthogonal parts (grand mean, main effects, interaction). Tables agree when each part
is the same wherever it occurs, so the weighted least-squares projection is, part by part, the mean of what the tables
say of it, weighted by precision. Noise is independent and alike within a table.
"""

import math
from dataclasses import replace

import numpy as np

from agglearn.observations.table import Table, TableSet, table_name
from agglearn.privacy.budget import TOTALS
from agglearn.privacy.mechanisms import Mechanism

__all__ = ["clipped", "projected"]


def clipped(tables: TableSet) -> TableSet:
    """Counts of at least 0, and label sums between 0 and the count. Small counts grow in the mean."""
    if tables.noise is None:
        return tables
    cut = {}
    for key, t in tables.tables.items():
        counts = np.maximum(t.counts, 0)
        cut[key] = replace(t, counts=counts, label_sums=np.clip(t.label_sums, 0, counts))
    return _said(replace(tables, tables=cut), "clipped")


def projected(tables: TableSet) -> TableSet:
    """The nearest tables that agree, counts and label sums apart: all have one total, and pairs have the marginals of their
    features. Weights are the inverse variances that `noise` states; exact tables agree already. Where label sums alone
    have noise, counts stay as they are. Hashed pairs have no marginals and stay."""
    if tables.noise is None:
        return tables
    hashed, released = tables.hashed_pairs, _released_variances(tables)
    dense = {k: np.stack(t.dense()) for k, t in tables.tables.items() if k not in hashed}
    precision = {k: 1 / released[k] for k in dense}
    totals = np.array([tables.total, tables.positives], float)
    agreed = _grand_totals(dense, precision, totals, 1 / released[TOTALS])
    effects = _main_effects(dense, precision)
    mended = {k: _assembled(k, t, agreed, effects) for k, t in dense.items()}
    new = {k: Table(t[0].shape, np.arange(t[0].size), t[0].ravel(), t[1].ravel()) for k, t in mended.items()}
    total = max(float(agreed[0]), 2.0)
    positives = min(max(float(agreed[1]), 1.0), total - 1)
    return _said(replace(tables, total=total, positives=positives, tables=tables.tables | new), "projected")


def noise_variances(tables: TableSet) -> dict:
    """{table: variance of the noise on one of its cells} as the tables are, 0 without noise. A projected cell has the
    variance of its table's own interaction, and what is left of that of the main effects and the total."""
    if tables.noise is None:
        return dict.fromkeys(tables.tables, 0.0)
    released = _released_variances(tables)
    if tables.noise.postprocessing != "projected":
        return {k: released[k] for k in tables.tables}
    plain = [k for k in tables.tables if k not in tables.hashed_pairs]
    total, effects = 1 / released[TOTALS], {}
    for key in plain:
        size = math.prod(tables.tables[key].shape)
        total += 1 / (released[key] * size)
        for i in key:
            effects[i] = effects.get(i, 0.0) + tables.encoder.sizes[i] / (released[key] * size)
    found = {k: released[k] for k in tables.tables}
    for key in plain:
        shape = tables.tables[key].shape
        size = math.prod(shape)
        own = released[key] * math.prod(1 - 1 / n for n in shape) if len(key) == 2 else 0.0
        mains = sum((1 - 1 / n) / effects[i] / (size / n) ** 2 for i, n in zip(key, shape, strict=True))
        found[key] = own + mains + 1 / (total * size**2)
    return found


def _released_variances(tables: TableSet) -> dict:
    """{table, …, TOTALS: variance of the noise on each of its numbers} as released."""
    noise = tables.noise
    scale = lambda key: (noise.scales or {}).get(table_name(tables, key), noise.scale)  # noqa: E731
    return {k: Mechanism(noise.mechanism, scale(k)).variance for k in (*tables.tables, TOTALS)}


def _grand_totals(dense: dict, precision: dict, totals: np.ndarray, weight: float) -> np.ndarray:
    """(2,) records and positives: what a table's n cells add up to has n times the variance of one."""
    weights = [weight, *(precision[k] / t[0].size for k, t in dense.items())]
    sums = [totals, *(t.reshape(2, -1).sum(axis=1) for t in dense.values())]
    return np.average(sums, axis=0, weights=weights)


def _main_effects(dense: dict, precision: dict) -> dict:
    """{feature: (2, size) deviations of its marginal from evenness}; a sum over n cells has n times the variance."""
    found: dict = {}
    for key, t in dense.items():
        for axis, i in enumerate(key):
            marginal = t if len(key) == 1 else t.sum(axis=2 - axis)
            others = math.prod(t.shape[1:]) / t.shape[1 + axis]
            centred = marginal - marginal.mean(axis=1, keepdims=True)
            found.setdefault(i, []).append((centred, precision[key] / others))
    return {i: np.average([c for c, _ in said], axis=0, weights=[w for _, w in said]) for i, said in found.items()}


def _assembled(key, table: np.ndarray, totals: np.ndarray, effects: dict) -> np.ndarray:
    """A table with its own interaction, and mean and main effects as agreed."""
    if len(key) == 1:
        return totals[:, None] / table.shape[1] + effects[key[0]]
    rows, columns = table.shape[1:]
    first, second = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
    interaction = table - first - second + table.mean(axis=(1, 2), keepdims=True)
    i, j = key
    return (
        interaction
        + totals[:, None, None] / (rows * columns)
        + effects[i][:, :, None] / columns
        + effects[j][:, None, :] / rows
    )


def _said(tables: TableSet, what: str) -> TableSet:
    """The tables with the step recorded beside the noise."""
    return replace(tables, noise=replace(tables.noise, postprocessing=what))
