"""A copy of the project in a temporary folder, with small data in the exact format of the real files."""

import copy
import functools
import gzip
import hashlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Collection
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import yaml
from forks import workflow_server
from numba.core.caching import UserProvidedCacheLocator
from samples import OFFLINE, ROOT

import agglearn
from agglearn import kernel_cache
from agglearn_workflow import digests

COPIED = ("Snakefile", "environment.yml", "config", "docs", "profiles", "rules", "src", "workflow")


class Project:
    """Runs Snakemake as a user would, and reads what comes out."""

    def __init__(self, folder: Path, cache: Path, shipped: Collection[str] = ()):
        """`shipped`: names of the project's experiments that come with it, and their claims; to read and check all takes seconds."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder, self.results = folder, folder / "results"
        self.environ = {}  # what Snakemake gets besides
        summarise_code()
        for name in (*COPIED, "tests/workflow/spikes"):
            origin = ROOT / name
            if origin.is_dir():
                # with compiled modules, which hold while the times are kept, but without compiled kernels and what `make docs` writes
                shutil.copytree(
                    origin, folder / name, ignore=shutil.ignore_patterns("agglearn-*", "api", "gallery", ".*.json.*")
                )
            else:
                shutil.copy(origin, folder / name)
        share_kernels(folder / "src/agglearn", folder / "src/agglearn/__pycache__")
        self.restrict(shipped)
        self.overlay = {"scale": "smoke", "cache": str(cache), "mirrors": [str(folder / "mirror")]}
        self.overlay |= {"code": ["tests/workflow/spikes"], "datasets": {}, "experiments": {}}

    def restrict(self, names: Collection[str]) -> None:
        """Keep some experiments of the configuration only, and their claims; without any, of the data sets Adult alone."""
        for path in [] if names else (self.folder / "config/datasets").iterdir():
            if path.stem != "adult":
                path.unlink()
        for path in (self.folder / "config/experiments").iterdir():
            if path.stem not in names:
                path.unlink()
        path = self.folder / "config/claims.yaml"
        claims = yaml.load(path.read_text(), yaml.CSafeLoader) if names else {}
        path.write_text(yaml.safe_dump({n: c for n, c in claims.items() if c["experiment"] in names}, sort_keys=False))

    def write_data(self, name: str, folder: str, file: str, text: str | bytes) -> None:
        """Put a file into the mirror, compressed where its name says so, and its checksum into the entry."""
        path = self.folder / "mirror" / folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode() if isinstance(text, str) else text
        data = gzip.compress(data, mtime=0) if file.endswith(".gz") else data
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        self.overlay["datasets"].setdefault(name, {}).setdefault("files", {})[file] = {"sha256": digest}

    def call(self, arguments) -> tuple[list[str], dict[str, str]]:
        """Arguments of Snakemake and its environment, with today's overlay written."""
        path = self.folder / "overlay.yaml"
        path.write_text(yaml.safe_dump(self.overlay))
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "AGGLEARN", "PIP_"))} | OFFLINE
        environment["PYTHONPATH"] = str(self.folder / "src")
        return ["--cores", "2", *arguments, "--configfile", str(path)], environment | self.environ

    def start(self, *arguments: str, **more) -> subprocess.Popen:
        """A process of Snakemake, to be ended by the test."""
        given, environment = self.call(arguments)
        printed = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = [sys.executable, "-m", "snakemake", *given]
        return subprocess.Popen(command, cwd=self.folder, env=environment, **printed, **more)

    def run(self, *arguments: str) -> "Outcome":
        """Run Snakemake to its end, in a fork of a process that has imported it."""
        given, environment = self.call(arguments)
        return run_module("snakemake", given, environment, self.folder, self.folder / "printed.txt")

    def succeed(self, *arguments: str) -> "Outcome":
        """Run Snakemake to its end, which must be a good one."""
        outcome = self.run(*arguments)
        assert outcome.status == 0, outcome.text[-3000:]
        return outcome

    def reproduce(self, *arguments: str) -> "Outcome":
        """Run `agglearn reproduce` to its end, in a fork."""
        given, environment = self.call(arguments)
        command = ["reproduce", *given[-2:], *given[:-2]]
        return run_module("agglearn", command, environment, self.folder, self.folder / "printed.txt")

    def computed(self) -> dict[str, float]:
        """Run key → time at which its folder was written."""
        return {p.parent.name: p.stat().st_mtime_ns for p in self.results.glob("runs/*/run.json")}

    def records(self) -> list[dict]:
        return [json.loads(p.read_text()) for p in self.results.glob("runs/*/run.json")]

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.results / f"tables/{name}.csv")

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) >= 1, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1))


