"""Compression of vocabularies: clusters are learned from tables of training records and judged on held-out records."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from agglearn.datasets import Dataset, RecordStore, TablePopulation
from agglearn.datasets.simulated import feature_table
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.encoding.columns import is_continuous
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.evaluation.information import bucketing_bound, mutual_information, predictive_information
from agglearn.observations import ContingencyTables, Observation, Table
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.keys import NoKeys, RowKeys
from agglearn.tasks.measures import Measurement, Measurements, higher, lower, neither, select
from agglearn.tasks.splitting import check_labels, split_overlap, split_rows

ATTRIBUTES = {"information_loss": "relative_loss_", "information": "information_", "clusters": "n_clusters_"}


@dataclass(frozen=True)
class HeldOut(Truth):
    train: ContingencyTables
    test: ContingencyTables

    def units(self) -> list[np.ndarray]:
        return [array for t in self.test.tables.values() for array in (t.counts, t.label_sums)]


class Compression(Task[HeldOut]):
    """Observe tables of categorical features, with numbered values. Information is in nats and added up over features.

    * `information_loss`: (Σ X_i − Z_i) / Σ X_j, in counted rates of training records (Bateni et al. 2019, section 3.1).
    * `information_ratio`, `loss_ratio`: retained and lost information over those of the optimum for the same budget.
    * `bound_ratio`: loss of bucketing over Δ_max of its theorem 6, the largest over features.
    * `rounds`, `machine_size`: of the distributed algorithm, and `rounds_ratio`, the rounds over log n to the base 1/(1 − ε)
      (theorem 5), n the number of values. `space_ratio`: `machine_size` over the mean of all machines.
    * `heldout_information`: Σ I(Z;C) among held-out records. Values that no training record has belong to `unseen_`.
    * `heldout_predictive`: mean of log p(y|z)/p(y) over held-out labels, with the clusters' training rates, added up.
      It is I(Z;C) less the cost of wrong rates. Rates of 0 and 1 move by half a record. `heldout_predictive_shrunk`:
      the same with each value's rate shrunk (beta-binomial) before clusters add up.
    """

    MEASURES: ClassVar = (
        higher("information_ratio")
        | higher("information", "heldout_information", "heldout_predictive", "heldout_predictive_shrunk", unit="nat")
        | lower("information_loss", "loss_ratio")
        | neither("clusters", "values", "rounds", "machine_size", "bound_ratio", "rounds_ratio", "space_ratio")
    )
    OBSERVATIONS: ClassVar = ((Dataset, ContingencyTables, RowKeys, NoKeys),)
    truth: ClassVar = HeldOut

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, HeldOut]:
        self.check_observation(inputs, kind, params)
        data = inputs.data
        truth = HeldOut(data.train, data.test) if isinstance(data, TablePopulation) else count_tables(inputs, seed)
        return truth.train, truth

    def overlap(self, inputs: TaskInput) -> float:
        return split_overlap(inputs)

    def measure(self, estimator: Estimator, truth: HeldOut, measures: list[str]) -> Measurements:
        for measure in measures:
            if measure in ATTRIBUTES:
                yield Measurement(measure, getattr(estimator, ATTRIBUTES[measure]))
        if "values" in measures:
            yield Measurement("values", sum(len(t.cells) for t in truth.train.tables.values()))
        if {"information_ratio", "loss_ratio"} & set(measures):
            retained, lost = _optimum(truth.train, estimator.budget, estimator.min_count)
            ratios = {"information_ratio": estimator.information_ / retained}
            if lost > 0:
                ratios["loss_ratio"] = estimator.information_loss_ / lost
            yield from select(measures, ratios)
        if "bound_ratio" in measures and hasattr(estimator, "n_buckets_"):
            yield Measurement("bound_ratio", max(_bound_ratio(estimator, truth, n) for n in estimator.features_))
        if hasattr(estimator, "n_rounds_"):
            yield from select(measures, _distribution(estimator, truth.train))
        if held_out := [m for m in measures if m.startswith("heldout_")]:
            names = enumerate(truth.train.names)
            features = [_held_out_feature(estimator, truth, i, name, held_out) for i, name in names]
            for measure in held_out:
                yield Measurement(measure, sum(values[measure] for values in features))


def count_tables(inputs: TaskInput, seed: int) -> HeldOut:
    train, test = split_rows(inputs, seed)
    y = inputs.data.labels() if isinstance(inputs.data, RecordStore) else inputs.data.y
    check_labels(inputs.name, y, train, test)
    encoders: list[CodedEncoder] = []
    tables: list[dict] = [{}, {}]
    subsets = train, test
    for name, column in _categorical(inputs):
        codes, size = _number_values(column, train)
        for by_key, rows in zip(tables, subsets, strict=True):
            by_key[len(encoders),] = _table(codes[rows], y[rows], size)
        encoders.append(CodedEncoder(name, size))
    if not encoders:
        raise DataError(f"{inputs.name}: there are no categorical features")
    encoder, pairs = FrameEncoder(tuple(encoders)), zip(subsets, tables, strict=True)
    return HeldOut(*(ContingencyTables(encoder, "label", len(rows), int(y[rows].sum()), t) for rows, t in pairs))


def _categorical(inputs: TaskInput) -> Iterator[tuple[str, pd.Series]]:
    data, categories = inputs.data, inputs.entry.get("features", {}).get("categorical", [])
    for name in data.names if isinstance(data, RecordStore) else data.frame.columns:
        column = data.column(name) if isinstance(data, RecordStore) else data.frame[name]
        if name in categories or not is_continuous(column):
            yield name, column


def _number_values(column: pd.Series, train: np.ndarray) -> tuple[np.ndarray, int]:
    """(n,) number of each row's value, −1 where no training row has it, and how many there are."""
    indices, values = pd.factorize(column, use_na_sentinel=False)
    observed = np.unique(indices[train])
    numbers = np.full(len(values), -1)
    in_order = np.argsort(pd.Series(values)[observed].astype(str).to_numpy(), kind="stable")
    numbers[observed[in_order]] = np.arange(len(observed))
    return numbers[indices], len(observed)


