"""What is chosen, and the data that all choose by."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.observations import Bags, ContingencyTables, Records

RNG = np.random.default_rng(0)
X = np.column_stack([np.arange(160.0) / 160, RNG.normal(size=(160, 2))])  # the first tells instances apart
LABELS = (X[:, 1] + RNG.normal(size=160) > 0).astype(int)
POSITIVES = np.add.reduceat(LABELS, np.arange(0, 160, 4))
BAGS = Bags(X, np.arange(0, 161, 4), POSITIVES)
CLOUDS = Bags(X, np.arange(0, 161, 4), target=X[::4, 1] + np.arange(40) / 1e4)
CLASSES = Bags(X, np.arange(0, 161, 4), target=(X[::4, 1] > 0).astype(int))
TARGET = X[:60, 1] + 0.3 * X[:60, 2] + np.arange(60) / 1e6
FRAME = pd.DataFrame(
    {"who": [f"r{i:03d}" for i in range(160)], "a": RNG.choice(list("uvw"), 160), "b": RNG.choice(list("xyz"), 160)}
)
Y = (RNG.random(160) < np.where(FRAME["a"] == "u", 0.8, 0.3)).astype(np.int8)
PLAIN = FRAME[["a", "b"]]


def records(frame=FRAME, y=Y) -> Records:
    return Records(FrameEncoder(tuple(CategoricalEncoder.fit(frame[c]) for c in frame)), frame, y)


def tables(frame=PLAIN, y=Y) -> ContingencyTables:
    return ContingencyTables.from_records(frame.assign(y=y), "y")


@dataclass
class Try:
    """One value on trial: on which units it was fitted, and by which it was judged."""

    value: float
    fitted: tuple
    judged: tuple = ()


class Choice:
    """A class that chooses.

    `choose(patch, planted)` fits it with the score planted (value → score, larger is better; None: the true one) and fills
    `tries`; `fixed(value)` fits it, or the model inside it, with a given value; `chosen(model)` is the value, and
    `numbers(model)` is what tells models apart.
    """

    grid: tuple = ()
    units: tuple = ()  # names of all units that there are to learn from; empty where nothing is held out
    close = 1e-9
    edges = False  # whether a value at an end of its grid is stated
    anew = False  # whether `fixed` is about the last model that chose
    alike = False  # whether another row has the same code but for the fits

    def __init__(self):
        self.tries: list[Try] = []

    def __str__(self):
        return type(self).__name__
