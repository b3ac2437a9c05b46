"""Runs of one batch: each in a forked child under a time limit, each kept as a folder and reused while it holds.

A finished run is `results/runs/<key>/` with `run.json`, `measurements.parquet` and, where kept, `model/`. It is reused
while its fingerprint (key, code, content of its observation) is the same and it has a result: it is `ok`, or `stopped` at
its solver's own limit. A run that failed is tried again whenever its batch is.

Runs of this package's methods share a child, which loads compiled code once. Runs of a user's methods have a child each, so
that nothing that one leaves behind in modules or classes reaches the next.
"""

import functools
import json
import os
import platform
import random
import select
import signal
import subprocess
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn import products, source
from agglearn.errors import ConfigError, NoiseIgnored, NotAvailable, Stopped, described
from agglearn.lifeline import end_tree
from agglearn.plan import IDENTITY, Run
from agglearn.products import digest
from agglearn.registry import build, resolve
from agglearn.seeds import seed

COLUMNS = [
    "run",
    *IDENTITY,
    "status",
    "reason",
    "measure",
    "item",
    "step",
    "value",
    "unit",
    "tested",  # digest of the tested units
    "overlap",  # of the seeds' splits, see `agglearn.tasks.Task.overlap`
]
NUMBERS = ("value", "step", "overlap")


def fit_batch(
    runs: list[Run], observed: dict[str, str], results, out, limit: float, effective: dict, newer_than: int = 0
) -> None:
    """Compute the runs that are missing and gather the batch's measurements.

    Parameters
    ----------
    runs : the batch.
    observed : data set → its observations' product.
    results : results folder.
    out : Parquet file to write; its metadata hold the recipe of every run.
    limit : seconds per run.
    effective : configuration, kept beside each result.
    newer_than : runs that are not newer are computed again (nanoseconds of the file system's clock).
    """
    store = Path(results) / "runs"
    manifests = {d: products.manifest(o) for d, o in observed.items()}
    prints = {r: fingerprint(r, manifests[r.dataset]) for r in runs}
    homes = {r: store / r.key for r in runs}
    todo = [r for r in runs if not _holds(r, homes[r], prints[r], manifests[r.dataset], newer_than)]
    recipes = {d: m.get("recipe") for d, m in manifests.items()}
    record = functools.partial(_record, prints=prints, homes=homes, recipes=recipes, effective=effective)
    for dataset in {r.dataset for r in todo}:
        found = manifests[dataset]
        if found["status"] != "ok":
            for run in [r for r in todo if r.dataset == dataset]:
                record(run, lambda folder, found=found: (found["status"], found["reason"], "", []))
    ready = [r for r in todo if manifests[r.dataset]["status"] == "ok"]
    for dotted in {name for r in ready for name in (_spec(r)["class"], _spec(r)["task"], _spec(r)["type"])}:
        resolve(dotted)  # imported once here, for all children; kernels run in children only

    def work(run: Run) -> None:
        record(run, lambda folder: one_run(run, Path(observed[run.dataset]), folder))

    apart = [run for run in ready if _is_of_a_user(run)]
    for together in ([run for run in ready if run not in apart], *([run] for run in apart)):
        for run, why in in_children(work, together, limit):
            record(run, lambda folder, why=why: ("failed", why, "", []))
    gather(runs, homes, out)
    print(f"{len(todo)} of {len(runs)} runs computed, the rest reused")


def _is_of_a_user(run: Run) -> bool:
    """Whether code from a folder named under `code:` computes the run."""
    return any(source.is_followed(name) and not name.startswith("agglearn.") for name in run.code)


def seed_globals(number: int) -> None:
    """Give Python's and NumPy's global random state to this run: a forked process has that of all others."""
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002


def fit_seed(run: Run) -> int:
    """Seed of the method of a run. It does not depend on the experiment, so equal runs of two experiments have equal results."""
    return seed("fit", run.dataset, run.dataset_params, run.observation_params, run.method, run.params, run.seed)


def fingerprint(run: Run, manifest: dict) -> str:
    """Digest of all that the run's result depends on: its recipe and the content of its observation and truth."""
    seen = {k: v for k, v in manifest["content"].items() if k.startswith(f"{run.slot.key}/")}
    return digest([run.recipe, seen, manifest.get("reason")])


def one_run(run: Run, observed: Path, folder: Path) -> tuple[str, str | None, str, list[dict]]:
    """Fit and measure: (status, reason, traceback, rows). An error of a method is a result, not the end of the table."""
    spec = _spec(run)
    task = resolve(spec["task"])()
    start = time.perf_counter()
    try:
        slot = observed / run.slot.key
        observation = resolve(spec["type"]).load(slot / "observation")
        random_state = fit_seed(run)
        seed_globals(random_state)
        estimator = build({"class": spec["class"], "params": json.loads(run.params)}, random_state=random_state)
        if hasattr(estimator, "warm_up"):
            estimator.warm_up()  # compilation is no part of the time of a fit
        _check_noise(estimator, observation, spec["ignore_noise"])
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseIgnored)  # it was asked for
            estimator.fit(observation)
        seconds = time.perf_counter() - begin
        truth = task.truth.load(slot / "truth")
        units = {name: unit for name, (unit, _) in task.MEASURES.items()}
        rows = [
            {"measure": m.measure, "item": m.item, "step": m.step, "value": m.value,
             "unit": units.get(m.measure, "") if m.unit is None else m.unit}
            for m in task.measure(estimator, truth, spec["measures"])
        ]  # fmt: skip
        if spec["keep_model"] == "all" or (spec["keep_model"] == "first_seed" and run.seed == 0):
            estimator.save(folder / "model")
        elapsed = time.perf_counter() - start
        rows += [{"measure": m, "value": v, "unit": "s"} for m, v in (("seconds", seconds), ("elapsed", elapsed))]
        units = products.read_json(slot / "units.json")
        return "ok", None, "", [row | units for row in rows]
    except NotAvailable as error:
        return "unavailable", str(error), "", []
    except Stopped as error:
        return "stopped", str(error), "", []
    except Exception as error:
        return "failed", described(error), traceback.format_exc(), []


