"""What jobs are expected to take, from their data."""

import inspect

import numpy as np
import pandas as pd
import pytest

from agglearn import datasets
from agglearn_workflow import memory

GAUSSIAN = {"class": "agglearn.datasets.GaussianBags"}


def test_bytes_when_read(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 3), np.float32))
    np.savez_compressed(tmp_path / "z.npz", a=np.zeros(1000), b=np.zeros(500, np.int8))
    pd.DataFrame({"a": np.zeros(1000, np.int8), "b": ["same"] * 1000}).to_parquet(tmp_path / "t.parquet")
    assert memory.unpacked(tmp_path / "x.npy") == pytest.approx(12_000, abs=200)
    assert memory.unpacked(tmp_path / "z.npz") == pytest.approx(8500, abs=400)  # however well it is compressed
    assert memory.unpacked(tmp_path / "t.parquet") == 16_000
    assert memory.unpacked(tmp_path) == pytest.approx(36_500, abs=600)


def test_files_and_records_raise_the_floor(tmp_path):
    entry = {"class": "agglearn.datasets.Delimited"}
    assert memory.for_parsing(entry | {"files": {"a.csv": {}}}) == memory.FLOOR  # of an unknown size
    sized = entry | {"files": {"a.csv": {"bytes": 4 * 10**7}}}
    assert memory.for_parsing(sized) == memory.FLOOR + 40 * memory.PER_SOURCE
    assert memory.for_fitting(entry, [{}], tmp_path) == memory.FLOOR  # nothing parsed yet
    (tmp_path / "manifest.json").write_text('{"memory": 500000000}')
    assert memory.for_fitting(entry, [{}], tmp_path) == memory.FLOOR + 500 * memory.PER_RECORDS


def test_simulated_data_count_by_their_parameters(tmp_path):
    small, large = {"n_bags": 10, "bag_size": 100}, {"n_bags": 1000, "bag_size": 1000, "dimension": 5}
    assert memory.for_fitting(GAUSSIAN, [small, large], tmp_path) == memory.FLOOR + 12 * 5
    entry = GAUSSIAN | {"params": {"dimension": 10, "n_bags": 1000, "bag_size": 1000}}
    assert memory.for_fitting(entry, [{}], tmp_path) == memory.FLOOR + 12 * 10
    # as the simulator takes null
    assert memory.for_fitting(entry, [{"dimension": None}], tmp_path) == memory.FLOOR + 12 * 32
    assert memory.for_fitting({"class": "agglearn.datasets.BirdMigration"}, [{}], tmp_path) == memory.FLOOR


@pytest.mark.parametrize("name", ["GaussianBags", "Categorical", "LogLinear", "Xor", "ClickLog", "PointClouds"])
def test_factors_are_parameters_of_the_class(name):
    """Two of them are numbers that no parameter sets."""
    kind = getattr(datasets, name)
    factors = set(kind.PEAK)
    assert factors - {"bytes", "features", "clouds"} <= set(inspect.signature(kind).parameters)
    assert "bytes" in factors