def tracking_client(results: Path) -> mlflow.MlflowClient:
    """MLflow's client on a copy of a project's database.

    MLflow keeps a connection for each path, and the projects of a session lie at one path, one after the other.
    """
    copy = shutil.copy(results / "mlflow.db", results.parent / f"tracked-{uuid.uuid4().hex}.db")
    return mlflow.MlflowClient(f"sqlite:///{copy}")


@functools.cache
def summarise_code() -> None:
    """Read the text of all modules: what is kept of it is copied with the code."""
    for module in pkgutil.walk_packages(agglearn.__path__, "agglearn."):
        digests.modules_behind(module.name)


def share_kernels(package: Path, base: Path) -> None:
    """Let a copy of the package, which keeps compiled kernels in `base`, find those that any test has compiled, and the other way round.

    Numba looks for them by the path of the code, whose digest is in the name of the folder above. A kernel holds for a file of one time.
    """
    ours, theirs = Path(os.environ[kernel_cache.VARIABLE]), base / kernel_cache.today()
    theirs.mkdir(parents=True, exist_ok=True)
    for module in kernel_cache.compiled_modules(kernel_cache.PACKAGE):
        copied = package / module.relative_to(kernel_cache.PACKAGE)
        shutil.copystat(module, copied)
        kernels = ours / UserProvidedCacheLocator.get_suitable_cache_subpath(str(module))
        kernels.mkdir(parents=True, exist_ok=True)
        link = theirs / UserProvidedCacheLocator.get_suitable_cache_subpath(str(copied))
        if not link.is_symlink():
            link.symlink_to(kernels)


def run_module(name: str, arguments: list[str], environ: dict[str, str], cwd: Path, printed: Path) -> "Outcome":
    """Run Snakemake or the command line to its end, in a fork of a process that has imported Snakemake. What it prints goes to the
    file `printed`. Jobs run in forks, too, where they find libraries imported."""
    began = time.monotonic()
    code = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    status = workflow_server().run(code, cwd, printed, arguments, environ)
    return Outcome(status, printed.read_text(), time.monotonic() - began)


class Outcome:
    """Exit status, everything printed, seconds."""

    def __init__(self, status: int, text: str, seconds: float):
        self.status, self.text, self.seconds = status, text, seconds

    @property
    def said(self) -> list[str]:
        """Our own lines."""
        return [line for line in self.text.splitlines() if line.startswith("agglearn: ")]


def adult_like(rows: int, seed: int, test: bool) -> str:
    """Records in the format of adult.data / adult.test, with a label that depends on them."""
    rng = np.random.default_rng(seed)
    education = rng.choice(["HS-grad", "Bachelors", "Masters"], rows)
    hours, age = rng.integers(10, 80, rows), rng.integers(17, 90, rows)
    score = (education == "Masters") * 1.5 + (education == "Bachelors") + (hours - 40) / 15 - 0.8
    label = np.where(rng.random(rows) < 1 / (1 + np.exp(-score)), ">50K", "<=50K")
    lines = [
        f"{age[i]}, {rng.choice(['Private', 'State-gov', '?'])}, {rng.integers(10000, 900000)}, {education[i]}, "
        f"{rng.integers(1, 16)}, {rng.choice(['Divorced', 'Never-married'])}, {rng.choice(['Sales', 'Craft-repair', '?'])}, "
        f"{rng.choice(['Husband', 'Wife', 'Own-child'])}, {rng.choice(['White', 'Black'])}, {rng.choice(['Male', 'Female'])}, "
        f"{rng.choice([0, 0, 0, 2174])}, 0, {hours[i]}, {rng.choice(['United-States', 'Mexico'])}, "
        f"{label[i]}{'.' if test else ''}"
        for i in range(rows)
    ]
    return ("|1x3 Cross validator\n" if test else "") + "\n".join(lines) + "\n\n"


