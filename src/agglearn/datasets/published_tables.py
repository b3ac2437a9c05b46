"""Contingency tables that a publisher released with noise, and the records that came with them (AdKDD'21)."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from agglearn.datasets.base import Stored
from agglearn.encoding import FrameEncoder
from agglearn.encoding.columns import present
from agglearn.encoding.csv_files import CSVFormat, about, read_csv, read_csv_blocks
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, NoiseSpec
from agglearn.observations.cells import CellReader, Cells, learn_encoder, split_tables
from agglearn.observations.counting import buckets_of
from agglearn.observations.gaussian_noise import promised_epsilon
from agglearn.observations.table import table_name
from agglearn.settings import Positive
from agglearn.text import count_text

logger = logging.getLogger(__name__)

TABLES = "tables"  # folder beside the records
DELTA = 1e-5  # at which ε is stated
UNPROTECTED = "the publisher drew this noise, and left out cells of few records"


class PublishedTables(Stored):
    """The noisy tables of the AdKDD'21 challenge, and its labelled records for training and test.

    `aggregated_noisy_data_singles` has the columns feature_1_value, feature_1_id, count, nb_clicks and nb_sales, and a
    row for each value. `aggregated_noisy_data_pairs` has feature_2_value and feature_2_id besides. Feature i is the
    column hash_i of `X_train` and `X_test`. Only features in `features.categorical` are read. A cell without a row
    counts as 0. The totals are medians over the features' tables, as in the authors' public code.

    Parameters
    ----------
    sigma : float
        Standard deviation of the Gaussian noise on each number.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("mirror", "files", "label.column", "features.categorical", "split_like")

    sigma: Positive = 17.0

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        paths = {name.partition(".")[0]: path for name, path in files.items()}
        names, label = self.entry["features"]["categorical"], self.entry["label"]["column"]
        singles, pairs = (paths[f"aggregated_noisy_data_{k}"] for k in ("singles", "pairs"))
        read_tables(singles, pairs, names, label, self.sigma).save(out / TABLES)
        train, test = (_read_records(paths[f"X_{k}"], paths[f"y_{k}"], names, label) for k in ("train", "test"))
        frame, bounds = pd.concat([train, test], ignore_index=True), np.cumsum([0, len(train), len(test)]).tolist()
        return self.write(out, frame[names], frame[label].to_numpy(np.int8), {"train": bounds[:2], "test": bounds[1:]})


def read_tables(singles: Path, pairs: Path, names: Sequence[str], label: str, sigma: float) -> ContingencyTables:
    """The tables of the features hash_i in `names`, of single ones and of pairs. DataError for a feature without one."""
    ids, numbers = [int(name.removeprefix("hash_")) for name in names], ("count", f"nb_{label}s")
    of_one, of_two = (
        list(split_tables(_read_cells(path, ids, order, numbers), *numbers))
        for path, order in ((singles, 1), (pairs, 2))
    )
    learned = learn_encoder(of_one)
    if absent := [name for name in names if name not in learned.names]:
        raise DataError(f"{singles}: feature {absent[0]!r} has no row")
    encoder, noise = learned.select(names), NoiseSpec("gaussian", sigma, math.inf, DELTA, unprotected=UNPROTECTED)
    tables, _ = CellReader(encoder, noise, "sum").tables([*of_one, *(_counted(encoder, cells) for cells in of_two)])
    sums = [[tables[k,].counts.sum(), tables[k,].label_sums.sum()] for k in range(len(ids))]
    total, positives = np.median(sums, axis=0).tolist()
    noise = replace(noise, epsilon=promised_epsilon(sigma, len(tables), DELTA))
    return ContingencyTables(encoder, label, total, positives, tables, noise)


def _counted(encoder: FrameEncoder, cells: Cells) -> Cells:
    """The cells of values that have a count of their own."""
    labels = {feature.name: feature.labels for feature in encoder.features}
    counted = np.all([pd.Series(v).isin(labels[n]) for n, v in zip(cells.names, cells.values.T, strict=True)], axis=0)
    if lost := int((~counted).sum()):
        logger.info(f"{list(cells.names)}: left out: {count_text(lost, 'cell')} with a value without a count")
    values, counts, sums = (array[counted] for array in (cells.values, cells.counts, cells.label_sums))
    return Cells(cells.columns, cells.names, values, counts, sums)


def _read_records(features: Path, labels: Path, names: Sequence[str], label: str) -> pd.DataFrame:
    with about(features):
        records = pd.concat([read_csv(path, CSVFormat(), {}) for path in (features, labels)], axis=1)
        records = records[present([*names, label], records.columns)]
        if records.isna().any(axis=None):
            raise DataError(f"{labels.name} has another number of rows, or a value is missing")
    return records


def _read_cells(path: Path, ids: Sequence[int], order: int, numbers: Sequence[str]) -> pd.DataFrame:
    """Rows of the features `ids` in tables of so many features. The file is read in blocks."""
    keys = [f"feature_{k}_{field}" for field in ("id", "value") for k in range(1, order + 1)]
    types = dict.fromkeys(keys, pa.int64()) | dict.fromkeys(numbers, pa.float64())
    frames = map(pa.Table.to_pandas, read_csv_blocks(path, CSVFormat(), types))
    return pd.concat([f[f[keys[:order]].isin(ids).all(axis=1)] for f in frames], ignore_index=True)


def hash_pairs(tables: ContingencyTables, buckets: int) -> ContingencyTables:
    """The tables with pairs of more cells hashed into `buckets`, as `Tally` does. A bucket sums the noise of its cells."""
    large = {k: t for k, t in tables.tables.items() if math.prod(t.shape) > buckets}
    merged = {k: t.merge_cells(buckets_of(t.cells, buckets), (buckets,)) for k, t in large.items()}
    assert tables.noise is not None
    summed = {k: max(len(t.cells), 1) / max(len(merged.get(k, t).cells), 1) for k, t in tables.tables.items()}
    scales = {table_name(tables, k): tables.noise.scale * math.sqrt(n) for k, n in summed.items()}
    noise = replace(tables.noise, scale=max(scales.values()), scales=scales)
    return replace(tables, tables=tables.tables | merged, noise=noise)
