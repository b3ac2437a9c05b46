"""Small worlds whose truth can be enumerated."""

import numpy as np
import pandas as pd
import pytest

from agglearn.observations import ContingencyTables


def draw_records(n=3000, sizes=(2, 3, 4), seed=0) -> pd.DataFrame:
    """Dependent categorical features and a label that depends on pairs of them."""
    rng = np.random.default_rng(seed)
    codes = np.empty((n, len(sizes)), int)
    hidden = rng.random(n)
    for i, size in enumerate(sizes):
        codes[:, i] = np.minimum((0.6 * hidden + 0.4 * rng.random(n)) * size, size - 1)
    z = -0.5 + 1.2 * (codes[:, 0] == codes[:, 1]) - 0.9 * (codes[:, -1] > 1) + 0.7 * (codes[:, 0] * codes[:, -1] > 1)
    frame = pd.DataFrame({f"f{i}": [f"v{c}" for c in codes[:, i]] for i in range(len(sizes))})
    return frame.assign(label=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int))


@pytest.fixture(scope="session")
def records():
    return draw_records()


@pytest.fixture(scope="session")
def tables(records):
    return ContingencyTables.from_records(records, "label")


@pytest.fixture(scope="session")
def small():
    """Tables of two features of three values."""
    return ContingencyTables.from_records(draw_records(2000, (3, 3), 1), "label")


@pytest.fixture(scope="session")
def wide_tables():
    """Tables of one feature with some 150 modalities among narrow ones."""
    return ContingencyTables.from_records(draw_records(sizes=(2, 3, 150)), "label")


@pytest.fixture(scope="session")
def good():
    """Settings of maximum entropy that come near the optimum of such worlds."""
    return {
        "n_chains": 5_000, "max_iter": 400, "l2_theta": 4.0, "step_theta": 0.15, "step_mu": 0.2, "tol": 0, "random_state": 1,
    }  # fmt: skip
