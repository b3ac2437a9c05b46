"""Samples that tests make: records, and a project's configuration to be edited."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
import pandas as pd
import pip
import yaml

ROOT = Path(__file__).resolve().parent.parent

# What the mirror lacks can be had nowhere: no package index, and a proxy on a port where nobody listens.
NOWHERE = "http://127.0.0.1:9"
OFFLINE = {"http_proxy": NOWHERE, "https_proxy": NOWHERE, "no_proxy": "127.0.0.1,localhost",
           "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}  # fmt: skip

EXPERIMENT = """
source: maxent
title: An experiment of the tests
task: agglearn.tasks.Classification
datasets: {fair: {}, loglinear: {n: {grid: [100, 200]}}}
observe:
  tables:  {type: agglearn.observations.ContingencyTables, binning: width}
  records: {type: agglearn.observations.Records, binning: width}
seeds: {smoke: [0], default: [0, 1, 2]}
methods:
  maxent:
    class: agglearn.maxent.MaxEntClassifier
    observe: tables
    params: {n_chains: {smoke: 200, default: 10000}, l2_theta: {grid: [4.0, 16.0]}}
  logistic: {class: agglearn.maxent.LogisticSkyline, observe: records}
measures: [nllh, auc, seconds]
baseline: logistic
"""

# What the tests name; to check all data sets of the project takes most of the time of loading a configuration.
DATASETS = ("acs_2024", "adkdd21", "adkdd21_raw", "adult", "bank", "criteo_dac_head", "digits", "fair", "loglinear")


@functools.cache
def shipped_config() -> dict:
    """The configuration of the project, read and checked once for all tests of a process; whoever changes it takes a copy."""
    from agglearn_workflow.config.loading import load

    return load(ROOT)


class Project:
    """A copy of the configuration, to be edited."""

    def __init__(self, base: Path):
        self.base = base
        shutil.copytree(ROOT / "workflow/schemas", base / "workflow/schemas")
        (base / "config/experiments").mkdir(parents=True)
        for path in (ROOT / "config").glob("*.yaml"):
            shutil.copy(path, base / "config")
        (base / "config/datasets").mkdir()
        for name in DATASETS:
            shutil.copy(ROOT / f"config/datasets/{name}.yaml", base / "config/datasets")
        (base / "config/claims.yaml").write_text("{}\n")
        (base / "config/experiments/trial.yaml").write_text(EXPERIMENT)

    def path(self, name: str) -> Path:
        return self.base / "config" / f"{name}.yaml"

    def edit(self, name: str, change) -> None:
        """Apply `change` to the content of config/<name>.yaml."""
        content = yaml.load(self.path(name).read_text(), yaml.CSafeLoader) or {}
        change(content)
        self.path(name).write_text(yaml.safe_dump(content, sort_keys=False))


def rule_texts() -> list[str]:
    """The files of rules. A rule that is written once for each source stands as others do, under the name before the source's."""
    of_sources = re.compile(r'^    rule:\n        name:\n            f"(\w+)_\{source\}"\n((?: {8}.*\n)+)', re.M)
    texts = [path.read_text() for path in sorted((ROOT / "rules").glob("*.smk"))]
    return [of_sources.sub(lambda m: f"rule {m[1]}:\n" + re.sub(r"^    ", "", m[2], flags=re.M), t) for t in texts]


def printed_with_threads(code: str) -> list[str]:
    """Words that a program prints in a process of its own, which may use four threads."""
    environ = {**os.environ, "NUMBA_NUM_THREADS": "4", "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    ).stdout.split()


def empty_environment(folder: Path) -> Path:
    """An environment with nothing but pip, which is a link to the pip of this one: to install and compile it takes seconds."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    return folder


@functools.cache
def _empty_store() -> bytes:
    """MLflow's database without runs, which dozens of migrations make."""
    from agglearn_workflow.tracking import push

    with tempfile.TemporaryDirectory() as folder:
        push.create_database(Path(folder, "mlflow.db"))
        return Path(folder, "mlflow.db").read_bytes()


def write_empty_store(path: Path) -> None:
    """Write MLflow's database without runs. It is made once for all tests of a process."""
    path.write_bytes(_empty_store())


def people(n: int = 397, seed: int = 0) -> pd.DataFrame:
    """Records with a number, a category, a category with missing values, a code, and a label that depends on them.

    No two values are equally frequent. The label rises with age, and falls with one of the jobs and one of the zones.
    """
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "job": rng.choice(["cook", "nurse", "clerk"], n, p=[0.5, 0.3, 0.2])}
    )
    frame["home"] = rng.choice(["rent", "own", None], n, p=[0.45, 0.35, 0.2])
    frame["zone"] = rng.choice([11, 22, 33], n, p=[0.25, 0.6, 0.15])
    score = frame.age / 20 - 2.5 + (frame.job == "nurse") - (frame.job == "clerk") - 1.5 * (frame.zone == 33)
    frame["y"] = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return frame


PEOPLE_SCHEMA = """
reviewed: true
one_row_per_person: true
label: {column: y, positive: '1', negative: '0'}
features:
  age: {edges: [30, 40, 50, 60], missing: false}
  job: {values: [cook, nurse, clerk], missing: true}
  home: {values: [own, rent], missing: true}
  zone: {values: ['11', '22', '33'], missing: false}
"""


def counted_paths(paths: np.ndarray):
    """Exact counts of paths (n, 3) over four states."""
    from agglearn.observations import FlowCounts

    nodes = np.array([np.bincount(paths[:, t], minlength=4) for t in range(3)], float)
    edges = np.zeros((2, 4, 4))
    for t in range(2):
        np.add.at(edges[t], (paths[:, t], paths[:, t + 1]), 1)
    return FlowCounts(nodes, edges, noise="exact", population_size=len(paths))


def write_election(folder: Path, votes: np.ndarray, districts: list[str]) -> np.ndarray:
    """Write margins of units, and the tables of their districts, made of `votes` (units, 2 groups, 2 or 3 options). Return the tables."""
    groups, options = ["old", "young"], ["left", "middle", "right"][: votes.shape[2]]
    margins = [
        pd.DataFrame({"district": districts, "unit": range(len(votes)), "margin": margin, "name": name, "votes": part})
        for margin, names, counts in (("group", groups, votes.sum(axis=2)), ("option", options, votes.sum(axis=1)))
        for name, part in zip(names, counts.T, strict=True)
    ]
    pd.concat(margins, ignore_index=True).to_parquet(folder / "features.parquet")
    places = sorted(set(districts))
    tables = np.stack([votes[np.array(districts) == place].sum(axis=0) for place in places])
    cells = pd.MultiIndex.from_product([places, groups, options], names=["district", "group", "option"])
    pd.Series(tables.ravel(), cells, name="votes").reset_index().to_parquet(folder / "labels.parquet")
    (folder / "records.json").write_text(json.dumps({"n": int(votes.sum()), "parts": {}}))
    return tables
