"""Files that the commands read, whose options are tested."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import yaml
from cli_calls import call, write_runs
from samples import ROOT, Project, write_empty_store

from agglearn import storage
from agglearn.observations import ContingencyTables
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import table_of
from agglearn_workflow.commands import recomputing
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan

SCHEMA = """
reviewed: true
one_row_per_person: true
label: {column: y, positive: 'yes', negative: 'no'}
features:
  age: {edges: [30, 50], missing: false}
  job: {values: [cook, nurse], missing: true}
  zone: {values: ['11', '22', '33'], missing: false}
"""
CONFIG = {"experiment": {"source": "maxent"}}
RECORD = {"config": CONFIG, "python": "3.11.7", "commit": None, "versions": {"numpy": "1.2.3"}}
ADDED = (
    "experiments/maxent_xor",
    "experiments/labelsums_equality",
    "datasets/anes96",
    "datasets/breast_cancer",
    "datasets/xor",
)


def records() -> pd.DataFrame:
    """Records with a number, two categories, a code, a large feature and two labels; `?` is a missing job."""
    rng = np.random.default_rng(3)
    n = 300
    frame = pd.DataFrame({"age": rng.integers(18, 80, n), "job": rng.choice(["cook", "nurse", "clerk", "?"], n)})
    frame["home"], frame["zone"] = rng.choice(["own", "rent"], n), rng.choice([11, 22, 33], n)
    frame["page"] = [f"p{k:02}" for k in rng.integers(0, 40, n)]
    score = frame["age"] / 20 + (frame["job"] == "nurse") + frame["page"].str[1:].astype(int) / 40
    chance = 1 / (1 + np.exp(2.5 - score))
    frame["y"], frame["z"] = (np.where(rng.random(n) < p, "yes", "no") for p in (chance, 0.3))
    return frame


def prepare(folder: Path) -> None:
    """Write the files that the commands read."""
    frame = records()
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";")
    frame[:150].to_csv(folder / "half.csv", index=False)
    frame.assign(job=frame["job"].replace("?", "-")).to_csv(folder / "dashes.csv", index=False)
    (folder / "schema.yaml").write_text(SCHEMA)
    few = "--label y --positive yes --missing ? --features"
    calls = {
        "tables": f"aggregate {folder}/data.csv {few} age,job,home",
        "others": f"aggregate {folder}/half.csv {few} age,job,home",
        "pages": f"aggregate {folder}/data.csv {few} page,job --pairs none",
        "declared": f"aggregate {folder}/data.csv --schema {folder}/schema.yaml --missing ?",
        "noisy": f"private {folder}/declared --epsilon 5 --delta 1e-5",
        "model": f"fit {folder}/tables --method naive_bayes",
        "another": f"fit {folder}/others --method naive_bayes",
    }
    for name, line in calls.items():
        assert call(f"{line} --out {folder}/{name}") == 0
    write_cells(folder)
    config = {"datasets": {"fair": {"title": "Another title", "citation": "Another (2001). Other."}}}
    (folder / "over.yaml").write_text(yaml.safe_dump(config))
    (folder / "seed.yaml").write_text(yaml.safe_dump({"experiments": {"maxent_xor": {"seeds": [0]}}}))
    for name, dataset in (("first", "fair"), ("second", "anes96")):
        (folder / name / "measurements/trial").mkdir(parents=True)
        measured = pd.DataFrame([{"run": "r", "dataset": dataset, "status": "ok"}])
        measured.to_parquet(folder / name / "measurements/trial/b.parquet")
        storage.write_json(folder / name / "runs/r/run.json", RECORD)
    write_project(folder / "project")
    for name in ("a", "b"):  # stores to send runs to
        write_empty_store(folder / f"{name}.db")
    write_runs(folder / "few", "trial", 1)
    write_runs(folder / "many", "trial", 2)


def write_cells(folder: Path) -> None:
    """Cells of tables as others write them, and the same with other names, with semicolons, and each twice."""
    cells, fewer = (ContingencyTables.load(folder / name).to_frame() for name in ("declared", "others"))
    cells.to_csv(folder / "cells_semicolons.csv", index=False, sep=";")
    n, ones = cells.rename(columns={"count": "n"}), cells.rename(columns={"label_sum": "ones"})
    files = {"cells": cells, "fewer": fewer, "cells_n": n, "cells_ones": ones, "cells_twice": pd.concat([cells, cells])}
    for name, frame in files.items():
        frame.to_csv(folder / f"{name}.csv", index=False)


def write_project(folder: Path) -> None:
    """A copy of the configuration with few experiments and data sets: to read and check all takes a second in each command."""
    Project(folder)
    for name in ADDED:
        shutil.copy(ROOT / f"config/{name}.yaml", folder / f"config/{name}.yaml")


def write_recorded(folder: Path) -> None:
    """A project, `small`, with three finished runs in its results and in its archive, and configurations that name another archive."""
    project = Project(folder / "small")
    quick = {"class": "agglearn.maxent.NaiveBayesClassifier", "observe": "tables"}
    few = {"datasets": {"loglinear": {"n": 100}}, "methods": {"naive_bayes": quick}, "baseline": "naive_bayes"}
    project.edit("experiments/trial", lambda content: content.update(few))
    plan, runs = Plan(load(project.base, {"scale": "default"})), {}
    for planned in plan.runs("trial"):
        outcome, observed = recomputing.recompute(planned, plan)
        facts = dict.fromkeys(store.FACTS.names) | planned.identity | {
            "recipe": planned.recipe, "observed": observed, "data": {}, "spec": planned.settings, "versions": {}, "status": "ok",
            "ended": 2.0, "cpu_seconds": 20.0 if planned.seed else 2.0,
        }  # fmt: skip
        rows = table_of([{"run": planned.key, **planned.identity, "status": "ok"} | row for row in outcome.rows])
        runs[planned.key] = store.ArchivedRun(facts, rows)
        storage.write_json(project.base / f"results/runs/{planned.key}/run.json", facts)
        pq.write_table(rows, project.base / f"results/runs/{planned.key}/measurements.parquet")
    store.write(project.base / "archive", "trial", runs)
    first = {key: one for key, one in runs.items() if not one.facts["seed"]}
    store.write(project.base / "part", "trial", first)
    old = {key: store.ArchivedRun(one.facts | {"recipe": "old", "ended": 3.0}, one.rows) for key, one in runs.items()}
    for name in ("old1", "old2"):
        store.write(project.base / name, "trial", old)
    for name in ("part", "old1", "old2", *(f"new{k}" for k in range(1, 7))):
        (folder / f"{name}.yaml").write_text(f"archive: {name}\n")
