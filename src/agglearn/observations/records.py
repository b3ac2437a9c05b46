"""Records with their labels, for skylines and oracles. Methods for aggregated data refuse them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder
from agglearn.encoding.columns import as_frame
from agglearn.encoding.labels import check_labels
from agglearn.observations.base import Hasher, Observation, make_folder, refuse_damaged
from agglearn.observations.tables import encode_records
from agglearn.storage import read_json, write_json


@dataclass(frozen=True)
class Records(Observation):
    """Individual records.

    Parameters
    ----------
    encoder : FrameEncoder
        The same modalities that tables of these records have.
    frame : DataFrame
        Raw features, one row per record.
    y : ndarray of shape (n,)
        Int8 labels in {0, 1}.
    label : str
        Name of the label.
    cross_buckets : int or None
        Learners that cross features hash pairs with more cells than this into so many buckets, as
        `ContingencyTables.from_records` does. None for no hashing.
    """

    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    label: str = "label"
    cross_buckets: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame, self.encoder.names))
        check_labels(self.y, len(self.frame))

    @classmethod
    def from_records(
        cls,
        frame: pd.DataFrame,
        label: str | None = None,
        features: Iterable[str] | None = None,
        **options: Any,
    ) -> Self:
        """Records from raw columns.

        Parameters
        ----------
        frame, label, features
            As in `ContingencyTables.from_records`.
        **options : Any
            `schema`, `binning`, `categorical`, `positive`, `hashed`, `hash_above`, as there.
        """
        encoder, x, y, label = encode_records(frame, label, features, **options)
        return cls(encoder, x.reset_index(drop=True), y, label)

    @property
    def codes(self) -> np.ndarray:
        """(n, D) int32 codes of the features."""
        return self.encoder.encode(self.frame)

    def select(self, names: Iterable[str]) -> Self:
        """The same records with some features only, in the encoder's order.

        Parameters
        ----------
        names : Iterable[str]
            Of these features.
        """
        requested = set(map(str, names))
        names = [n for n in self.encoder.names if n in requested]
        return replace(self, encoder=self.encoder.select(names), frame=self.frame[names])

    def save(self, folder: str | Path) -> None:
        """Write `features.parquet`, `labels.npy` and `records.json`.

        Parameters
        ----------
        folder : str or Path
            Existing or new folder.
        """
        folder = make_folder(folder)
        self.frame.to_parquet(folder / "features.parquet", index=False)
        np.save(folder / "labels.npy", self.y)
        header = {"label": self.label, "cross_buckets": self.cross_buckets, "encoder": self.encoder.to_dict()}
        header["schema"] = self.encoder.schema
        write_json(folder / "records.json", header)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the files that `save` wrote.

        Parameters
        ----------
        folder : str or Path
            Folder with these files.

        Raises
        ------
        DataError
            Other files, damaged ones, or none.
        """
        folder = Path(folder)
        with refuse_damaged(folder, "records"):
            header = read_json(folder / "records.json")
            frame = pd.read_parquet(folder / "features.parquet")
            encoder, y = FrameEncoder.from_dict(header["encoder"], header["schema"]), np.load(folder / "labels.npy")
            return cls(encoder, frame, y, header["label"], header.get("cross_buckets"))

    def _fingerprint(self, hasher: Hasher) -> None:
        header = [self.encoder.to_dict(), list(self.frame.columns), self.label, self.cross_buckets]
        hasher.update(repr(header).encode())
        hasher.update(pd.util.hash_pandas_object(self.frame, index=False).to_numpy().tobytes())
        hasher.update(self.y.tobytes())
