"""Where records come from: files that are fetched, data inside installed packages, or a simulator."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from agglearn.errors import ConfigError
from agglearn.observations import Bags
from agglearn.settings import keys_at_fault, parameters
from agglearn.storage import read_json, write_json


@dataclass(frozen=True)
class RecordStore:
    """Prepared records on disk: features and labels in separate files.

    Parameters
    ----------
    folder : Path
        The `records/<dataset>` product.
    header : dict
        Rows, label name, categorical columns, and `parts`: row ranges of official train and test sets.
    """

    folder: Path
    header: dict

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The records in a folder.

        Parameters
        ----------
        folder : str or Path
            The `records/<dataset>` product.
        """
        return cls(Path(folder), read_json(Path(folder) / "records.json"))

    @property
    def n(self) -> int:
        """Number of records."""
        return self.header["n"]

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return pq.read_schema(self.folder / "features.parquet").names

    def features(self, rows: np.ndarray | None = None) -> pd.DataFrame:
        """Raw feature columns.

        Parameters
        ----------
        rows : ndarray or None
            Of these rows only. None for all.
        """
        frame = pq.read_table(self.folder / "features.parquet").to_pandas()
        return frame if rows is None else frame.iloc[rows].reset_index(drop=True)

    def column(self, name: str) -> pd.Series:
        """One raw feature of all rows. The others are not read.

        Parameters
        ----------
        name : str
            Of the feature.
        """
        return pq.read_table(self.folder / "features.parquet", columns=[name]).to_pandas()[name]

    def labels(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(n,) int8 labels.

        Parameters
        ----------
        rows : ndarray or None
            Of these rows only. None for all.
        """
        y = pq.read_table(self.folder / "labels.parquet")["label"].to_numpy()
        return y if rows is None else y[rows]


@dataclass(frozen=True)
class Population:
    """Records that a simulator draws, with their truth.

    Parameters
    ----------
    frame : DataFrame
        Features, one row per record.
    y : ndarray of shape (n,)
        Int8 labels.
    probabilities : ndarray of shape (n,)
        The true P(Y = 1 | x).
    parameters : dict[str, ndarray]
        The truth behind it, arrays by name.
    """

    frame: pd.DataFrame
    y: np.ndarray
    probabilities: np.ndarray
    parameters: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class Dataset:
    """One entry of `config/datasets/`. Subclasses are dataclasses, whose fields are the entry's `params`.

    Arguments that their annotations do not allow are a ConfigError.

    Attributes
    ----------
    KEYS : tuple of str
        Keys of an entry that the class, or a task that observes its records, uses, besides those for readers.
        `key.item` names some items of a mapping. An entry with any other key is refused.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        "mirror", "files", "format", "label", "features", "split", "split_like", "encoding", "binning",
    )  # fmt: skip

    entry: dict = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._check(self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def _check(self, arguments: dict[str, Any]) -> None:
        kind: Any = type(self)
        for path, fault in keys_at_fault(kind.__name__, parameters(kind), arguments):
            raise ConfigError(f"{kind.__name__}: {path}: {fault}" if path else fault)

    @classmethod
    def from_entry(cls, entry: dict) -> Self:
        """The data set of an entry, of whose class this is called.

        Parameters
        ----------
        entry : dict
            Of `config/datasets/`.
        """
        dataset = cls(**entry.get("params", {}))
        dataset.entry = entry
        return dataset


class Stored(Dataset, ABC):
    """A data set that is parsed once, into `features.parquet`, `labels.parquet` and `records.json`."""

    @abstractmethod
    def parse(self, files: dict[str, Path], out: Path) -> dict:
        """Facts for the manifest, after the records of the fetched files were written.

        It fits nothing: no bins, no vocabularies, no split.

        Parameters
        ----------
        files : dict[str, Path]
            Name → path.
        out : Path
            Folder to write into.

        Raises
        ------
        DataError
            A file is damaged or empty, or lacks a column, a label or a part.
        NotAvailable
            The package with the data is not installed.
        """

    def write(self, out: Path, features: pd.DataFrame, y: np.ndarray, subsets: dict | None = None) -> dict:
        """Facts for the manifest, after these records were written.

        Parameters
        ----------
        out : Path
            Folder to write into.
        features : DataFrame
            One row per record.
        y : ndarray of shape (n,)
            Labels in {0, 1}.
        subsets : dict or None
            {name of an official subset: [first, last + 1] rows}.
        """
        features.columns = [str(c) for c in features.columns]
        features.to_parquet(out / "features.parquet", index=False, compression="zstd")
        pd.DataFrame({"label": y}).to_parquet(out / "labels.parquet", index=False)
        self._describe(out, len(features), subsets)
        return {"rows": len(features), "columns": features.shape[1], "rate": float(np.mean(y))}

    def _describe(self, out: Path, n: int, subsets: dict | None = None) -> None:
        header = {
            "n": n,
            "label": self.entry.get("label", {}).get("column", "label"),
            "categorical": self.entry.get("features", {}).get("categorical", []),
            "parts": subsets or {},
        }
        write_json(out / "records.json", header)


def value_names(prefix: str, codes: np.ndarray) -> pd.Series:
    """(n,) names of numbered values, `prefix` and the number. Equal values share one text."""
    names = np.array([f"{prefix}{k}" for k in range(codes.max(initial=-1) + 1)], dtype=object)
    return pd.Series(names[codes])


def draw_labels(
    columns: dict[str, np.ndarray],
    prefix: str,
    log_odds: np.ndarray,
    rng: np.random.Generator,
    **parameters: np.ndarray,
) -> Population:
    """Records of coded columns, with labels drawn from their log-odds (n,). `parameters` are the truth behind it."""
    probability = 1 / (1 + np.exp(-log_odds))
    y = (rng.random(len(probability)) < probability).astype(np.int8)
    frame = pd.DataFrame({name: value_names(prefix, codes) for name, codes in columns.items()})
    return Population(frame, y, probability, parameters)


class Simulated(Dataset, ABC):
    """A data set that is drawn anew for every seed. Nothing is fetched or stored.

    An experiment may replace the arguments of a subclass's constructor.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        "label.column",
        "features.categorical",
        "split.last",
        "split_like",
        "encoding",
        "binning",
    )

    @abstractmethod
    def draw(self, seed: int, **params: Any) -> object:
        """A population with its truth.

        Parameters
        ----------
        seed : int
            Of the draw.
        **params : Any
            The experiment's, which replace the constructor's.

        Raises
        ------
        DataError
            Parameters that do not go together.
        """

    def overlay(self, params: dict) -> dict:
        """The constructor's arguments with those of an experiment over them.

        Parameters
        ----------
        params : dict
            Those of the experiment.

        Raises
        ------
        ConfigError
            An argument that the constructor does not take, or a value that it cannot have.
        """
        merged = {**self._arguments(), **params}
        self._check(merged)
        return merged


@dataclass(frozen=True, eq=False)
class BagPopulation:
    """Training and test bags, both with their targets.

    Parameters
    ----------
    train, test : Bags
        With target.
    parameter : ndarray of shape (test bags,) or None
        Parameter that differs between the test bags, or None.
    """

    train: Bags
    test: Bags
    parameter: np.ndarray | None = None
