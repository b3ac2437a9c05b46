"""Compression of vocabularies: clusters learnt from tables of training records, judged on those and on held-out ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.datasets import Dataset, RecordStore, TablePopulation
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.encoding.columns import is_continuous
from agglearn.errors import DataError
from agglearn.evaluation.information import bucketing_bound, mutual_information, predictive_information
from agglearn.observations import ContingencyTables, Observation, Table
from agglearn.settings import check
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.keys import NoKeys, RowKeys
from agglearn.tasks.splitting import split_overlap, split_rows
from agglearn.vocabulary import OptimalQuantizer
from agglearn.vocabulary.shrinkage import EMPIRICAL, shrunk_sums


@dataclass(frozen=True)
class HeldOut(Truth):
    """Tables of single features, of training and of held-out records; values never seen in training are in none."""

    train: ContingencyTables
    test: ContingencyTables

    def save(self, folder: Path) -> None:
        self.train.save(folder / "train")
        self.test.save(folder / "test")

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls(ContingencyTables.load(folder / "train"), ContingencyTables.load(folder / "test"))

    def units(self) -> list[np.ndarray]:
        return [part for t in self.test.tables.values() for part in (t.counts, t.label_sums)]


class Compression(Task):
    """Tables of single features of training records are seen: of categorical features, values by number.

    Information is in nats and added up over features. Held-out measures take each held-out record's cluster; values
    that training never showed count in the cluster `unseen_`.

    * `information_loss`: (Σ X_i − Z_i) / Σ X_j, in counted rates of training records (Bateni et al. 2019, section 3.1).
    * `information_ratio`, `loss_ratio`: information kept, and lost, against the optimum for the same budget.
    * `bound_ratio`: what bucketing loses against Δ_max of its theorem 6, the largest over features.
    * `heldout_information`: Σ I(Z; C) among held-out records.
    * `heldout_predictive`: what the clusters' training rates tell of held-out labels, the mean of log p(y|z)/p(y), added up:
      I(Z; C) less what wrong rates cost. Rates of 0 and 1 are taken as half a record away from it.
    * `heldout_predictive_shrunk`: the same with each value's rate shrunk (beta-binomial) before clusters add up.
    """

    MEASURES: ClassVar = {
        "information_loss": ("", "lower"),
        "information": ("nat", "higher"),
        "information_ratio": ("", "higher"),
        "loss_ratio": ("", "lower"),
        "bound_ratio": ("", "lower"),
        "heldout_information": ("nat", "higher"),
        "heldout_predictive": ("nat", "higher"),
        "heldout_predictive_shrunk": ("nat", "higher"),
        "clusters": ("", ""),
        "values": ("", ""),
    }
    OBSERVATIONS: ClassVar = ((Dataset, ContingencyTables, RowKeys, NoKeys),)
    truth: ClassVar = HeldOut

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        self.check_observation(kind, params)
        if isinstance(source.data, RecordStore):
            check(RowKeys, source.params, source.name)
        data = source.data
        held = HeldOut(data.train, data.test) if isinstance(data, TablePopulation) else counted(source, seed)
        return held.train, held

    def overlap(self, source: Source) -> float:
        return split_overlap(source)

    def measure(self, estimator, truth: HeldOut, measures: list[str]) -> Iterator[Measurement]:
        if "information_loss" in measures:
            yield Measurement("information_loss", estimator.relative_loss_)
        if "information" in measures:
            yield Measurement("information", estimator.information_)
        if "clusters" in measures:
            yield Measurement("clusters", estimator.n_clusters_)
        if "values" in measures:
            yield Measurement("values", sum(len(t.cells) for t in truth.train.tables.values()))
        if {"information_ratio", "loss_ratio"} & set(measures):
            yield from _against_optimum(estimator, truth, measures)
        if "bound_ratio" in measures and hasattr(estimator, "n_buckets_"):
            yield Measurement("bound_ratio", max(_bound_ratio(estimator, truth, n) for n in estimator.features_))
        yield from _held_out(estimator, truth, measures)


def counted(source: Source, seed: int) -> HeldOut:
    """Tables of categorical features of stored or drawn rows, one feature at a time."""
    train, test = split_rows(source, seed)
    y = source.data.labels() if isinstance(source.data, RecordStore) else source.data.y
    for name, rows in (("training", train), ("test", test)):
        if len(np.unique(y[rows])) < 2:
            raise DataError(f"{source.name}: all {len(rows)} {name} rows have the same label; use more rows")
    encoders, tables = [], ({}, {})
    for name, column in _categorical(source):
        codes, size = _numbered(column, train)
        for part, rows in zip(tables, (train, test), strict=True):
            part[len(encoders),] = _table(codes[rows], y[rows], size)
        encoders.append(CodedEncoder(name, size))
    if not encoders:
        raise DataError(f"{source.name}: there are no categorical features")
    encoder = FrameEncoder(tuple(encoders))
    totals = [(len(rows), int(y[rows].sum())) for rows in (train, test)]
    return HeldOut(*(ContingencyTables(encoder, "label", *n, t) for n, t in zip(totals, tables, strict=True)))


def _categorical(source: Source) -> Iterator[tuple[str, pd.Series]]:
    data, named = source.data, source.entry.get("features", {}).get("categorical", [])
    for name in data.names if isinstance(data, RecordStore) else data.frame.columns:
        column = data.column(name) if isinstance(data, RecordStore) else data.frame[name]
        if name in named or not is_continuous(column):
            yield name, column


def _numbered(column: pd.Series, train: np.ndarray) -> tuple[np.ndarray, int]:
    """Number of each row's value, −1 for values not among the training rows; a missing value is one, too."""
    at, values = pd.factorize(column, use_na_sentinel=False)
    seen = np.zeros(len(values), bool)
    seen[at[train]] = True
    order = np.full(len(values), -1)
    known = np.flatnonzero(seen)
    order[known[np.argsort(pd.Series(values)[known].astype(str).to_numpy(), kind="stable")]] = np.arange(len(known))
    return order[at], len(known)


