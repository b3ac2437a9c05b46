"""The project of the small world after a run: its results, and the numbers that should stand there."""

import copy
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import world as w
from project import Outcome, Project
from world_claims import BROKEN, CLAIMS

from agglearn_workflow import digests
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.plan import Plan


@dataclass
class State:
    """The project after a run: its results, the run's outcome, the numbers that should stand there."""

    folder: Path
    results: Path
    outcome: Outcome
    overlay: dict
    mended: bool

    def __post_init__(self):
        self.runs = {p.parent.name: json.loads(p.read_text()) for p in self.results.glob("runs/*/run.json")}
        splits = {(c[2], c[3]): split for c, split in self.splits().items() if c[:2] == ("rates", 1.0)}
        self.recipes = {run.key: run.recipe for run in self.plan().runs("world")}
        self.world = w.World(splits, pull=0.25 if self.mended else 0.5, mended=self.mended)

    def splits(self) -> dict[tuple, w.Split]:
        """Trained and tested records of every run that kept its model, by method, prior, size and seed."""
        found = {}
        for key, record in self.runs.items():
            path = self.results / f"runs/{key}/model/model.json"
            if path.exists():
                state = json.loads(path.read_text())["state"]
                found[cell_of(record)] = w.Split(tuple(state["trained_"]), tuple(state["tested_"]))
        return found

    def plan(self) -> Plan:
        """The plan with the code of the state's time."""
        loaded = configuration.load(self.folder, copy.deepcopy(self.overlay))
        plan = Plan(loaded | {"scale_folder": str(self.results)})
        for run in plan.runs("world") if hasattr(self, "recipes") else ():
            vars(run)["recipe"] = self.recipes[run.key]
        return plan


def run_twice(made: Project) -> dict[str, State]:
    """The project after its first run, and after an edit of one method, a mended cause of failures and a second run."""
    made.overlay["datasets"]["people"] = copy.deepcopy(w.ENTRY)
    made.write_data("people", "people", "people.csv", w.csv_of(w.people()))
    made.overlay["experiments"] = {"world": copy.deepcopy(w.EXPERIMENT), "world_apart": {"extends": "world"}}
    made.overlay["claims"] = copy.deepcopy(CLAIMS | BROKEN)
    made.overlay["run"] = ["world"]
    outcome = made.run()
    shutil.copytree(made.results, made.folder / "first")  # with its times
    first = State(made.folder, made.folder / "first", outcome, copy.deepcopy(made.overlay), mended=False)
    made.edit("tests/workflow/spikes/drawn.py", "pull = 0.5", "pull = 0.25")
    (made.folder / "mended").touch()
    made.overlay["claims"] = copy.deepcopy(CLAIMS)
    outcome = made.run()
    for cached in digests.CACHED:
        cached.cache_clear()  # as in a new process
    return {"first": first, "second": State(made.folder, made.results, outcome, made.overlay, mended=True)}


def cell_of(record: dict) -> tuple:
    """(method, prior, size, seed) of a run."""
    prior = json.loads(record["params"]).get("prior")
    return record["method"], prior, json.loads(record["dataset_params"])["rows"], record["seed"]


def claims_of(state: State) -> dict[str, dict]:
    found = json.loads((state.results / "claims.json").read_text())
    assert len({c["name"] for c in found}) == len(found)
    return {c["name"]: c for c in found}
