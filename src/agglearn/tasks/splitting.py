"""Training rows and test rows of a data set."""

import numpy as np
import pandas as pd

from agglearn.datasets import Population, RecordStore
from agglearn.errors import DataError
from agglearn.seeds import derive_generator
from agglearn.tasks.base import TaskInput


def split_rows(inputs: TaskInput, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """By the official split, in order of time, or at random by the seed. `rows` takes a subset of both.

    A random part has all rows of a unit, or none.
    """
    data, split = inputs.data, inputs.entry.get("split", 0.2)
    rng, population = derive_generator("split", split_name(inputs), seed), isinstance(inputs.data, Population)
    n, unit = len(data.y) if population else data.n, inputs.entry.get("unit")
    owners = pd.factorize(data.column(unit))[0] if unit else None
    if not population and data.header["parts"]:
        train, test = (np.arange(*data.header["parts"][k]) for k in ("train", "test"))
    elif isinstance(split, dict):
        border = n - round(split["last"] * n)
        train, test = np.arange(border), np.arange(border, n)
    else:
        chosen = rng.random(n) < split if owners is None else (rng.random(owners.max() + 1) < split)[owners]
        train, test = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    if not population and (n_rows := inputs.params.get("rows")):
        fraction = min(1, n_rows / (len(train) + len(test)))
        train, test = (draw_rows(r, fraction, owners, rng) for r in (train, test))
    return train, test


def draw_rows(rows: np.ndarray, fraction: float, owners: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Part of the rows in ascending order, or all rows of so many of their units."""
    units = rows if owners is None else np.unique(owners[rows])
    chosen = np.sort(rng.choice(units, max(1, round(fraction * len(units))), replace=False))
    return chosen if owners is None else rows[np.isin(owners[rows], chosen)]


def check_labels(name: str, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> None:
    for subset, rows in (("training", train), ("test", test)):
        if len(np.unique(y[rows])) < 2:
            raise DataError(f"{name}: all {len(rows)} {subset} rows have the same label; use more rows")


def split_overlap(inputs: TaskInput) -> float:
    if not isinstance(inputs.data, RecordStore):
        return 0.0  # every seed draws new rows
    split, official = inputs.entry.get("split", 0.2), inputs.data.header["parts"]
    if official and inputs.params.get("rows"):
        train, test = (last - first for first, last in (official["train"], official["test"]))
        return test / train
    return 0.0 if official or isinstance(split, dict) else split / (1 - split)


def split_name(inputs: TaskInput) -> str:
    """Name that the random split is drawn by. Data sets that are compared on the same rows share it."""
    return inputs.entry.get("split_like", inputs.name)
