"""Where records come from: files that are fetched, data inside installed packages, or a simulator."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from agglearn.errors import ConfigError
from agglearn.observations import Bags
from agglearn.settings import Parameter, checked, keys_at_fault, parameters
from agglearn.storage import read_json, write_json


@dataclass(frozen=True)
class RecordStore:
    """Prepared records on disk: features and labels in separate files.

    Attributes
    ----------
    folder : the `records/<dataset>` product.
    header : rows, label name, categorical columns, and `parts`: row ranges of official train and test sets.
    """

    folder: Path
    header: dict

    @classmethod
    def open(cls, folder) -> Self:
        return cls(Path(folder), read_json(Path(folder) / "records.json"))

    @property
    def n(self) -> int:
        return self.header["n"]

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return pq.read_schema(self.folder / "features.parquet").names

    def features(self, rows: np.ndarray | None = None) -> pd.DataFrame:
        """Raw feature columns of the rows asked for (all by default)."""
        frame = pq.read_table(self.folder / "features.parquet").to_pandas()
        return frame if rows is None else frame.iloc[rows].reset_index(drop=True)

    def column(self, name: str) -> pd.Series:
        """One raw feature, of all rows: the others are not read."""
        return pq.read_table(self.folder / "features.parquet", columns=[name]).to_pandas()[name]

    def labels(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(n,) int8 labels."""
        y = pq.read_table(self.folder / "labels.parquet")["label"].to_numpy()
        return y if rows is None else y[rows]


@dataclass(frozen=True)
class Population:
    """What a simulator draws.

    Attributes
    ----------
    frame : features, one row per record.
    y : (n,) int8 labels.
    probabilities : (n,) the true P(Y = 1 | x).
    parameters : the truth behind it, arrays by name.
    """

    frame: pd.DataFrame
    y: np.ndarray
    probabilities: np.ndarray
    parameters: dict[str, np.ndarray] = field(default_factory=dict)


class Dataset:
    """One entry of `config/datasets/`. Subclasses take the entry's `params` as constructor arguments.

    Arguments that their annotations do not allow are a ConfigError.

    Attributes
    ----------
    KEYS : keys of an entry that the class, or a task that observes its records, makes use of, besides those for readers;
        `key.part` for some parts of a mapping. An entry with any other is refused.
    """

    KEYS: ClassVar = (
        "mirror", "files", "format", "label", "features", "split", "split_like", "encoding", "binning",
    )  # fmt: skip

    def __init__(self):
        self.entry: dict = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)

    @classmethod
    def of(cls, entry: dict) -> "Dataset":
        """The data set of an entry; `cls` is the entry's class."""
        dataset = cls(**entry.get("params", {}))
        dataset.entry = entry
        return dataset


class Stored(Dataset, ABC):
    """A data set that is parsed once, into `features.parquet`, `labels.parquet` and `records.json`."""

    @abstractmethod
    def parse(self, files: dict[str, Path], out: Path) -> dict:
        """Write the records of the fetched files into `out`; return what the manifest shall say.

        Parses and fits nothing: no bins, no vocabularies, no split.
        """

    def write(self, out: Path, features: pd.DataFrame, y: np.ndarray, parts: dict | None = None) -> dict:
        """Write records; `parts` maps names of official parts to [first, last + 1] rows."""
        features.columns = [str(c) for c in features.columns]
        features.to_parquet(out / "features.parquet", index=False, compression="zstd")
        pd.DataFrame({"label": y}).to_parquet(out / "labels.parquet", index=False)
        self._describe(out, len(features), parts)
        return {"rows": len(features), "columns": features.shape[1], "rate": float(np.mean(y))}

    def _describe(self, out: Path, n: int, parts: dict | None = None) -> None:
        header = {
            "n": n,
            "label": self.entry.get("label", {}).get("column", "label"),
            "categorical": self.entry.get("features", {}).get("categorical", []),
            "parts": parts or {},
        }
        write_json(out / "records.json", header)


def value_names(prefix: str, codes: np.ndarray) -> pd.Series:
    """(n,) names of numbered values, `prefix` and the number. Equal values share one text."""
    names = np.array([f"{prefix}{k}" for k in range(codes.max(initial=-1) + 1)], dtype=object)
    return pd.Series(names[codes])


class Simulated(Dataset, ABC):
    """A data set that is drawn anew for every seed; nothing is fetched or stored.

    Attributes
    ----------
    params : the constructor's arguments by name.
    """

    KEYS = ("label.column", "features.categorical", "split.last", "split_like", "encoding", "binning")
    params: dict

    @abstractmethod
    def draw(self, seed: int, **params):
        """A population; `params` are the experiment's, laid over the constructor's."""

    def laid_over(self, params: dict) -> dict:
        """The constructor's arguments (`self.params`) with those of an experiment over them.

        Raises
        ------
        ConfigError : an argument that the constructor does not take, or a value that it cannot have.
        """
        name, declared = type(self).__name__, parameters(type(self)) or {}
        for place, what in keys_at_fault(name, {k: Parameter(p.hint, None) for k, p in declared.items()}, params):
            raise ConfigError(f"{name}: {place}: {what}" if place else what)
        return {**self.params, **params}


@dataclass(frozen=True, eq=False)
class BagPopulation:
    """Bags to learn from and bags to be judged on, both with their targets.

    Attributes
    ----------
    train, test : with target. parameter : (test bags,) what the test bags differ in, or None.
    """

    train: Bags
    test: Bags
    parameter: np.ndarray | None = None
