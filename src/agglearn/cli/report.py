"""A sentence on how well a model reproduces the contingency tables that it was fitted to."""

import copy

import numpy as np
import pandas as pd

from agglearn.encoding import UNSEEN, FrameEncoder
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables, Table


class _Codes(FrameEncoder):
    """Encoder whose input are codes in place of raw values."""

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        return frame.to_numpy(np.int32)


def predict_codes(model: Estimator, codes: np.ndarray) -> np.ndarray:
    model = copy.copy(model)
    model.encoder_ = _Codes(model.encoder_.features)
    return model.predict_proba(pd.DataFrame(codes))[:, 1]


def reproduction(model: Estimator, tables: ContingencyTables) -> str:
    """Misfit of the counts for a joint model of features and label, else misfit of the label's rates."""
    if hasattr(model, "misfit_"):
        misfit = f"{100 * model.misfit_[-1][0]:.2g} % (sum of |differences| over sum of counts)"
        return f"its own samples differ from the tables' counts by {misfit}"
    keys = used_tables(model, tables)
    error, records = 0.0, 0.0
    for key in keys:
        table = tables.tables[key]
        predicted = label_rates(model, key, table)
        error += np.abs(predicted * table.counts - table.label_sums).sum()
        records += table.counts.sum()
    if hasattr(model, "pairs_"):
        source = "the table " + " × ".join(repr(tables.names[i]) for i in keys[0])
    else:
        source = f"the tables of single features ({len(keys)}; pairs are not used)"
    return f"it uses {source} and misses the label's rate there by {error / max(records, 1):.2g} on average"


def used_tables(model: Estimator, tables: ContingencyTables) -> list[tuple[int, ...]]:
    """Keys of the tables that the predictions rest on: the pair of the model, or all single features."""
    if hasattr(model, "pairs_"):
        return [tuple(sorted(tables.names.index(n) for n in model.pairs_[model.best_]))]
    return [k for k in tables.tables if len(k) == 1]


def label_rates(model: Estimator, key: tuple[int, ...], table: Table) -> np.ndarray:
    """(m,) P(Y = 1) of the model for each occupied cell of a table, with all other features unseen."""
    codes = np.full((len(table.cells), len(model.encoder_.features)), UNSEEN, dtype=np.int32)
    for feature, values in zip(key, np.unravel_index(table.cells, table.shape), strict=True):
        codes[:, feature] = values
    return predict_codes(model, codes)


def smallest_cells(tables: ContingencyTables, below: int = 10) -> tuple[int, float, int]:
    """(occupied cells, smallest count, cells with fewer than `below` records) over all tables."""
    counts = np.concatenate([t.counts for t in tables.tables.values()])
    return len(counts), float(counts.min()), int((counts < below).sum())
