"""Which rows are for training and which for the test."""

import numpy as np

from agglearn.datasets import Population, RecordStore
from agglearn.seeds import derive_generator
from agglearn.tasks.base import Source


def split_rows(source: Source, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows: by the data set's official parts, in order of time, or at random by the seed.

    The parameter `rows` of a stored data set takes a random subset of that size of both.
    """
    data, split = source.data, source.entry.get("split", 0.2)
    rng, population = derive_generator("split", split_name(source), seed), isinstance(source.data, Population)
    n = len(data.y) if population else data.n
    if not population and data.header["parts"]:
        train, test = (np.arange(*data.header["parts"][k]) for k in ("train", "test"))
    elif isinstance(split, dict):
        border = n - round(split["last"] * n)
        train, test = np.arange(border), np.arange(border, n)
    else:
        chosen = rng.random(n) < split
        train, test = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    if not population and (wanted := source.params.get("rows")):
        share = min(1, wanted / (len(train) + len(test)))
        train, test = (np.sort(rng.choice(r, max(1, round(share * len(r))), replace=False)) for r in (train, test))
    return train, test


def split_overlap(source: Source) -> float:
    """Test rows per training row of `split_rows`, where every seed splits the same rows anew; 0 elsewhere.

    A random subset of an official split counts as such a split.
    """
    if not isinstance(source.data, RecordStore):
        return 0.0  # every seed draws new rows
    split, parts = source.entry.get("split", 0.2), source.data.header["parts"]
    if parts and source.params.get("rows"):
        train, test = (last - first for first, last in (parts["train"], parts["test"]))
        return test / train
    return 0.0 if parts or isinstance(split, dict) else split / (1 - split)


def split_name(source: Source) -> str:
    """Whose name the random parts go by: data sets that are to be compared on the same rows share one."""
    return source.entry.get("split_like", source.name)
