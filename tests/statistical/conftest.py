"""A world of 120 states, whose law can be written down."""

import numpy as np
import pandas as pd
import pytest
from chi_square import SIZES

from agglearn.maxent.exact import Enumeration
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables


@pytest.fixture(scope="session")
def tables():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"f{i}": np.char.add("v", rng.integers(0, s, 500).astype(str)) for i, s in enumerate(SIZES)})
    return ContingencyTables.from_records(frame.assign(y=rng.integers(0, 2, 500)), "y")


@pytest.fixture(scope="session")
def world(tables):
    layout, rng = WeightIndex.from_tables(tables), np.random.default_rng(0)
    mu, theta = rng.normal(size=(2, len(layout.rows)))
    return layout, Enumeration.from_tables(tables), mu, theta
