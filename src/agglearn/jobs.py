"""The stages of the workflow as its rules call them: each takes a job and writes exactly its output."""

import contextlib
import functools
import logging
import resource
import sys
import time
import traceback
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from agglearn import kernel_cache, storage
from agglearn.errors import AgglearnError, NotAvailable, describe
from agglearn.inspection import digests, modules
from agglearn.local_files import project_files
from agglearn.workflow import forcing, memory, products
from agglearn.workflow.checks import FOR_READERS
from agglearn.workflow.plan import Plan
from agglearn.workflow.scales import FROM_RECORD

LOOKS = 10  # at what other sources have done, before a file that goes away is a failure
FILES = project_files()  # pages and findings. Relative paths of the configuration start in the current folder.


def run(job: Any) -> str | None:
    """Run the stage that bears the rule's name, with its output in the job's log, and return None or an error's line."""
    code = [Path(folder).resolve() for folder in job.config["code"]]
    for folder in code:
        modules.add_root(folder)
    if "digests" in job.config:
        digests.adopt(job.config["digests"])
    kernel_cache.choose(code)
    terminal, start = sys.stderr, time.perf_counter()
    with open(job.log[0], "w") as log:
        try:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log), _messages_to(log):
                STAGES[job.rule](job, terminal)
            log.write(_cost(time.perf_counter() - start) + "\n")
            return None
        except Exception as error:
            line = _error_line(job, error, log)
    return f"agglearn: {line}"


@contextlib.contextmanager
def _messages_to(log: TextIO) -> Iterator[None]:
    """Write the messages of the package's loggers to the log of a job."""
    logger, handler = logging.getLogger("agglearn"), logging.StreamHandler(log)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _error_line(job: Any, error: Exception, log: TextIO, names: Iterable[str] = ()) -> str:
    """The line of an error for the terminal, which the log has too. Of an error that is not ours, the log has the traceback."""
    rule: tuple[str, ...] = ()
    if not isinstance(error, AgglearnError):
        traceback.print_exception(error, file=log)
        rule = (job.rule,)
    line = f"error: {' '.join([*rule, *job.wildcards, *names])}: {describe(error)} (log: {job.log[0]})"
    print(line, file=log)
    return line


def _cost(elapsed: float) -> str:
    """Time and memory of this process and its children. The peak is that of the largest one."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(u.ru_utime + u.ru_stime for u in used)
    return f"took {elapsed:.1f} s, {cpu:.1f} s of CPU, {max(u.ru_maxrss for u in used) / 1024:.0f} MiB"


def _failing(job: Any, terminal: TextIO, names: Iterable[str] = ()) -> dict:
    """What `products.build_product` does with data that cannot be had or made: a status, or the end."""

    def report(error: Exception) -> None:
        print(f"agglearn: {_error_line(job, error, sys.stderr, names)}", file=terminal)

    return {
        "on_missing": job.config["on_missing"],
        "on_failure": None if job.config["on_failure"] == "fail" else report,
        "terminal": terminal,
    }


def _plan(job: Any) -> Plan:
    """The plan of the job's experiment alone: the runs of all others are not expanded."""
    return Plan(job.config | {"run": [job.wildcards.experiment]})


