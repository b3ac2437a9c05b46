"""Contingency tables of a Spark data frame. They equal the tables that one machine would count."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from agglearn.encoding import BinnedEncoder, Binning, FrameEncoder, Schema
from agglearn.encoding.columns import as_text, present
from agglearn.encoding.frame import fit_features
from agglearn.encoding.labels import binary_label, require_label
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, Unit
from agglearn.observations.counting import Tally
from agglearn.observations.tables import Pairs, select_features, start_tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SCHEMA = "part int, cell long, n long, label_sum long"
ALL_RECORDS = -1  # `part` of the totals
WHOLE = ("tinyint", "smallint", "int", "bigint")


def aggregate(
    dataframe: "DataFrame", label: str | None = None, features: Iterable[str] | None = None, pairs: Pairs = "all", *,
    schema: Schema | None = None, binning: str | Binning | None = None, categorical: Iterable[str] = (),
    positive: object = None, hashed: Mapping[str, int] | None = None, hash_above: tuple[int, int] | None = None,
    cross_buckets: int | None = None, encoder: FrameEncoder | None = None,
) -> ContingencyTables:  # fmt: skip
    """Return the contingency tables of any number of records. The driver holds the occupied cells of all tables.

    Raises DataError as `ContingencyTables.from_records`, and ConfigError where a schema or an encoder decides a
    setting.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
    label, features, pairs, schema, binning, categorical, positive, hashed, hash_above, cross_buckets
        See `ContingencyTables.from_records`.
    encoder : FrameEncoder, optional
        Encoder that was fitted before, for columns with more distinct values than the driver holds.
    """
    learned = {"binning": binning, "categorical": categorical, "hashed": hashed, "hash_above": hash_above}
    if schema is not None:
        schema.refuse(label, positive=positive, encoder=encoder, **learned)
        if schema.unit is not None:
            raise ConfigError(
                f"unit: Spark does not count the records of each {schema.unit!r}; aggregate on one machine"
            )
        label, encoder = schema.label, schema.encoder
    elif encoder is not None and (declared := [name for name, value in learned.items() if value]):
        raise ConfigError(f"{declared[0]}: the encoder declares it; leave it out")
    encoder = encoder and select_features(encoder, features)
    label = require_label(label)
    present([label], dataframe.columns)
    candidates = [c for c in dataframe.columns if c != label]
    columns = encoder.names if encoder else candidates if features is None else list(features)
    present(columns, candidates)
    if schema is not None:
        labels = {schema.positive: 1, schema.negative: 0}
    else:
        values, _ = _distinct(dataframe, label, True)
        labels = dict(zip(as_text(values), binary_label(values, positive).tolist(), strict=True))
    if encoder is None:
        read = functools.partial(_distinct, dataframe)
        encoder = fit_features(columns, read, binning or "deciles", categorical, hashed, hash_above)
    tally = start_tally(encoder, pairs, cross_buckets)
    as_names = [*(not isinstance(f, BinnedEncoder) for f in encoder.features), True]
    names = [*encoder.names, label]
    chosen = [_column(dataframe, n, a).alias(f"c{i}") for i, (n, a) in enumerate(zip(names, as_names, strict=True))]
    work = functools.partial(count, encoder=encoder, labels=labels, pairs=pairs, buckets=cross_buckets)
    partial = dataframe.select(*chosen).mapInPandas(work, SCHEMA)
    counts = partial.groupBy("part", "cell").sum("n", "label_sum").toPandas()
    counts.columns = ["part", "cell", "n", "label_sum"]
    cells, left_out = collect(counts, tally)
    if schema is not None:
        schema.check_labels(tally.positives, tally.total, tally.total + left_out)
    tables = ContingencyTables.from_counts(encoder, cells, tally, label)
    return replace(tables, unit=Unit() if schema and schema.one_row_per_person else None)


def count(
    batches: Iterable[pd.DataFrame], *, encoder: FrameEncoder, labels: dict[str, int], pairs: Pairs, buckets: int | None
) -> Iterator[pd.DataFrame]:
    """Yield the occupied cells of all tables of one partition, totals first. The label is the last column."""
    tally, left_out = start_tally(encoder, pairs, buckets), 0
    for frame in batches:
        y = as_text(frame.iloc[:, -1]).map(labels).to_numpy(float)
        labelled = ~np.isnan(y)  # a declared schema leaves other labels out
        left_out += int((~labelled).sum())
        codes = encoder.encode(frame.iloc[:, :-1].set_axis(encoder.names, axis=1))
        tally.add(codes[labelled], y[labelled].astype(np.int8))
    total = pd.DataFrame({"cell": [0, 1], "n": [tally.total, left_out], "label_sum": [tally.positives, 0]})
    yield total.assign(part=np.int32(ALL_RECORDS))[["part", "cell", "n", "label_sum"]]
    for number, (cells, n, sums) in enumerate(tally.counts().values()):
        yield pd.DataFrame({"part": np.full(len(cells), number, np.int32), "cell": cells, "n": n, "label_sum": sums})


def collect(counts: pd.DataFrame, tally: Tally) -> tuple[dict, int]:
    """Return {key: (cells, counts, label sums)} and the records left out. Totals go to the tally."""
    counts = counts.sort_values(["part", "cell"])
    bounds = np.searchsorted(counts["part"], np.arange(ALL_RECORDS, len(tally.keys) + 1))
    columns = [counts[c].to_numpy(np.int64) for c in ("cell", "n", "label_sum")]
    tally.total, tally.positives = int(columns[1][0]), int(columns[2][0])
    cells = {k: tuple(c[bounds[i] : bounds[i + 1]] for c in columns) for i, k in enumerate(tally.keys, start=1)}
    return cells, int(columns[1][1])


def _distinct(dataframe: "DataFrame", name: str, as_names: bool) -> tuple[pd.Series, np.ndarray]:
    counts = dataframe.select(_column(dataframe, name, as_names).alias("value")).groupBy("value").count().toPandas()
    if counts.empty:
        raise DataError("there are no records to aggregate")
    return counts["value"].rename(name), counts["count"].to_numpy()


def _column(dataframe: "DataFrame", name: str, as_names: bool) -> "Column":
    """Whole numbers that are names go as text, because a null would make them inexact."""
    column = dataframe["`" + name.replace("`", "``") + "`"]
    return column.cast("string") if as_names and dict(dataframe.dtypes)[name] in WHOLE else column
