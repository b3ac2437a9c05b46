"""Criteo Attribution as the authors' public loader makes it, on a file of the publisher's layout that the test writes."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml
from samples import ROOT

from agglearn.datasets import RecordStore, Tabular
from agglearn.observations import ContingencyTables, Records
from agglearn.tasks import Classification, TaskInput

ENTRY = yaml.safe_load((ROOT / "config/datasets/criteo_attribution.yaml").read_text())
FEATURES = ["campaign", "time_since_last_click", *(f"cat{k}" for k in range(1, 10))]
COLUMNS = [
    "timestamp", "uid", "campaign", "conversion", "conversion_timestamp", "conversion_id", "attribution", "click", "click_pos",
    "click_nb", "cost", "cpo", "time_since_last_click", *(f"cat{k}" for k in range(1, 10)),
]  # fmt: skip
N = 6000


def upstream() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 5, N) for name in COLUMNS})
    frame["click"] = rng.integers(0, 2, N)
    frame["time_since_last_click"] = np.where(rng.random(N) < 0.3, -1, rng.integers(1, 3_000_000, N))
    for name, size in (("cat3", 300), ("cat7", 2000), ("cat9", 900)):
        frame[name] = 10_000_000 + np.minimum(rng.zipf(1.3, N), size)
    return frame


def parsed(tmp_path, entry: dict, frame: pd.DataFrame) -> RecordStore:
    path, out = tmp_path / "criteo_attribution_dataset.tsv.gz", tmp_path / "out"
    out.mkdir()
    frame.to_csv(path, sep="\t", index=False)
    Tabular.from_entry(entry).parse({path.name: path}, out)
    return RecordStore.open(out)


def test_features_split_and_rare_values_are_the_loaders(tmp_path):
    frame = upstream()
    store = parsed(tmp_path, ENTRY, frame)
    records, test = Classification().observe(TaskInput("criteo_attribution", ENTRY, {}, store), Records, {}, 0)
    assert sorted(records.encoder.names) == sorted(FEATURES)
    share = len(test.y) / N
    assert abs(share - 0.3) < 5 * math.sqrt(0.3 * 0.7 / N)
    buckets = [int(math.log(seconds + 6 * 3600) / math.log(2)) for seconds in frame["time_since_last_click"]]
    assert store.column("time_since_last_click").tolist() == buckets
    by_name = {feature.name: feature for feature in records.encoder.features}
    assert set(by_name["time_since_last_click"].labels) == {str(b) for b in buckets}
    for name in ("cat3", "cat7"):
        counts = Counter(records.frame[name])
        assert set(by_name[name].labels) == {str(v) for v, n in counts.items() if n > 20} | {"other"}
    assert "other" not in by_name["cat9"].labels


@pytest.mark.filterwarnings("ignore::agglearn.errors.RecordsLeftOut")
def test_a_user_is_on_one_side_of_the_split_and_counts_once_in_ten(tmp_path):
    """`criteo_attribution_users`: noise protects whole users, of whom `max_rows` impressions are counted."""
    users = yaml.safe_load((ROOT / "config/datasets/criteo_attribution_users.yaml").read_text())
    entry = ENTRY | {"unit": users["unit"], "features": ENTRY["features"] | users["features"]}
    store = parsed(tmp_path, entry, upstream().assign(uid=np.arange(N) % 600))
    source = TaskInput("criteo_attribution_users", entry, {}, store)
    tables, test = Classification().observe(source, ContingencyTables, {"epsilon": 1.0, "max_rows": 2}, 0)
    assert "uid" not in tables.encoder.names
    assert (tables.noise.adjacency, tables.unit.column, tables.unit.max_rows) == ("unit", "uid", 2)
    assert len(test.y) % 10 == 0  # each user has ten impressions
    records, _ = Classification().observe(source, Records, {}, 0)
    assert len(records.y) + len(test.y) == N
    exact, _ = Classification().observe(source, ContingencyTables, {"max_rows": 2}, 0)
    assert exact.total == len(records.y) / 5