def fetch(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Files of one data set: found, downloaded, checked."""
    from agglearn.datasets.fetching import fetch
    from agglearn.reporting.inventory import stated_bytes

    name = job.wildcards.dataset
    entry = job.config["datasets"][name]
    products.build_product(
        job.output[0],
        lambda out: fetch(name, entry, job.config, Path.cwd(), out, terminal),
        recipe=job.params.recipe,
        facts={"bytes": stated_bytes(entry), "local": list(job.params.local)},
        **_failing(job, terminal),
    )


def prepare(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Records of one data set: parsed, features and labels apart."""
    from agglearn.registry import resolve

    entry = job.config["datasets"][job.wildcards.dataset]
    source = Path(job.input[0])

    def parse(out: Path) -> dict:
        files = storage.read_json(source / "files.json")
        for f in files.values():
            if not Path(f["path"]).is_file():
                raise NotAvailable(f"{f['path']} is no longer there")
        dataset = resolve(entry["class"]).from_entry(entry)
        fields = dataset.parse({name: Path(f["path"]) for name, f in files.items()}, out)
        return (fields or {}) | {"memory": memory.unpacked(out)}

    products.build_product(job.output[0], parse, [source], recipe=job.params.recipe, **_failing(job, terminal))


def observe(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Observations and truths of one experiment: a product per data set, and their manifests in a file that stays."""
    plan, name = _plan(job), job.wildcards.experiment
    records, manifests = {Path(folder).name: folder for folder in job.input}, {}
    with storage.atomic_dir(job.output.folder) as out:
        for dataset, recipe in job.params.recipes.items():
            upstream = [records[dataset]] if dataset in records else []
            entry = job.config["datasets"][dataset]
            build = functools.partial(_observe, plan, name, dataset, entry, upstream)
            failing = _failing(job, terminal, [dataset])
            manifests[dataset] = products.build_product(out / dataset, build, upstream, recipe=recipe, **failing)
    storage.write_json(job.output.manifests, manifests)
    if plan.experiments[name]["timed"]:
        _compile(plan.experiments[name]["methods"].values())


def _observe(plan: Plan, name: str, dataset: str, entry: dict, records: list[str], out: Path) -> dict:
    """Fill the product of a data set with a folder per slot, and return fields of its manifest."""
    from agglearn.workflow.observing import observe_slot

    stored = Path(records[0]) if records else None
    slots = plan.slots(name, dataset)
    data_of_slots = {slot.key: observe_slot(slot, plan.experiments[name], entry, stored, out) for slot in slots}
    return {"memory": memory.largest_slot(out), "data": data_of_slots}


def _compile(methods: Iterable[dict]) -> None:
    """Compile the kernels of timed methods while other jobs run: their fits have the machine for themselves.

    An error here is none: the fit that needs the kernel reports it.
    """
    from agglearn.registry import build
    from agglearn.workflow.plan import expand_grid

    for method in methods:
        with contextlib.suppress(Exception):
            build({"class": method["class"], "params": expand_grid(method.get("params", {}))[0]}).warm_up()


def fit(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Runs of one batch."""
    import pandas as pd

    from agglearn.workflow import record
    from agglearn.workflow.runs import fit_batch

    plan, w = _plan(job), job.wildcards
    recorded = {} if job.config["from"] == "data" else record.read(job.config["record"], w.experiment)
    if job.config["from"] == FROM_RECORD:
        return record.write_batch(plan.runs(w.experiment, w.batch), recorded, job.output[0])
    experiment, names = plan.experiments[w.experiment], plan.datasets(w.experiment, w.batch)
    fit_batch(
        plan.runs(w.experiment, w.batch),
        {n: Path(job.input.observed, n) for n in names},
        job.config["results"],
        job.output[0],
        experiment["time_limit"],
        _effective(job.config, experiment, names),
        forcing.marked_at(job.config["results"], w.experiment, w.batch),
        recorded,
    )
    forcing.unmark(job.config["results"], w.experiment, w.batch)
    if job.config["from"] == "both":
        runs = plan.runs(w.experiment, w.batch)
        recipes = {run.key: run.recipe for run in runs}
        record.add(job.config["record"], w.experiment, record.of_results(job.config["results"], runs), recipes)
    rows = pd.read_parquet(job.output[0], columns=["dataset", "method", "seed", "status", "reason"]).drop_duplicates()
    for row in rows[(rows.status == "ok") & rows.reason.notna()].itertuples():
        print(f"agglearn: {w.experiment}: {row.dataset}, {row.method}, seed {row.seed}: {row.reason}", file=terminal)
    if job.config["on_failure"] == "fail":
        failed = rows[rows.status == "failed"]
        if len(failed):
            first = failed.iloc[0]
            raise AgglearnError(f"{first.dataset}, {first.method}, seed {first.seed} failed: {first.reason}")


def _effective(config: dict, experiment: dict, names: Iterable[str]) -> dict:
    """The part of the configuration that a run of an experiment records."""
    others = "experiments", "datasets", "claims", "references", "scale_folder", "digests"
    papers = {
        name: paper for name, paper in config["references"].get("papers", {}).items() if name == experiment["source"]
    }
    return {key: value for key, value in config.items() if key not in others} | {
        "experiment": experiment,
        "datasets": {name: _described(config["datasets"][name]) for name in names},
        "references": {"papers": papers},
    }


def _described(entry: dict) -> dict:
    """The fields of a data set's entry that a run records."""
    return {key: entry[key] for key in ("class", "params", *FOR_READERS) if key in entry}


def render(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Table and figure of one experiment."""
    from agglearn.reporting.render import render
    from agglearn.workflow.scales import record_scale

    folder = job.config["scale_folder"]
    if folder == job.config["results"]:
        record_scale(folder, FROM_RECORD if job.config["from"] == FROM_RECORD else job.config["scale"])
    render(_plan(job), job.wildcards.experiment, job.input, folder)


def track(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Runs of a group of experiments with their means, tables and figures, sent to MLflow."""
    from agglearn.reporting.summary import load_rows
    from agglearn.tracking.entry import Contents, read_contents
    from agglearn.tracking.push import track

    plan, results, folder = Plan(job.config), Path(job.config["results"]), job.config["scale_folder"]

    def read(name: str) -> Contents:
        paths = [f"{folder}/measurements/{name}/{batch}.parquet" for batch in plan.batches(name)]
        keys, rows = [run.key for run in plan.runs(name)], load_rows(paths, plan, name)
        return read_contents(name, plan.experiments[name], results, keys, rows, folder)

    names, uri = plan.members(job.wildcards.group), job.config["tracking"]["uri"]
    track(uri, names, read, results, job.output[0], job.params.attempt, terminal)


def judge(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Verdicts on the claims of a group of experiments. Where they are computed at a smaller scale, the record's stand beside."""
    from agglearn.reporting.judging import judge_all, judge_record

    plan = Plan(job.config)
    names = plan.members(job.wildcards.group)
    claims = {name: c for name, c in job.config["claims"].items() if c["experiment"] in names}
    recorded = judge_record(claims, plan, job.config["record"]) if job.params.record else {}
    entries = judge_all(claims, plan, job.config["scale_folder"])
    for entry in entries:
        if entry["name"] in recorded:
            entry["recorded"] = recorded[entry["name"]]
    storage.write_json(job.output[0], entries)


def collect(job: Any, terminal: TextIO = sys.stderr) -> None:
    """Verdicts on all claims, in one file."""
    from agglearn.reporting.judging import collect

    storage.write_json(job.output[0], collect(job.config["claims"], Plan(job.config), job.input))


def page(job: Any, terminal: TextIO = sys.stderr, names: Collection[str] = ()) -> None:
    """The pages of the sources that are done so far, and of some experiments, with their verdicts."""
    for left in reversed(range(LOOKS)):
        try:
            return _pages_so_far(job, names)
        except FileNotFoundError:  # another source has begun to compute something again since it was looked at
            if not left:
                raise


def _pages_so_far(job: Any, names: Collection[str]) -> None:
    from agglearn.reporting.judging import collect
    from agglearn.workflow.measurements import is_batch_of

    plan, folder, from_record = Plan(job.config), Path(job.config["scale_folder"]), job.config["from"] == FROM_RECORD

    def has(name: str, batch: str) -> bool:
        path = folder / f"measurements/{name}/{batch}.parquet"
        return path.exists() and is_batch_of(path, plan.runs(name, batch), from_record)

    # Rendering writes its JSON file last. What is computed or rendered again meanwhile is not shown.
    rendered = {
        n
        for n in plan.experiments
        if (folder / f"tables/{n}.json").exists() and all(has(n, batch) for batch in plan.batches(n))
    }
    sources = [
        s for s in plan.sources() if rendered.issuperset(plan.untimed(s)) and (folder / f"claims/{s}.json").exists()
    ]
    shown = [n for n, e in plan.experiments.items() if n in rendered and (e["source"] in sources or n in names)]
    done = Plan(job.config | {"run": shown})
    claims = {n: c for n, c in job.config["claims"].items() if c["experiment"] in done.experiments}
    judged = [path for group in (*done.groups(), *names) if (path := folder / f"claims/{group}.json").exists()]
    unfinished = [s for s in plan.sources() if s not in sources or not rendered.issuperset(plan.named(s))]
    _pages(job, done, collect(claims, done, judged), unfinished)


def site(job: Any, terminal: TextIO = sys.stderr) -> None:
    """The pages that people read."""
    _pages(job, Plan(job.config), storage.read_json(Path(job.config["scale_folder"]) / "claims.json"))


def _pages(job: Any, plan: Plan, claims: list[dict], unfinished: Iterable[str] = ()) -> None:
    from agglearn.reporting.site import build

    folder = Path(job.config["scale_folder"])
    with storage.atomic_dir(folder / "site") as out:
        build(plan, claims, folder, out, FILES, unfinished)


def conclude(job: Any, terminal: TextIO = sys.stderr) -> None:
    """The outcome of a target, or an error where something that it stands for has failed, so that the workflow ends with 1.

    A target that is not all has its pages written here.
    """
    from agglearn.reporting import run_summary

    folders = job.config["results"], job.config["scale_folder"]
    names = Plan(job.config).named(job.wildcards.target)
    if job.wildcards.target != "all":
        page(job, terminal, names)
    if failed := run_summary.problems(*folders, names)["failed"]:
        raise AgglearnError(f"{len(failed)} cells, tables, figures or claims failed, the first: {failed[0]}")
    with storage.atomic_file(job.output[0]) as out:
        out.write_text("\n".join(run_summary.summary_lines(*folders, names)) + "\n")


STAGES = {
    stage.__name__: stage
    for stage in (fetch, prepare, observe, fit, render, track, judge, collect, page, site, conclude)
}
