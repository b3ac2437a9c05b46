"""Classification of instances from bags: learn from counts per bag, judge on persons whose labels were never counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.evaluation import auc
from agglearn.observations import Bags, LabelledBags, Observation
from agglearn.seeds import generator
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.classification import split_records


@dataclass(frozen=True)
class TestPersons(Truth):
    """Held-out instances, in bags, with their labels."""

    bags: Bags
    y: np.ndarray

    def save(self, folder: Path) -> None:
        LabelledBags(self.bags, self.y).save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        found = LabelledBags.load(folder)
        return cls(found.bags, found.y)


class BagClassification(Task):
    """Bags of records, with the labels counted per bag; records held out are judged.

    Parameters of a stored data set: `bags`, the size of random bags or the name of a column whose values are the bags;
    `rows`, a random subset of that size. Learners see `Bags`, oracles `LabelledBags`.
    """

    PARAMS: ClassVar = ("bags", "rows")
    MEASURES: ClassVar = {
        "accuracy": ("", "higher"),
        "auc": ("", "higher"),
        "count_error": ("", "lower"),
    }
    truth: ClassVar = TestPersons

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        if params:
            raise ConfigError(
                f"observe: unknown key {sorted(params)[0]!r}; bags are described by the data set's parameters"
            )
        if unknown := set(source.params) - set(self.PARAMS):
            raise ConfigError(
                f"{source.name}: unknown parameter {sorted(unknown)[0]!r}; allowed: {', '.join(self.PARAMS)}"
            )
        (frame, y), test = split_records(source, seed)
        rng = generator("bags", source.name, seed)
        order, offsets, names = grouped(frame, source.params, rng)
        encoder = DenseEncoder(filled(frame), text_columns(frame, source.entry))
        seen = bags_of(encoder.transform(filled(frame.iloc[order])), offsets, y[order], 2, names)
        chunks = np.append(np.arange(0, len(test.y), 100), len(test.y))
        truth = bags_of(encoder.transform(filled(test.frame)), np.unique(chunks), test.y, 2)
        return as_seen(kind, seen, y[order]), TestPersons(truth, test.y)

    def measure(self, estimator, truth: TestPersons, measures: list[str]) -> Iterator[Measurement]:
        p, y = estimator.predict_proba(truth.bags.X), truth.y
        if "accuracy" in measures:
            yield Measurement("accuracy", float((p.argmax(axis=1) == y).mean()))
        if "auc" in measures and p.shape[1] == 2:
            yield Measurement("auc", auc(y, p[:, 1]))
        if "count_error" in measures:
            gap = abs(estimator.predict_counts(truth.bags) - truth.bags.counts).sum(axis=1) / 2
            yield Measurement("count_error", float((gap / truth.bags.sizes).mean()))


def as_seen(kind: type[Observation], bags: Bags, y: np.ndarray) -> Observation:
    """What a learner of this kind sees of the bags."""
    if kind is Bags:
        return bags
    if kind is LabelledBags:
        return LabelledBags(bags, y)
    raise ConfigError(f"observe: this task cannot make {kind.__name__}; it makes Bags and LabelledBags")


def bags_of(x, offsets, y, classes: int, names=()) -> Bags:
    """Bags with the labels (n,) counted."""
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    counts = np.bincount(bag * classes + y, minlength=(len(offsets) - 1) * classes).reshape(-1, classes)
    return Bags(x, offsets, counts, bag_names=names)


def grouped(frame: pd.DataFrame, params: dict, rng) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """(rows bag after bag, offsets, names of the bags): random bags of one size, or one per value of a column.

    Bags come in random order. Random bags of one size leave a rest of less than a bag unused.
    """
    how, n = params.get("bags", 10), len(frame)
    if isinstance(how, int):
        if not 1 <= how <= n:
            raise ConfigError(f"bags: a size must be between 1 and the {n} training records, got {how}")
        return rng.permutation(n)[: n // how * how], np.arange(0, n // how * how + 1, how), ()
    if how not in frame:
        raise ConfigError(f"bags: {how!r} is neither a size nor a column; there are {', '.join(map(str, frame))}")
    codes, values = pd.factorize(frame[how].astype(str))
    if len(values) < 2:
        raise DataError(f"bags: column {how!r} has one value only; there is nothing to tell bags apart")
    place = rng.permutation(len(values))
    order = np.argsort(place[codes], kind="stable")
    sizes = np.bincount(place[codes])
    return order, np.append(0, np.cumsum(sizes)), tuple(values[np.argsort(place)])


def text_columns(frame: pd.DataFrame, entry: dict) -> list[str]:
    """Columns that are categories: text, and numbers that the entry names so."""
    named = set(entry.get("features", {}).get("categorical", []))
    return [c for c in frame if c in named or not pd.api.types.is_numeric_dtype(frame[c])]


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with missing text as a value of its own."""
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.assign(**{c: frame[c].astype(object).where(frame[c].notna(), "missing").astype(str) for c in text})
