"""Where records come from: files that are fetched, data inside installed packages, or a simulator."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags
from agglearn.settings import keys_at_fault, make_dataclass, parameters
from agglearn.storage import read_json, write_json
from agglearn.text import list_some


@dataclass(frozen=True)
class RecordStore:
    """Prepared records on disk: features and labels in separate files.

    Parameters
    ----------
    folder, header : Path, dict
        The `records/<dataset>` product, and its rows, label, categorical columns and `parts`, rows of official subsets.
    """

    folder: Path
    header: dict

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the records in a folder, the `records/<dataset>` product.

        Parameters
        ----------
        folder : str or Path
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

    def features(self) -> pd.DataFrame:
        """Read all raw feature columns."""
        return pq.read_table(self.folder / "features.parquet").to_pandas()

    def column(self, name: str) -> pd.Series:
        """Read one raw feature of all rows. The others are not read.

        Parameters
        ----------
        name : str
        """
        return pq.read_table(self.folder / "features.parquet", columns=[name]).to_pandas()[name]

    def labels(self) -> np.ndarray:
        """Read the (n,) int8 labels."""
        return pq.read_table(self.folder / "labels.parquet")["label"].to_numpy()


@dataclass(frozen=True)
class Population:
    """Records that a simulator draws, with their truth.

    Parameters
    ----------
    frame, y, probabilities, parameters : DataFrame, ndarray of shape (n,), ndarray of shape (n,), dict[str, ndarray]
        Features, int8 labels, the true P(Y = 1 | x), and arrays of the truth behind it by name.
    """

    frame: pd.DataFrame
    y: np.ndarray
    probabilities: np.ndarray
    parameters: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BagPopulation:
    """Training and test bags, both with their targets, and a parameter that differs between the test bags.

    Parameters
    ----------
    train, test, parameter : Bags, Bags, ndarray of shape (test bags,) or None
    """

    train: Bags
    test: Bags
    parameter: np.ndarray | None = None


@dataclass_transform(eq_default=False, field_specifiers=(field,))
@dataclass(eq=False, repr=False)
class Dataset:
    """One entry of `config/datasets/`. Subclasses are made dataclasses, whose fields are the entry's `params`.

    Arguments that their annotations do not allow are a ConfigError. `KEYS` are the keys of an entry that the class or a
    task uses, besides those for readers. `key.item` names items of a mapping. Other keys are refused.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        "mirror", "files", "format", "label", "features", "split", "split_like", "encoding", "binning",
        "unit",
    )  # fmt: skip

    entry: dict = field(init=False, default_factory=dict)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        make_dataclass(cls)

    def __post_init__(self) -> None:
        self._check(self.arguments)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the constructor by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @classmethod
    def _check(cls, arguments: dict[str, Any]) -> None:
        kind: Any = cls
        for path, fault in keys_at_fault(cls.__name__, parameters(kind), arguments):
            raise ConfigError(f"{cls.__name__}: {path}: {fault}" if path else fault)

    @classmethod
    def from_entry(cls, entry: dict, params: dict | None = None) -> Self:
        """Make the data set of an entry of `config/datasets/`, of whose class this is called.

        Parameters
        ----------
        entry, params : dict, dict or None
            The parameters are an experiment's, which replace the entry's.
        """
        arguments = {**entry.get("params", {}), **(params or {})}
        cls._check(arguments)
        dataset = cls(**arguments)
        dataset.entry = entry
        return dataset


class Stored(Dataset, ABC):
    """A data set that is parsed once, into `features.parquet`, `labels.parquet` and `records.json`."""

    @abstractmethod
    def parse(self, files: dict[str, Path], out: Path) -> dict:
        """Write the records of fetched files, and return facts for the manifest. Nothing is fitted: no bins, no split.

        DataError for a damaged or empty file, or a missing column, label or part. NotAvailable for a missing package.

        Parameters
        ----------
        files, out : dict[str, Path], Path
            Name → path, and the folder to write into.
        """

    def write(self, out: Path, features: pd.DataFrame, y: np.ndarray, subsets: dict | None = None) -> dict:
        """Write records, and return facts for the manifest.

        Parameters
        ----------
        out, features, y, subsets : Path, DataFrame, ndarray of shape (n,), dict or None
            Folder, one row per record, labels in {0, 1}, and {name of an official subset: [first, last + 1] rows}.
        """
        features.columns = [str(c) for c in features.columns]
        features.to_parquet(out / "features.parquet", index=False, compression="zstd")
        pd.DataFrame({"label": y}).to_parquet(out / "labels.parquet", index=False)
        label = self.entry.get("label", {}).get("column", "label")
        write_header(out, len(features), label, self.entry.get("features", {}).get("categorical", []), subsets)
        return {"rows": len(features), "columns": features.shape[1], "rate": float(np.mean(y))}


class Simulated(Dataset, ABC):
    """A data set that is drawn anew for every seed. An experiment may replace the entry's parameters."""

    KEYS: ClassVar[tuple[str, ...]] = (
        "label.column", "features.categorical", "split.last", "split_like", "encoding", "binning",
    )  # fmt: skip

    @abstractmethod
    def draw(self, seed: int) -> object:
        """Draw a population with its truth. Parameters that do not go together are a DataError.

        Parameters
        ----------
        seed : int
        """


def require_columns(table: pd.DataFrame, columns: Iterable[str], source: object) -> None:
    if missing := [name for name in columns if name not in table]:
        raise DataError(f"{source}: no column {missing[0]!r}; the columns are {list_some(table.columns)}")


def write_header(
    out: Path, n: int, label: str, categorical: Iterable[str] = (), ranges: dict | None = None, **fields: object
) -> None:
    header = {"n": n, "label": label, "categorical": list(categorical), "parts": ranges or {}}
    write_json(out / "records.json", header | fields)
