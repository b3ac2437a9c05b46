# The configuration, the plan, and the functions that rules ask for inputs, parameters and resources. They only read.
import functools
import os
import sys
from pathlib import Path

SOURCE = Path(workflow.source_path("../Snakefile")).parent / "src"
if (SOURCE / "agglearn").is_dir():  # a checkout uses its own code, other deployments the installed package
    sys.path.insert(0, str(SOURCE))
    os.environ.update(PYTHONPATH=os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]))

from agglearn.errors import ConfigError
from agglearn.local_files import local_candidates
from agglearn.storage import file_digest
from agglearn_workflow import memory
from agglearn_workflow.config.entries import essence, has_records
from agglearn_workflow.config.loading import load, parse_scalars, stack
from agglearn_workflow.config.scales import FROM_ARCHIVE, measured_folder, scale_folder
from agglearn_workflow.digests import code_digest
from agglearn_workflow.plan import Plan
from agglearn_workflow.project import TEMPLATES, project_files
from agglearn_workflow.run_summary import print_summary
from agglearn_workflow.runs import results_lock
from agglearn_workflow.tracking.receipts import attempts

try:
    overlay = stack(config, parse_scalars(dict(workflow.config_settings.config)))  # of --configfile and --config
    config.update(load(project_files(), overlay, Path.cwd(), targets=()))
    LEFT_OUT = config.pop("left_out")
    FROM_THE_ARCHIVE = config["from"] == FROM_ARCHIVE  # nothing is computed, hence nothing is tracked
    if FROM_THE_ARCHIVE:
        config["tracking"] = {"uri": "none"}
    config["scale_folder"] = scale_folder(config["results"], FROM_ARCHIVE if FROM_THE_ARCHIVE else config["scale"])
    plan = Plan(config)
except ConfigError as error:
    sys.exit(f"agglearn: {error}")

for line, _ in LEFT_OUT:
    print(f"agglearn: left out: {line}", file=sys.stderr)

R = config["results"]  # of all scales: records, finished runs
S = config["scale_folder"]  # of this scale: what is measured and rendered
# Keys of an experiment that tables show beside the measurements, and keys that runs depend on.
SHOWN = ("title", "caption", "table", "figure", "words", "reported", "agreement", "baseline", "budget")
FOR_READERS_OF_TABLES = ("name", "change", "ours", "tune")  # keys of a method that no run depends on
COMPUTED = ("task", "datasets", "observe", "seeds", "measures", "exclude", "batch_by", "keep_model", "time_limit")


wildcard_constraints:
    experiment="|".join(plan.experiments),
    dataset="|".join(name for name, entry in config["datasets"].items() if has_records(entry)),
    batch="[A-Za-z0-9_.-]+",
    target="|".join(["all", *plan.sources(), *plan.experiments]),
    group="|".join([*plan.sources(), *plan.experiments]),


def experiment_of(wildcards):
    return plan.experiments[wildcards.experiment]


# -- files ------------------------------------------------------------------------------------------------------------


def records(wildcards):
    names = plan.datasets(wildcards.experiment, wildcards.batch)
    return [f"{R}/records/{name}" for name in names if has_records(config["datasets"][name])]


def measurements(target):
    folder = f"{S}/{measured_folder(config)}"
    return [f"{folder}/{name}/{batch}.parquet" for name in plan.named(target) for batch in plan.batches(name)]


def measured(wildcards):
    return measurements(wildcards.get("experiment") or wildcards.get("group") or wildcards.target)


def tables(target):
    return [f"{S}/tables/{name}.csv" for name in plan.named(target)]


def rendered(wildcards):
    return tables(wildcards.get("group") or wildcards.target)


def receipts(target):
    """The experiments of a source are sent together, and an experiment that is asked for alone is sent alone."""
    groups = plan.sources() if target == "all" else [target]
    return [f"{S}/tracking/{group}.json" for group in groups] if config["tracking"]["uri"] != "none" else []


def sent(wildcards):
    return receipts(wildcards.target)


def pages(target):
    return f"{S}/site" if target == "all" else f"{S}/pages/{target}"


def verdicts(target):
    return f"{S}/claims.json" if target == "all" else f"{S}/claims/{target}.json"


def reported(wildcards):
    return [pages(wildcards.target), verdicts(wildcards.target)]


def outcome(target):
    return f"{S}/outcome/{target}.txt"


def everything(wildcards):
    """The outcome of all. What was left out is an error here, where it belongs to all."""
    for line in (line for line, is_of_all in LEFT_OUT if is_of_all):
        sys.exit(f"agglearn: {line}")
    return outcome("all")


# -- parameters: a job runs again when one of them changes --------------------------------------------------------------


def dataset_entry(wildcards):
    return essence(config["datasets"][wildcards.dataset])


def dataset_code(wildcards):
    return code_digest(config["datasets"][wildcards.dataset]["class"])


