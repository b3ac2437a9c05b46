"""Records with their labels: what skylines and oracles see, and no method for aggregated data."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder
from agglearn.encoding.labels import check_labels
from agglearn.observations.base import Observation, prepared, reading
from agglearn.observations.tables import encoded
from agglearn.storage import read_json, write_json


@dataclass(frozen=True)
class Records(Observation):
    """Individual records.

    Attributes
    ----------
    encoder : the same modalities that tables of these records have.
    frame : raw features, one row per record.
    y : (n,) int8 labels in {0, 1}.
    label : name of the label.
    cross_buckets : who crosses features hashes pairs with more cells than this into so many, as tables of these records
        would (`ContingencyTables.from_records`); None for not at all.
    """

    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    label: str = "label"
    cross_buckets: int | None = None

    def __post_init__(self):
        check_labels(self.y, len(self.frame))

    @classmethod
    def from_records(
        cls,
        frame,
        label=None,
        features=None,
        *,
        schema=None,
        binning=None,
        categorical=(),
        positive=None,
        hashed=None,
        hash_above=None,
    ) -> Self:
        """Records from raw columns; parameters as in `ContingencyTables.from_records`."""
        how = {"binning": binning, "categorical": categorical, "positive": positive, "hashed": hashed}
        encoder, x, y, label = encoded(frame, label, features, schema, hash_above=hash_above, **how)
        return cls(encoder, x.reset_index(drop=True), y, label)

    @property
    def codes(self) -> np.ndarray:
        """(n, D) int32 codes of the features."""
        return self.encoder.encode(self.frame)

    def select(self, names: Iterable[str]) -> Self:
        """The same records with some features only, in the encoder's order."""
        wanted = set(names)
        kept = [n for n in self.encoder.names if n in wanted]
        return replace(self, encoder=self.encoder.select(kept), frame=self.frame[kept])

    def save(self, folder) -> None:
        folder = prepared(folder)
        self.frame.to_parquet(folder / "features.parquet", index=False)
        np.save(folder / "labels.npy", self.y)
        header = {"label": self.label, "cross_buckets": self.cross_buckets, "encoder": self.encoder.to_dict()}
        header["schema"] = self.encoder.schema
        write_json(folder / "records.json", header)

    @classmethod
    def load(cls, folder) -> Self:
        folder = Path(folder)
        with reading(folder, "records"):
            header = read_json(folder / "records.json")
            frame = pd.read_parquet(folder / "features.parquet")
            encoder, y = FrameEncoder.from_dict(header["encoder"], header["schema"]), np.load(folder / "labels.npy")
            return cls(encoder, frame, y, header["label"], header.get("cross_buckets"))

    def _fingerprint(self, hasher) -> None:
        said = [self.encoder.to_dict(), list(self.frame.columns), self.label, self.cross_buckets]
        hasher.update(repr(said).encode())
        hasher.update(pd.util.hash_pandas_object(self.frame, index=False).to_numpy().tobytes())
        hasher.update(self.y.tobytes())
