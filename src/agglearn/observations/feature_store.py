"""Public features on disk, once for all observations of the same records."""

import hashlib
import os
import re
from pathlib import Path

import pandas as pd

from agglearn.errors import DataError
from agglearn.observations.base import make_folder

OWN = "features.parquet"
SHARED = re.compile(r"(?!/)(.+/)?[0-9a-f]{16}\.parquet")  # relative, named by its content


def save_features(frame: pd.DataFrame, folder: Path, shared: str | Path | None = None) -> str:
    """Path of the features, relative to `folder`, after they were written.

    They are written into `folder`, or, under a name made of their content and once, into the folder `shared`.
    """
    if shared is None:
        frame.to_parquet(folder / OWN, index=False)
        return OWN
    path = make_folder(shared) / f"{_digest(frame)}.parquet"
    if not path.exists():
        frame.to_parquet(path, index=False)
    return Path(os.path.relpath(path, folder)).as_posix()


def load_features(folder: Path, path: str) -> pd.DataFrame:
    """The features that an observation in `folder` refers to. DataError for a path that `save_features` does not write."""
    if path != OWN and not (SHARED.fullmatch(path) and (folder / path).is_file()):
        raise DataError(f"{folder}: the features are at {path!r:.80}, where no observation keeps them; make it again")
    return pd.read_parquet(folder / path)


def _digest(frame: pd.DataFrame) -> str:
    hasher = hashlib.sha256(repr([list(frame.columns), list(map(str, frame.dtypes))]).encode())
    hasher.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return hasher.hexdigest()[:16]