def _table(codes: np.ndarray, y: np.ndarray, size: int) -> Table:
    observed = codes >= 0
    codes, y = codes[observed], y[observed]
    return feature_table(np.bincount(codes, minlength=size), np.bincount(codes, y, size).astype(np.int64))


_OPTIMA: dict[tuple, tuple[float, float]] = {}  # of this process: the methods of a batch share them


def _optimum(tables: ContingencyTables, budget: float, min_count: float) -> tuple[float, float]:
    from agglearn.vocabulary import OptimalQuantizer  # compiles kernels

    key = tables.digest, budget, min_count
    if key not in _OPTIMA:
        best = OptimalQuantizer(budget, min_count=min_count).fit(tables)
        _OPTIMA[key] = best.information_, best.information_loss_
    return _OPTIMA[key]


def _distribution(estimator: Estimator, tables: ContingencyTables) -> dict[str, float]:
    values = sum(len(t.cells) for t in tables.tables.values())
    rounds, size, machines = estimator.n_rounds_, estimator.machine_size_, estimator.n_machines_
    return {
        "rounds": rounds,
        "machine_size": size,
        "rounds_ratio": rounds * -math.log1p(-estimator.epsilon) / math.log(values),
        "space_ratio": size * machines / estimator.n_ranks_,
    }


def _bound_ratio(estimator: Estimator, truth: HeldOut, name: str) -> float:
    n, c = truth.train.dense(truth.train.names.index(name))
    lost = mutual_information(n, c) - estimator.feature_information_[name]
    return lost / bucketing_bound(estimator.n_buckets_[name], c.sum() / n.sum())


def _held_out_feature(estimator: Estimator, truth: HeldOut, i: int, name: str, measures: list[str]) -> dict[str, float]:
    from agglearn.vocabulary.held_out import sum_clusters
    from agglearn.vocabulary.shrinkage import EMPIRICAL, shrink_sums

    labels, unseen, counts = estimator.labels_[name], estimator.unseen_[name], truth.train.dense(i)
    n, c = sum_clusters(labels, unseen, counts)
    tested = sum_clusters(labels, unseen, truth.test.dense(i), (truth.test.total, truth.test.positives))
    values, base = {}, truth.train.positives / truth.train.total
    if "heldout_information" in measures:
        values["heldout_information"] = mutual_information(*tested)
    if "heldout_predictive" in measures:
        half = 0.5 / np.maximum(n, 1)
        rates = np.clip(c / np.maximum(n, 1), half, 1 - half)
        values["heldout_predictive"] = predictive_information(*tested, rates, base)
    if "heldout_predictive_shrunk" in measures:
        occupied = counts[0] > 0
        shrunk = shrink_sums(counts[0][occupied], counts[1][occupied], EMPIRICAL)
        c = np.bincount(labels[occupied], shrunk, len(n))
        values["heldout_predictive_shrunk"] = predictive_information(*tested, c / np.maximum(n, 1), base)
    return values
