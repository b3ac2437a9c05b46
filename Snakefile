"""From public data to the papers' tables: fetch, prepare, observe, fit, render, track, judge, collect, site, conclude."""

import sys
from pathlib import Path

from snakemake.cli import parse_args

HERE = Path(str(workflow.current_basedir))
if (HERE / "src/agglearn").is_dir():  # a checkout uses its own code, other deployments the installed package
    sys.path.insert(0, str(HERE / "src"))

from agglearn import kernel_cache, prefork
from agglearn.errors import ConfigError
from agglearn.inspection import digests
from agglearn.local_files import project_files
from agglearn.reporting import progress
from agglearn.workflow import memory, products
from agglearn.workflow.config import load, parse_scalars, read_mapping, stack
from agglearn.workflow.plan import Plan
from agglearn.workflow.scales import FROM_RECORD, scale_folder

FILES = project_files()
try:
    for path in workflow.config_settings.configfiles:
        read_mapping(Path(path))  # which refuses keys that stand twice
    # The workflow knows its targets after this file. The process of a job needs what the main process has planned.
    asked = parse_args(sys.argv[1:])[1].targets if "snakemake" in sys.argv[0] else []
    targets = (asked or ["all"]) if workflow.is_main_process else []
    overlay = stack(config, parse_scalars(dict(workflow.config_settings.config)))
    config.update(load(FILES, overlay, Path.cwd(), targets))
    LEFT_OUT = config.pop("left_out")
    RECORDED = config["from"] == FROM_RECORD  # nothing is computed, hence nothing is tracked
    if RECORDED:
        config["tracking"] = {"uri": "none"}
    config["scale_folder"] = scale_folder(config["results"], FROM_RECORD if RECORDED else config["scale"])
    plan = Plan(config)
except ConfigError as error:
    sys.exit(f"agglearn: {error}")

R = config["results"]  # of all scales: data and their logs, finished runs
S = config["scale_folder"]  # of this scale: what is observed, measured, rendered, and its logs

if workflow.is_main_process:
    for line in LEFT_OUT:
        print(f"agglearn: left out: {line}", file=sys.stderr)
    workflow.register_resource("tracking", 1)  # one writer to MLflow
    workflow.register_resource("site", 1)  # and one to the site


report: "workflow/report/workflow.rst"


include: "rules/wiring.py"
include: "rules/starting.py"
include: "rules/data.smk"
include: "rules/fit.smk"
include: "rules/report.smk"


wildcard_constraints:
    experiment="|".join(plan.experiments),
    dataset="|".join(with_records(config["datasets"])),
    batch="[A-Za-z0-9_.-]+",
    target="|".join(["all", *plan.sources(), *plan.experiments]),
    source="|".join(plan.sources()),
    group="|".join([*plan.groups(), *plan.experiments]),


localrules:
    all,
    fetch,
    track,
    collect,
    conclude,


rule all:
    default_target: True
    input:
        outcome("all"),


onstart:
    drop_default_rate()
    mark_forced()
    if "fail" in (config["on_missing"], config["on_failure"]):
        workflow.scheduler.keepgoing = False
    if workflow.local_exec:
        config["digests"] = digests.export_digests(plan.code())  # jobs then need not read the code again
        kernel_cache.choose(config["code"])  # before the server imports numba
        prefork.start(tracks=config["tracking"]["uri"] != "none")
    progress.start(workflow.logger_manager.get_log_handlers(), plan, workflow.dag.needrun_jobs())


onsuccess:
    # Targets that stand for results end in `conclude`, which fails with them; data may be a target alone.
    if any(products.has_failed(path) for job in workflow.dag.targetjobs for path in job.output):
        sys.exit(1)


for name in plan.experiments:

    rule:
        name:
            name
        input:
            outcome(name),


for name in plan.sources():

    rule:
        name:
            name
        input:
            outcome(name),
