"""Tables whose small cells are hidden: a hidden cell is censored in [0, threshold)."""

import functools
import math
from dataclasses import replace

import numpy as np

from agglearn.observations.cells import parse_noise
from agglearn.observations.counting import Key
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables


def hide_cells(tables: ContingencyTables, threshold: float) -> ContingencyTables:
    """Exact tables without the cells of fewer records than the threshold, as `HAVING COUNT(*) >= threshold` shows them.

    Parameters
    ----------
    tables, threshold : ContingencyTables, float
    """
    visible = {}
    for key, t in tables.tables.items():
        large = t.counts >= threshold
        visible[key] = Table(t.shape, t.cells[large], t.counts[large], t.label_sums[large])
    return replace(tables, tables=visible, noise=parse_noise("none", threshold))


def hidden_cells(tables: ContingencyTables) -> np.ndarray:
    """(m,) whether each cell of all tables, in their order, is hidden."""
    masks = [np.ones(math.prod(t.shape), bool) for t in tables.tables.values()]
    for mask, t in zip(masks, tables.tables.values(), strict=True):
        mask[t.cells] = False
    return np.concatenate(masks)


def fill_hidden(tables: ContingencyTables, count: float | None = None) -> ContingencyTables:
    """The tables with a guess in hidden cells: so many records, at the label's rate.

    Parameters
    ----------
    tables, count : ContingencyTables, float or None
        Tables with a threshold. None guesses the product of the marginals, below the threshold.
    """
    if tables.noise is None or not tables.noise.threshold:
        return tables
    largest, rate = math.ceil(tables.noise.threshold) - 1, tables.positives / tables.total
    filled: dict[Key, Table] = {}
    fractions = [np.full(n, 1 / n) for n in tables.encoder.sizes]  # of the records that have each value
    for key in sorted(tables.tables, key=len):
        (d, c), hidden = tables.dense(*key), np.ones(tables.tables[key].shape, bool)
        hidden.flat[tables.tables[key].cells] = False
        guess = tables.total * functools.reduce(np.multiply.outer, [fractions[i] for i in key])
        d[hidden] = np.minimum(guess, largest)[hidden] if count is None else count
        c[hidden] = d[hidden] * rate
        filled[key] = Table(d.shape, np.arange(d.size), d.ravel(), c.ravel())
        if len(key) == 1:
            fractions[key[0]] = np.maximum(d, 0) / max(np.maximum(d, 0).sum(), 1)
    return replace(tables, tables={key: filled[key] for key in tables.tables})
