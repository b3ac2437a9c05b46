"""What jobs are expected to take, from their data."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

from agglearn import datasets
from agglearn.workflow import memory

GAUSSIAN = {"class": "agglearn.datasets.GaussianBags"}


def test_bytes_when_read(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 3), np.float32))
    np.savez_compressed(tmp_path / "z.npz", a=np.zeros(1000), b=np.zeros(500, np.int8))
    pd.DataFrame({"a": np.zeros(1000, np.int8), "b": ["same"] * 1000}).to_parquet(tmp_path / "t.parquet")
    assert memory.unpacked(tmp_path / "x.npy") == pytest.approx(12_000, abs=200)
    assert memory.unpacked(tmp_path / "z.npz") == pytest.approx(8500, abs=400)  # however well it is compressed
    assert memory.unpacked(tmp_path / "t.parquet") == 16_000
    assert memory.unpacked(tmp_path) == pytest.approx(36_500, abs=600)


def test_of_many_observations_the_largest_counts(tmp_path):
    """One at a time is read; features of training and test rows are read with it."""
    for slot, rows in (("a", 1000), ("b", 5000), ("c", 10)):
        (tmp_path / slot / "observation").mkdir(parents=True)
        np.save(tmp_path / slot / "observation/X.npy", np.zeros(rows))
    (tmp_path / "features").mkdir()
    for rows in (2000, 500):
        np.save(tmp_path / f"features/{rows}.npy", np.zeros(rows))
    (tmp_path / "manifest.json").write_text("{}")
    assert memory.largest_slot(tmp_path) == pytest.approx(8 * (5000 + 2 * 2000), abs=600)


def test_files_and_records_raise_the_floor(tmp_path):
    assert memory.for_parsing({"class": "agglearn.datasets.Delimited"}, tmp_path) == memory.FLOOR  # nothing fetched yet
    (tmp_path / "files.json").write_text(json.dumps({"a": {"bytes": 10**7}, "b": {"bytes": 3 * 10**7}}))
    expected = memory.FLOOR + 40 * memory.PER_SOURCE
    assert memory.for_parsing({"class": "agglearn.datasets.Delimited"}, tmp_path) == expected
    (tmp_path / "manifest.json").write_text('{"memory": 500000000}')
    assert memory.for_observing({}, [], tmp_path) == memory.FLOOR + 500 * memory.PER_RECORDS
    (tmp_path / "manifests.json").write_text('{"a": {"memory": 500000000}, "b": {"memory": 1000000}, "gone": {}}')
    assert memory.for_fitting(tmp_path / "manifests.json", ["a", "b"]) == memory.FLOOR + 500 * memory.PER_SLOT
    assert memory.for_fitting(tmp_path / "manifests.json", ["b", "gone"]) == memory.FLOOR + memory.PER_SLOT
    assert memory.for_fitting(tmp_path / "none.json", ["a"]) == memory.FLOOR


def test_simulated_data_count_by_their_parameters():
    small, large = {"n_bags": 10, "bag_size": 100}, {"n_bags": 1000, "bag_size": 1000, "dimension": 5}
    assert memory.for_observing(GAUSSIAN, [small, large], None) == memory.FLOOR + 12 * 5
    entry = GAUSSIAN | {"params": {"dimension": 10, "n_bags": 1000, "bag_size": 1000}}
    assert memory.for_observing(entry, [{}], None) == memory.FLOOR + 12 * 10
    assert (
        memory.for_observing(entry, [{"dimension": None}], None) == memory.FLOOR + 12 * 32
    )  # as the simulator takes null
    assert memory.for_observing({"class": "agglearn.datasets.BirdMigration"}, [{}], None) == memory.FLOOR


@pytest.mark.parametrize("name", ["GaussianBags", "Categorical", "LogLinear", "Xor", "ClickLog", "PointClouds"])
def test_factors_are_parameters_of_the_class(name):
    """Two of them are numbers that no parameter sets."""
    kind = getattr(datasets, name)
    factors = set(kind.PEAK)
    assert factors - {"bytes", "features", "clouds"} <= set(inspect.signature(kind).parameters)
    assert "bytes" in factors
