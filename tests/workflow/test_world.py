"""A small world with known answers: raw records, an experiment on them, and the numbers that follow, in plain Python. They are
compared with what each run has measured. `tests/unit/reporting/` and `tests/unit/tracking/` have every field of tables, figures,
claims, pages and MLflow by hand.
"""

import json
import math
import random

import pandas as pd
import pytest
from project import SPIKE, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

SIZES, SEEDS, COLOURS = (120, 240), (0, 1, 2), ("blue", "green", "red")
LEGS = {"0,0>1,0": 0.15, "0,1>0,0": 0.85, "1,0>1,1": 0.35, "1,1>0,1": 0.7}  # leg → rate of label 1
METHODS = [("rates", 1.0), ("rates", 8.0), ("base", None)]
OVERLAP = 0.25 / 0.75  # test records per training record
ENTRY = {
    "title": "People & <co>", "class": "agglearn.datasets.Tabular", "format": {"separator": ";"},
    "label": {"column": "y", "positive": "yes"}, "split": 0.25,
}  # fmt: skip
EXPERIMENT = SPIKE | {
    "title": "World & 5 % of_it", "task": "ledger.Ledger", "seeds": list(SEEDS),
    "datasets": {"people": {"rows": {"grid": list(SIZES)}}},
    "observe": {"records": {"type": "agglearn.observations.Records"}},
    "methods": {
        "rates": {"class": "ledger.Rates", "observe": "records", "params": {"prior": {"grid": [1.0, 8.0]}}},
        "base": {"class": "ledger.Rates", "observe": "records", "params": {"column": ""}},
    },
    "measures": ["nllh", "auc", "log_loss", "curve", "right"], "keep_model": "all",
}  # fmt: skip


def people() -> dict[str, dict]:
    """300 records by their id, whose label depends on the leg."""
    rng, found = random.Random(11), {}
    for i in range(300):
        leg = rng.choice(list(LEGS))
        y = "yes" if rng.random() < LEGS[leg] else "no"
        found[f"r{i:03}"] = {"id": f"r{i:03}", "leg": leg, "colour": rng.choice(COLOURS), "y": y}
    return found


PEOPLE = people()


@pytest.fixture(scope="module")
def project(places) -> Project:
    """The project after its run."""
    made = Project(*places)
    made.overlay |= {"datasets": {"people": ENTRY}, "experiments": {"world": EXPERIMENT}, "run": ["world"]}
    text = "\n".join(";".join(record.values()) for record in PEOPLE.values())
    made.write_data("people", "people", "people.csv", f"id;leg;colour;y\n{text}\n")
    made.succeed()
    return made


@pytest.fixture(scope="module")
def splits(project) -> dict[tuple, tuple]:
    """Ids of the records that each run trained and tested, by method, prior, size and seed."""
    found = {}
    for record in project.records():
        state = json.loads((project.results / f"runs/{record['run']}/model/model.json").read_text())["state"]
        found[cell_of(record)] = state["trained_"], state["tested_"]
    return found


def cell_of(record: dict) -> tuple:
    """(method, prior, size, seed) of a run."""
    prior = json.loads(record["params"]).get("prior")
    return record["method"], prior, json.loads(record["dataset_params"])["rows"], record["seed"]


def mean(values) -> float:
    return sum(values) / len(values)


def log_loss(y, p) -> float:
    return -mean([math.log(q if v else 1 - q) for q, v in zip(p, y, strict=True)])


def nllh(y, p) -> float:
    rate = mean(y)
    return 1 - log_loss(y, p) / -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))


def auc(y, p) -> float:
    """Share of pairs of a positive and a negative in the right order; a tie is half."""
    pairs = [(a, b) for a, v in zip(p, y, strict=True) if v for b, w in zip(p, y, strict=True) if not w]
    return mean([(a > b) + (a == b) / 2 for a, b in pairs])


def measured(cell: tuple, trained: list[str], tested: list[str]) -> dict[tuple, float]:
    """(measure, keys, step) → value of a run."""
    method, prior, *_ = cell
    y = [PEOPLE[i]["y"] == "yes" for i in tested]

    def group(i: str) -> str:
        return "all" if method == "base" else PEOPLE[i]["leg"]

    def predicted(known: list[str], prior: float) -> list[float]:
        same = [[PEOPLE[k]["y"] == "yes" for k in known if group(k) == group(i)] for i in tested]
        return [(sum(labels) + prior / 2) / (len(labels) + prior) if labels else 0.5 for labels in same]

    p = predicted(trained, prior or 1.0)
    right = [(q > 0.5) == v for q, v in zip(p, y, strict=True)]
    found = {(m.__name__, None, None): m(y, p) for m in (log_loss, nllh, auc)} | {("right", None, None): mean(right)}
    for k in (1, 2, 3, 4):
        found["nllh", None, k] = nllh(y, predicted(trained[: len(trained) * k // 4], 4.0))
        found["seconds", None, k] = k / 8
    for colour in COLOURS:
        here = [one for one, i in zip(right, tested, strict=True) if PEOPLE[i]["colour"] == colour]
        found["right", f'{{"colour": "{colour}"}}', None] = mean(here)
    return found


def test_every_seed_has_training_and_test_records_of_its_own(splits):
    assert len(splits) == len(METHODS) * len(SIZES) * len(SEEDS)
    for size in SIZES:
        of_seeds = [[split for cell, split in splits.items() if cell[2:] == (size, seed)] for seed in SEEDS]
        assert all(split == same[0] for same in of_seeds for split in same)  # the same for all methods
        for trained, tested in (same[0] for same in of_seeds):
            known = {*trained, *tested}
            assert known <= PEOPLE.keys()
            assert len(trained) + len(tested) == len(known) == pytest.approx(size, abs=1)
            assert len(tested) / size == pytest.approx(0.25, abs=0.08)
        for part in (0, 1):
            sets = [set(same[0][part]) for same in of_seeds]
            assert all(len(a & b) < 0.75 * len(a) for i, a in enumerate(sets) for b in sets[:i])


def test_measurements_are_those_computed_by_hand(project, splits):
    rows = pd.concat(map(pd.read_parquet, project.results.glob("measurements/world/*.parquet")))
    cells = {record["run"]: cell_of(record) for record in project.records()}
    assert set(rows["run"]) == set(cells)
    for key, part in rows.groupby("run"):
        found = {(r.measure, r.keys, None if math.isnan(r.step) else r.step): r.value for r in part.itertuples()}
        assert len(found) == len(part), "a measure stands twice"
        timed = {name: found.pop((name, None, None)) for name in ("seconds", "elapsed")}
        assert 0 <= timed["seconds"] <= timed["elapsed"]
        assert found == pytest.approx(measured(cells[key], *splits[cells[key]]))
        assert set(part["status"]) == {"ok"}
        assert part["overlap"].tolist() == pytest.approx([OVERLAP] * len(part))
