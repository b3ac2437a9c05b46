"""Contingency tables of a Spark data frame: partial counts beside the data, added up; equal to one machine's.

Encoders are fitted on the driver from the distinct values of one column at a time. Then one pass counts all tables:
every partition with the kernels of `agglearn.observations`, so that only occupied cells travel.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from agglearn.encoding import BinnedEncoder, FrameEncoder, Schema
from agglearn.encoding import binning as binning_of
from agglearn.encoding.columns import as_text, present
from agglearn.encoding.labels import binary_label
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables
from agglearn.observations.counting import Tally
from agglearn.observations.tables import named_label, selected, tally_of
from agglearn.spark.fitting import fitted

SCHEMA = "part int, cell long, n long, label_sum long"
ALL_RECORDS = -1  # "part" that holds the totals
WHOLE = ("tinyint", "smallint", "int", "bigint")


def aggregate(
    dataframe,
    label: str | None = None,
    features: Iterable[str] | None = None,
    pairs="all",
    *,
    schema: Schema | None = None,
    binning=None,
    categorical: Iterable[str] = (),
    positive=None,
    hashed: Mapping[str, int] | None = None,
    hash_above: tuple[int, int] | None = None,
    cross_buckets: int | None = None,
    encoder: FrameEncoder | None = None,
) -> ContingencyTables:
    """Aggregate a `pyspark.sql.DataFrame` of any number of records.

    Parameters as in `ContingencyTables.from_records` (a schema included), and `encoder`: one fitted before, for columns with
    more distinct values than the driver holds. The driver also holds the occupied cells of all tables.

    Raises
    ------
    DataError : as `ContingencyTables.from_records`. ConfigError : a setting that the schema or the encoder declares.
    """
    learned = {"binning": binning, "categorical": categorical, "hashed": hashed, "hash_above": hash_above}
    if schema is not None:
        schema.refuse(label, positive=positive, encoder=encoder, **learned)
        label, encoder = schema.label, schema.encoder
    elif encoder is not None:
        _refuse_beside_encoder(learned)
    encoder = encoder and selected(encoder, features)
    present([named_label(label)], dataframe.columns)
    others = [c for c in dataframe.columns if c != label]
    columns = encoder.names if encoder else others if features is None else list(features)
    present(columns, others)
    labels = {schema.positive: 1, schema.negative: 0} if schema else label_values(dataframe, label, positive)
    if encoder is None:
        encoder = fit_encoder(dataframe, columns, binning or "deciles", categorical, hashed, hash_above)
    tally = tally_of(encoder, pairs, cross_buckets)
    as_names = [*(not isinstance(f, BinnedEncoder) for f in encoder.features), True]
    names = [*encoder.names, label]
    chosen = [_column(dataframe, n, a).alias(f"c{i}") for i, (n, a) in enumerate(zip(names, as_names, strict=True))]
    work = functools.partial(count, encoder=encoder, labels=labels, pairs=pairs, buckets=cross_buckets)
    parts = dataframe.select(*chosen).mapInPandas(work, SCHEMA)
    found = parts.groupBy("part", "cell").sum("n", "label_sum").toPandas()
    found.columns = ["part", "cell", "n", "label_sum"]
    return ContingencyTables.from_counts(encoder, collected(found, tally), tally, label)


def _refuse_beside_encoder(learned: dict) -> None:
    """ConfigError for a setting of what would be learned, where an encoder is given."""
    for name, value in learned.items():
        if value:
            raise ConfigError(f"{name}: the encoder declares it; leave it out")


def fit_encoder(dataframe, columns, binning, categorical, hashed, hash_above=None) -> FrameEncoder:
    """The encoder that `FrameEncoder.fit` makes, from the value counts of one column at a time."""
    how, named, hashed = binning_of(binning), set(present(categorical, columns)), dict(hashed or {})
    present(hashed, columns)
    parts = []
    for name in columns:
        text = name in named or name in hashed
        counts = dataframe.select(_column(dataframe, name, text).alias("value")).groupBy("value").count().toPandas()
        if counts.empty:
            raise DataError("there are no records to aggregate")
        values, rows = counts["value"].rename(name), counts["count"].to_numpy()
        parts.append(fitted(values, rows, how, name in named, hashed.get(name), hash_above))
    return FrameEncoder(tuple(parts))


def label_values(dataframe, label: str, positive) -> dict[str, int]:
    """0 or 1 for each spelling of the label."""
    values = (
        dataframe.select(_column(dataframe, label, True).alias("value")).distinct().toPandas()["value"].rename(label)
    )
    if values.empty:
        raise DataError("there are no records to aggregate")
    return dict(zip(as_text(values), binary_label(values, positive).tolist(), strict=True))


def count(
    batches: Iterable[pd.DataFrame], *, encoder: FrameEncoder, labels: dict, pairs, buckets
) -> Iterator[pd.DataFrame]:
    """Occupied cells of all tables of one partition: features in the encoder's order, then the label. On executors."""
    tally = tally_of(encoder, pairs, buckets)
    for frame in batches:
        y = as_text(frame.iloc[:, -1]).map(labels).to_numpy(float)
        kept = ~np.isnan(y)  # a declared schema leaves other labels out
        tally.add(encoder.encode(frame.iloc[:, :-1].set_axis(encoder.names, axis=1))[kept], y[kept].astype(np.int8))
    total = pd.DataFrame({"cell": [0], "n": [tally.total], "label_sum": [tally.positives]})
    yield total.assign(part=np.int32(ALL_RECORDS))[["part", "cell", "n", "label_sum"]]
    for part, (cells, n, sums) in enumerate(tally.counts().values()):
        yield pd.DataFrame({"part": np.full(len(cells), part, np.int32), "cell": cells, "n": n, "label_sum": sums})


def collected(found: pd.DataFrame, tally: Tally) -> dict:
    """{key: (cells, counts, label sums)} of all partitions together; totals go to the tally."""
    found = found.sort_values(["part", "cell"])
    bounds = np.searchsorted(found["part"], np.arange(ALL_RECORDS, len(tally.keys) + 1))
    columns = [found[c].to_numpy(np.int64) for c in ("cell", "n", "label_sum")]
    tally.total, tally.positives = int(columns[1][0]), int(columns[2][0])
    return {k: tuple(c[bounds[i] : bounds[i + 1]] for c in columns) for i, k in enumerate(tally.keys, start=1)}


def _column(dataframe, name: str, as_names: bool):
    """A column to send; whole numbers that are names go as text, since a null would make them inexact."""
    column = dataframe["`" + name.replace("`", "``") + "`"]
    return column.cast("string") if as_names and dict(dataframe.dtypes)[name] in WHOLE else column
