"""What happens before jobs: the lock, what is left of killed runs, and products that Snakemake has no record of.

Snakemake reads this file before it knows what it is asked for. So `start_run` is called by the first input function of a DAG: jobs
may follow then, or only a summary, which works beside another run.
"""

import atexit
import json
import os
import shutil
import sys
from functools import partial
from types import SimpleNamespace

from snakemake.io import IOFile
from snakemake.settings.types import MaxJobsPerTimespan, RerunTrigger

from agglearn import machine, storage
from agglearn.reporting.run_summary import print_summary
from agglearn.tracking.receipts import away_mark
from agglearn.workflow import forcing, lifeline, litter, memory, results_lock

DEFAULT_RATE = MaxJobsPerTimespan.parse_choice("100/1s")  # of jobs, as Snakemake has it
DELETES = not workflow.output_settings.dryrun and any(
    a.startswith("--delete-a") and "--delete-all-output".startswith(a) for a in sys.argv
)
started = []


def start_run():
    """Prepare a run, once, as its DAG is built."""
    if started or not workflow.is_main_process:
        return
    started.append(True)
    runs = workflow.executor_plugin is not None and not workflow.dryrun
    if runs or DELETES:
        results_lock.acquire(f"{R}/.lock")
        litter.sweep(R)
        away_mark(R).unlink(missing_ok=True)
    if runs:
        lifeline.announce()
        limit_memory()
        # After the last words of Snakemake, however it ends.
        atexit.register(print_summary, R, S, config["show"], workflow.logger_manager.get_logfile())
    if workflow.executor_plugin is not None and RerunTrigger.PARAMS in workflow.rerun_triggers:
        renew()


def limit_memory():
    """The machine's memory limits what runs at once, unless the command line does. A job that is expected to take more runs alone."""
    if workflow.local_exec and not {"mem", "mem_mb", "mem_mib"} & {*workflow.global_resources}:
        workflow.register_resource("mem_mb", machine.memory_bytes() // memory.MB)


def renew():
    """Let what is not today's run again where Snakemake, without a record of it, would take it for today's."""
    there = {path: holds for path, holds in products_of_plan() if os.path.exists(path)}
    unknown = [path for path in there if workflow.persistence.metadata(IOFile(path)) is None]
    old = [path for path in unknown if not there[path]()]
    workflow.dag.forcefiles.update(old)
    if any(not path.startswith(f"{S}/site/") for path in old):  # the job of one target writes pages besides its output
        print(
            f"agglearn: Snakemake has no record (.snakemake) of how {len(unknown)} products were made; {len(old)} of them are "
            "not today's, or do not tell, and are made again; runs that hold are reused",
            file=sys.stderr,
        )


def products_of_plan():
    """Every product that stays, with a function that tells whether it states today's recipe."""
    for name in sorted({d for e in plan.experiments for d in plan.datasets(e)}) if not RECORDED else ():
        if stored_records([name]):
            of = SimpleNamespace(dataset=name)
            yield f"{R}/sources/{name}", partial(fetched, f"{R}/sources/{name}/manifest.json", of)
            yield f"{R}/records/{name}", partial(states, f"{R}/records/{name}/manifest.json", parsing_recipe, of)
    for name in plan.experiments:
        if not RECORDED:
            yield (path := f"{S}/observations/{name}.json"), partial(observed, path, name)
        for batch in plan.batches(name):
            yield (path := f"{S}/measurements/{name}/{batch}.parquet"), partial(gathers, path, name, batch)
    sent = {path for target in ("all", *plan.experiments) for path in receipts(target)}
    quick = [*tables(plan.experiments), *sent, *verdicts(plan.groups()), *pages(plan.sources())]
    quick += [outcome(target) for target in ("all", *plan.sources(), *plan.experiments)]
    for path in (*quick, f"{S}/claims.json", f"{S}/site/index.html"):
        yield path, lambda: False  # states no recipe


def states(manifest, recipe, wildcards):
    """Whether a manifest has today's recipe."""
    try:
        return storage.read_json(manifest)["recipe"] == recipe(wildcards)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def observed(path, experiment):
    """Whether the manifests of an experiment's observations have today's recipes and slots."""
    try:
        manifests = storage.read_json(path)
        there = {Path(name).parts[0] for manifest in manifests.values() for name in manifest["content"]}
        slots = [
            s for d, manifest in manifests.items() if manifest["status"] == "ok" for s in plan.slots(experiment, d)
        ]
        recipes = {dataset: manifest["recipe"] for dataset, manifest in manifests.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return recipes == observing_recipes(SimpleNamespace(experiment=experiment)) and there.issuperset(
        s.key for s in slots
    )


def fetched(manifest, wildcards):
    """Whether a manifest has today's recipe, and the local files that there are today."""
    return states(manifest, entry_digest, wildcards) and storage.read_json(manifest).get("local") == local_files(
        wildcards
    )


def gathers(path, experiment, batch):
    """Whether a file of measurements holds runs of today's recipes."""
    import pyarrow.parquet as pq

    try:
        recipes = json.loads(pq.read_schema(path).metadata[b"recipes"])
        return not RECORDED and recipes == {run.key: run.recipe for run in plan.runs(experiment, batch)}
    except (OSError, ValueError, KeyError, TypeError):
        return False


def delete_runs(experiment, batch):
    """Delete the runs of a batch, which are no outputs. Snakemake deletes outputs only."""
    for run in plan.runs(experiment, batch):
        shutil.rmtree(f"{R}/runs/{run.key}", ignore_errors=True)


def mark_forced():
    """Mark the batches that the command line forces. `make retry` forces jobs for the runs in them that have failed."""
    if workflow.touch or RECORDED or os.environ.get("AGGLEARN_RETRY"):
        return
    asked = workflow.dag_settings
    files = {os.path.relpath(path) for path in asked.forcerun}
    for job in workflow.dag.needrun_jobs():
        forced = asked.forceall or job.rule.name in asked.forcerun or not files.isdisjoint(job.output)
        if job.rule.name == "fit" and (forced or (asked.forcetargets and job in workflow.dag.targetjobs)):
            forcing.mark(R, job.wildcards.experiment, job.wildcards.batch)


def drop_default_rate():
    """Let local jobs start as fast as they can, unless the command line limits their rate.

    Each pass of the limiter sets one more timer for a next one: in long runs the scheduler would take a third of a core.
    """
    rate = workflow.scheduling_settings.max_jobs_per_timespan
    if (
        workflow.local_exec
        and rate
        and (rate.max_jobs, rate.timespan) == (DEFAULT_RATE.max_jobs, DEFAULT_RATE.timespan)
    ):
        workflow.scheduler.job_rate_limiter = None