def local_files(wildcards):
    """Local files that could serve the data set, with size and time: one that appears or changes is read."""
    entry = config["datasets"][wildcards.dataset]
    files = [p for p in local_candidates(wildcards.dataset, entry, config, Path.cwd()) if p.is_file()]
    return [f"{p} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in files]


def fit_settings(wildcards):
    e = experiment_of(wildcards)
    methods = {name: {k: v for k, v in m.items() if k not in FOR_READERS_OF_TABLES} for name, m in e["methods"].items()}
    return {key: e[key] for key in COMPUTED if key in e} | {"methods": methods}


def fit_data(wildcards):
    """Entries of the data sets, without what readers alone need."""
    return {name: essence(config["datasets"][name]) for name in plan.datasets(wildcards.experiment, wildcards.batch)}


def fit_code(wildcards):
    return code_digest(*plan.code(wildcards.experiment, wildcards.batch))


def digests_of(files):
    return {path.name: file_digest(path) for path in sorted(files)}


def table_settings(experiment):
    e = plan.experiments[experiment]
    titles = {name: config["datasets"][name]["title"] for name in e["datasets"]}
    names = {n: [m.get("name"), m.get("ours", False)] for n, m in e["methods"].items()}
    said = {name: c for name, c in config["claims"].items() if c["experiment"] == experiment}
    shown = {key: e.get(key) for key in SHOWN} | {"methods": names, "claims": said}
    return shown | titles | digests_of(TEMPLATES.glob("table.*"))


def source_title(source):
    return config["references"].get("papers", {}).get(source, {"title": source})["title"]


def category_of(wildcards):
    return source_title(experiment_of(wildcards)["source"])


def in_report(path, kind, experiment="{experiment}", category=category_of, caption="result"):
    """The output of a rule that Snakemake's report shows."""
    labels = {"experiment": experiment, "shown as": kind}
    return report(path, caption=f"../workflow/report/{caption}.rst", category=category, labels=labels)


def sending_attempt(wildcards):
    """How often sending has failed: it changes when something is left to be sent."""
    return attempts(f"{S}/tracking/{wildcards.group}.json", config["tracking"]["uri"])


def page_settings(wildcards):
    """What stands on pages besides tables and figures, with digests of their templates and words."""
    names = plan.named(wildcards.get("target", "all"))
    fields = {n: {k: plan.experiments[n].get(k) for k in ("title", "caption", "budget", "source")} for n in names}
    for name, shown in fields.items():
        shown["tune"] = {n: m["tune"] for n, m in plan.experiments[name]["methods"].items() if "tune" in m}
    guide = Path(R, "docs/index.html").is_file()  # to which the pages then link
    words = [*(project_files() / "config/findings").glob("*.md"), project_files() / "docs/verdicts.md"]
    entries = {key: config[key] for key in ("datasets", "references")}
    return entries | {"experiments": fields, "guide": guide, "texts": digests_of([*TEMPLATES.glob("*.*"), *words])}


def claims(wildcards):
    names = plan.named(wildcards.get("target", "all"))
    return {name: claim for name, claim in config["claims"].items() if claim["experiment"] in names}


def archived_files(experiments):
    """Path → digest of each file of the archive."""
    files = sorted(path for name in experiments for path in Path(config["archive"], name).glob("*.parquet"))
    return {str(path): file_digest(path) for path in files}


def archived_beside(wildcards):
    """Files of the archive whose verdicts stand beside those of a smaller scale."""
    judged = {claim["experiment"] for claim in claims(wildcards).values()}
    return archived_files([] if FROM_THE_ARCHIVE or config["scale"] == "paper" else sorted(judged))


# -- resources ----------------------------------------------------------------------------------------------------------


def fit_threads(wildcards):
    """Fits of a timed experiment have the machine for themselves."""
    return workflow.cores if experiment_of(wildcards)["timed"] else 1


def library_threads(wildcards):
    return experiment_of(wildcards).get("threads", fit_threads(wildcards))


def precedence(wildcards):
    """Priority of a fit. Timed experiments come before all other jobs: later they would wait until all of these have ended. Then
    fits go source by source, so that the runs of one source are sent while the next is fitted. The longest fit comes first.
    """
    e = experiment_of(wildcards)
    return 10_000 * e["timed"] + len(plan.sources()) - plan.sources().index(e["source"]) + e.get("budget", 0) / 10_000


@functools.cache
def prices_of(experiment):
    """CPU seconds and bytes of each run of an experiment at scale paper, NaN where the archive has none like it."""
    from agglearn_workflow.archive.prices import price_runs  # which imports pandas

    return price_runs(Plan(config | {"run": [experiment]}), config["archive"]).set_index("run")


def cost(wildcards):
    """CPU seconds of a fit, NaN if unknown, and bytes at its peak. The archive is asked for a cluster only."""
    if config["scale"] != "paper" or workflow.local_exec:
        return experiment_of(wildcards).get("budget", 600), 0
    keys = [run.key for run in plan.runs(wildcards.experiment, wildcards.batch)]
    runs = prices_of(wildcards.experiment).loc[keys]
    return runs["cpu_seconds"].sum(skipna=False), runs["peak_memory"].fillna(0).max()


def fitting_minutes(wildcards, attempt):
    """Minutes that a cluster gives a fit: ten, and three times what it should take, or a day. Each attempt gets twice as many."""
    seconds = cost(wildcards)[0]
    return 2 ** (attempt - 1) * (10 + round(3 * seconds / 60) if seconds == seconds else 24 * 60)


def parsing_memory(wildcards):
    return memory.for_parsing(config["datasets"][wildcards.dataset])


def fitting_memory(wildcards):
    names = plan.datasets(wildcards.experiment, wildcards.batch)
    varied = {name: plan.varied(wildcards.experiment, name) for name in names}
    needs = [memory.for_fitting(config["datasets"][n], v, Path(R, "records", n)) for n, v in varied.items()]
    return max(*needs, memory.FLOOR, round(1.2 * cost(wildcards)[1] / memory.MB))