BANK = {
    "job": ["admin.", "services"], "marital": ["married", "single"], "education": ["basic.4y", "unknown"],
    "default": ["no", "unknown"], "housing": ["yes", "no"], "loan": ["yes", "no"], "contact": ["cellular", "telephone"],
    "month": ["may", "jun"], "day_of_week": ["mon", "tue"],
}  # fmt: skip


def bank_like(rows: int, seed: int) -> str:
    """Records in the format of bank-additional-full.csv."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 90, rows)})
    frame = frame.assign(**{name: rng.choice(values, rows) for name, values in BANK.items()})
    frame = frame.assign(duration=rng.integers(0, 2000, rows), campaign=rng.integers(1, 9, rows), pdays=999, previous=0)
    frame["poutcome"] = rng.choice(["nonexistent", "failure"], rows)
    ranges = {"emp.var.rate": (-3, 2), "cons.price.idx": (92, 95), "cons.conf.idx": (-50, -30), "euribor3m": (0, 5)}
    for name, (low, high) in (ranges | {"nr.employed": (4900, 5300)}).items():
        frame[name] = rng.uniform(low, high, rows).round(1)
    frame["y"] = np.where(rng.random(rows) < 1 / (1 + np.exp(2 - frame["duration"] / 500)), "yes", "no")
    return frame.to_csv(index=False, sep=";", quoting=2)


SPIKE = {"source": "spike", "seeds": [0, 1], "batch_by": ["dataset"]}

CHAIN = SPIKE | {
    "title": "Learning in stages",
    "task": "agglearn.tasks.Classification",
    "datasets": {"walkers": {"n": 400}},
    "observe": {"records": {"type": "agglearn.observations.Records"}},
    "methods": {"stages": {"class": "ledger.Rates", "observe": "records", "params": {"column": "x1", "prior": {"grid": [1.0, 4.0]}}}},
    "measures": ["nllh", "curve"],
    "table": {"rows": ["dataset"], "columns": ["params.prior"], "measure": "nllh"},
    "figure": {"kind": "curve", "y": "nllh", "series": ["params.prior"]},
}  # fmt: skip

REGIONS = SPIKE | {
    "title": "Bags per region", "task": "bags.PersonLabels", "datasets": {"regions": {}}, "measures": ["accuracy"],
    "observe": {"bags": {"type": "bags.BagCounts"}},
    "methods": {"threshold": {"class": "bags.MeanThreshold", "observe": "bags"}},
    "table": {"rows": ["keys.region"], "columns": ["method"], "measure": "accuracy"},
}  # fmt: skip

ADULT = SPIKE | {
    "title": "Records of Adult", "task": "agglearn.tasks.Classification", "datasets": {"adult": {}},
    "measures": ["nllh"], "seeds": [0],
    "observe": {"tables": {"type": "agglearn.observations.ContingencyTables", "binning": "width"}},
    "methods": {"naive_bayes": {"class": "agglearn.maxent.NaiveBayesClassifier", "observe": "tables"}},
}  # fmt: skip

SPIKE_DATA = {
    "walkers": {"title": "Walkers", "class": "agglearn.datasets.LogLinear"},
    "regions": {"title": "Regions", "class": "bags.Regions"},
}

SPIKES = {"spike_chain": CHAIN, "spike_regions": REGIONS, "spike_adult": ADULT}


def spiked(places, *names: str, run: Collection[str] = ()) -> Project:
    """A project with some of the spikes, which runs `run`, by default all of them, and sends nothing."""
    made = Project(*places)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({name: SPIKES[name] for name in names})
    made.overlay |= {"run": [*(run or names)], "tracking": {"uri": "none"}}
    return made
