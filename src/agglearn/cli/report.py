"""What tables hold, and how well a model reproduces those that it was fitted to, in sentences."""

import numpy as np

from agglearn.encoding import UNSEEN, BinnedEncoder, CategoricalEncoder, HashedEncoder
from agglearn.encoding.levels import Levels
from agglearn.estimator import Estimator, predict_codes
from agglearn.observations import ContingencyTables, Table
from agglearn.text import count_text, list_some, visible

KINDS = {BinnedEncoder: "bins", CategoricalEncoder: "categories", HashedEncoder: "buckets"}


def reproduction(model: Estimator, tables: ContingencyTables) -> str:
    """Misfit of the counts for a joint model of features and label, else misfit of the label's rates."""
    if hasattr(model, "misfit_"):
        misfit = f"{100 * model.misfit_[-1][0]:.2g} % (sum of |differences| over sum of counts)"
        return f"its own samples differ from the tables' counts by {misfit}"
    if hasattr(model, "pairs_"):
        keys = [tuple(sorted(tables.names.index(n) for n in model.pairs_[model.best_]))]
        source = "the table " + " × ".join(repr(tables.names[i]) for i in keys[0])
    else:
        keys = [k for k in tables.tables if len(k) == 1]
        source = f"the tables of single features ({len(keys)}; pairs are not used)"
    error, records = 0.0, 0.0
    for key in keys:
        table = tables.tables[key]
        predicted = label_rates(model, key, table)
        error += np.abs(predicted * table.counts - table.label_sums).sum()
        records += table.counts.sum()
    return f"it uses {source} and misses the label's rate there by {error / max(records, 1):.2g} on average"


def label_rates(model: Estimator, key: tuple[int, ...], table: Table) -> np.ndarray:
    """(m,) P(Y = 1) of the model for each occupied cell of a table, with all other features unseen."""
    codes = np.full((len(table.cells), len(model.encoder_.features)), UNSEEN, dtype=np.int32)
    for feature, values in zip(key, np.unravel_index(table.cells, table.shape), strict=True):
        codes[:, feature] = values
    return predict_codes(model, codes)


def describe(tables: ContingencyTables, out: str) -> None:
    """Print what the tables of a folder hold."""
    features, described, outside = tables.encoder.features, [], []
    names = {kind: [visible(f.name) for f in features if isinstance(f, kind)] for kind in KINDS}
    for i, f in enumerate(features):
        assert isinstance(f, Levels)  # as all encoders of records
        last = [*["missing"] * f.has_missing, *["other"] * f.has_other]
        described.append(f"{f.name} ({' and '.join([f'{f.size - len(last)} {KINDS[type(f)]}', *last])})")
        if f.has_other and (i,) in tables.tables and (n := tables.dense(i)[0][-1]):
            outside.append(f"{f.name} {n:,.0f}")
    rate = tables.positives / tables.total
    cells, smallest, small = smallest_cells(tables)
    print(
        f"{out}: {count_text(round(tables.total), 'record')}, {tables.positives:,.0f} with label 1 ({100 * rate:.3g} %)"
    )
    print(f"{count_text(len(described), 'feature')}, by a {tables.encoder.schema} schema: {list_some(described)}")
    if tables.encoder.schema == "learned":
        print(f"taken for numbers, in bins: {', '.join(names[BinnedEncoder]) or 'none'}")
    if names[HashedEncoder]:
        print(f"hashed: {', '.join(names[HashedEncoder])}")
    if outside:
        print(f"records that the schema has no level of their own for: {list_some(outside)}")
    print(f"{count_text(len(tables.tables), 'table')}, {count_text(cells, 'cell')} with records")
    if tables.unit and tables.unit.column:
        chosen = "; agglearn private chooses, up to that" if tables.unit.sizes else ""
        print(f"at most {tables.unit.max_rows} records of each {visible(tables.unit.column)} count{chosen}")
    exact = "Counts are exact, without noise" if tables.noise is None else f"Stated: {tables.noise.summary}"
    print(f"the smallest cell holds {smallest:g}; {count_text(small, 'cell')} with fewer than 10 records. {exact}")


def smallest_cells(tables: ContingencyTables, below: int = 10) -> tuple[int, float, int]:
    """(occupied cells, smallest count, cells with fewer than `below` records) over all tables."""
    counts = np.concatenate([t.counts for t in tables.tables.values()])
    return len(counts), float(counts.min(initial=tables.total)), int((counts < below).sum())
