"""Public features of an observation on disk: once for all observations of the same records, referred to by name."""

import hashlib
import os
from pathlib import Path

import pandas as pd

from agglearn.observations.base import prepared

OWN = "features.parquet"


def save_features(frame: pd.DataFrame, folder: Path, shared=None) -> str:
    """Write the features into `folder`, or, where they are not there yet, into the folder `shared` under a name made of
    their content; returns the path relative to `folder`."""
    if shared is None:
        frame.to_parquet(folder / OWN, index=False)
        return OWN
    path = prepared(shared) / f"{_digest(frame)}.parquet"
    if not path.exists():
        frame.to_parquet(path, index=False)
    return Path(os.path.relpath(path, folder)).as_posix()


def load_features(folder: Path, header: dict) -> pd.DataFrame:
    """The features that an observation in `folder` refers to."""
    return pd.read_parquet(Path(folder) / header.get("features", OWN))


def _digest(frame: pd.DataFrame) -> str:
    hasher = hashlib.sha256(repr([list(frame.columns), list(map(str, frame.dtypes))]).encode())
    hasher.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return hasher.hexdigest()[:16]