def _table(codes: np.ndarray, y: np.ndarray, size: int) -> Table:
    known = codes >= 0
    counts, sums = np.bincount(codes[known], minlength=size), np.bincount(codes[known], y[known], size).astype(np.int64)
    cells = np.flatnonzero(counts)
    return Table((size,), cells, counts[cells], sums[cells])


def _against_optimum(estimator, truth: HeldOut, measures: list[str]) -> Iterator[Measurement]:
    kept, lost = _optimum(truth.train, estimator.budget, estimator.min_count)
    if "information_ratio" in measures:
        yield Measurement("information_ratio", estimator.information_ / kept)
    if "loss_ratio" in measures and lost > 0:
        yield Measurement("loss_ratio", estimator.information_loss_ / lost)


OPTIMA: dict = {}  # of this process: the methods of a batch are compared with the same ones


def _optimum(tables: ContingencyTables, budget, min_count) -> tuple[float, float]:
    """What the optimum keeps and loses, in nats."""
    key = tables.digest, budget, min_count
    if key not in OPTIMA:
        best = OptimalQuantizer(budget, min_count=min_count).fit(tables)
        OPTIMA[key] = best.information_, best.information_loss_
    return OPTIMA[key]


def _bound_ratio(estimator, truth: HeldOut, name: str) -> float:
    i = truth.train.names.index(name)
    n, c = truth.train.dense(i)
    lost = mutual_information(n, c) - estimator.feature_information_[name]
    return lost / bucketing_bound(estimator.n_buckets_[name], c.sum() / n.sum())


def _held_out(estimator, truth: HeldOut, measures: list[str]) -> Iterator[Measurement]:
    wanted = [m for m in measures if m.startswith("heldout_")]
    if not wanted:
        return
    found = [_held_out_feature(estimator, truth, i, name, wanted) for i, name in enumerate(truth.train.names)]
    for measure in wanted:
        yield Measurement(measure, sum(f[measure] for f in found))


def _held_out_feature(estimator, truth: HeldOut, i: int, name: str, wanted: list[str]) -> dict[str, float]:
    labels, unseen = estimator.labels_[name], estimator.unseen_[name]
    size = max(int(labels.max()), unseen) + 1
    train, test = ([np.bincount(labels, v, size) for v in t.dense(i)] for t in (truth.train, truth.test))
    test[0][unseen] += truth.test.total - test[0].sum()
    test[1][unseen] += truth.test.positives - test[1].sum()
    n, c = train
    out, base = {}, truth.train.positives / truth.train.total
    if "heldout_information" in wanted:
        out["heldout_information"] = mutual_information(*test)
    if "heldout_predictive" in wanted:
        half = 0.5 / np.maximum(n, 1)
        rates = np.clip(c / np.maximum(n, 1), half, 1 - half)
        out["heldout_predictive"] = predictive_information(*test, rates, base)
    if "heldout_predictive_shrunk" in wanted:
        counts, sums = truth.train.dense(i)
        seen = counts > 0
        c = np.bincount(labels[seen], shrunk_sums(counts[seen], sums[seen], EMPIRICAL), size)
        out["heldout_predictive_shrunk"] = predictive_information(*test, c / np.maximum(n, 1), base)
    return out
