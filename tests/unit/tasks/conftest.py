"""Files of the sources that tasks observe."""

import json

import numpy as np
import pandas as pd
import pytest
from census_sample import prepared_census
from observed_sources import FRAME


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """What sources are made of: a country of persons, stored records, clouds of points."""
    records, clouds = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("clouds")
    FRAME.drop(columns="y").to_parquet(records / "features.parquet")
    pd.DataFrame({"label": FRAME["y"].astype(np.int8)}).to_parquet(records / "labels.parquet")
    (records / "records.json").write_text(json.dumps({"n": 400, "parts": {}}))
    rng = np.random.default_rng(0)
    np.save(clouds / "points.npy", rng.normal(size=(120, 2)).astype(np.float32))
    np.savez(clouds / "clouds.npz", offsets=np.arange(0, 121, 10), classes=np.arange(12) % 3)
    (clouds / "records.json").write_text(json.dumps({"n": 12, "parts": {"train": [0, 8], "test": [8, 12]}}))
    country = prepared_census(tmp_path_factory.mktemp("country"))
    return {"persons": country.folder, "records": records, "clouds": clouds}