def _check_noise(estimator, observation, ignore_noise: bool) -> None:
    """ConfigError where noise would be ignored and the experiment does not ask for it, or asks in vain."""
    if (wrong := estimator.noise_ignored(observation)) and not ignore_noise:
        raise ConfigError(f"{wrong}; or state `ignore_noise: true` beside the method's class")
    if ignore_noise and estimator.accounts_for_noise:
        raise ConfigError(f"ignore_noise: {type(estimator).__name__} accounts for noise; leave it out")


def _spec(run: Run) -> dict:
    return json.loads(run.spec)


def _holds(run: Run, home: Path, wanted: str, manifest: dict, newer_than: int) -> bool:
    """Whether the finished run is whole, and what would be computed; without an observation, whether its recipes are today's."""
    try:
        record = products.read_json(home / "run.json")
        rows = pq.read_table(home / "measurements.parquet", schema=SCHEMA).num_rows
        written = (home / "run.json").stat().st_mtime_ns
    except (OSError, ValueError):  # Arrow's errors are ValueErrors
        return False
    if record["status"] not in ("ok", "stopped") or not rows or written <= newer_than:
        return False
    if manifest["status"] != "ok" and manifest.get("recipe"):
        return (record["recipe"], record.get("observation_recipe")) == (run.recipe, manifest["recipe"])
    return record["fingerprint"] == wanted


def _record(run: Run, compute: Callable, prints: dict, homes: dict, recipes: dict, effective: dict) -> None:
    with products.atomic_dir(homes[run]) as work:
        began = time.time()
        status, reason, trace, rows = compute(work)
        ended = time.time()
        identity = {"run": run.key, **{f: getattr(run, f) for f in IDENTITY}, "status": status, "reason": reason}
        pq.write_table(_table([{**identity, **r} for r in rows or [{}]]), work / "measurements.parquet")
        if trace:
            (work / "traceback.txt").write_text(trace)
        products.write_json(
            work / "run.json",
            {
                **identity,
                "fingerprint": prints[run],
                "recipe": run.recipe,
                "observation_recipe": recipes[run.dataset],
                "spec": _spec(run),
                "python": platform.python_version(),
                "versions": source.versions(*run.code),
                "commit": commit(),
                "began": began,  # seconds since 1970, as `ended`
                "ended": ended,
                "config": effective,
            },
        )


SCHEMA = pa.schema([(c, pa.int64() if c == "seed" else pa.float64() if c in NUMBERS else pa.string()) for c in COLUMNS])


def _table(rows: list[dict]) -> pa.Table:
    """Rows in the columns of `SCHEMA`, where what is missing or NaN is null."""
    columns = {c: [row.get(c) for row in rows] for c in COLUMNS}
    columns |= {c: [None if v is None else float(v) for v in columns[c]] for c in NUMBERS}
    return pa.table([pa.array(v, SCHEMA.field(c).type, from_pandas=True) for c, v in columns.items()], schema=SCHEMA)


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes; None outside a repository."""
    here = Path(__file__).parent
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None


def gather(runs: Iterable[Run], homes: dict, out) -> None:
    """One Parquet file of all measurements of a batch."""
    table = pa.concat_tables([pq.read_table(homes[r] / "measurements.parquet", schema=SCHEMA) for r in runs])
    recipes = json.dumps({r.key: r.recipe for r in runs})
    with products.atomic_file(out) as work:
        pq.write_table(table.replace_schema_metadata({"recipes": recipes}), work, compression="zstd")


def in_children(work: Callable, items: list, limit: float) -> Iterator[tuple[object, str]]:
    """Run `work(item)` for every item in a forked child; yield (item, why) for each that died or took too long.

    A child does one item after the other and says through a pipe which one it begins; after a death the next child
    goes on with the following item.
    """
    at = 0
    while at < len(items):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(work, items, at, write)
        os.close(write)
        begun, late = _follow(read, limit)
        if late:
            end_tree(pid)
        os.close(read)
        status = os.waitpid(pid, 0)[1]
        if not late and status == 0:
            return
        at += max(begun - 1, 0)
        how = f"stopped after the limit of {limit:g} s" if late else _death(status)
        yield items[at], how
        at += 1


def _child(work: Callable, items: list, at: int, write: int) -> None:
    code = 1
    try:
        die_with_parent()
        for item in items[at:]:
            os.write(write, b".")
            work(item)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        import sys

        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _follow(read: int, limit: float) -> tuple[int, bool]:
    """(items begun, whether the last one passed the limit) of a child, from its pipe."""
    begun, since = 0, time.monotonic()
    while True:
        left = since + limit - time.monotonic()
        if left <= 0:
            return begun, True
        if select.select([read], [], [], left)[0]:
            said = os.read(read, 4096)
            if not said:
                return begun, False
            begun, since = begun + len(said), time.monotonic()


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        more = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the process was ended by {name}{more}"
    return f"the process ended with status {os.WEXITSTATUS(status)}"


def die_with_parent(by: int = signal.SIGKILL) -> None:
    """Ask Linux to end this child with its parent, by a signal, so that a killed workflow leaves nothing behind."""
    if platform.system() == "Linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, by)
