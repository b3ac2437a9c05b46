"""Input and parameter functions of the rules. They ask the plan, and compute nothing."""

import json

from agglearn.inspection.classes import is_subclass
from agglearn.inspection.digests import code_digest
from agglearn.local_files import PACKAGE, local_candidates
from agglearn.storage import digest, file_digest
from agglearn.tracking.receipts import attempts
from agglearn.workflow import memory
from agglearn.workflow.checks import SIMULATED
from agglearn.workflow.config import essence


def measurements(names):
    return [f"{S}/measurements/{e}/{b}.parquet" for e in names for b in plan.batches(e)]


def tables(names):
    return [f"{S}/tables/{e}.csv" for e in names]


def groups_of(target):
    """All groups that a target has whole, or the one experiment that it is."""
    names = set(plan.named(target))
    return [group for group, members in plan.groups().items() if names.issuperset(members)] or [target]


def receipts(target):
    tracked = config["tracking"]["uri"] != "none"
    return [f"{S}/tracking/{group}.json" for group in groups_of(target)] if tracked else []


def verdicts(groups):
    return [f"{S}/claims/{group}.json" for group in groups]


def pages(sources):
    return [f"{S}/site/{s}.html" for s in sources]


def source_results(wildcards):
    """What the page of a source waits for: not for timed fits, which come when no other job is left."""
    return tables(plan.untimed(wildcards.source))


def outcome(target):
    return f"{S}/outcome/{target}.txt"


def belonging(wildcards):
    """Everything that a target stands for. The outcome is written after it, and the page of a target that is not all."""
    target = wildcards.target
    names = plan.named(target)
    judged = [f"{S}/claims.json", f"{S}/site/index.html"] if target == "all" else verdicts(groups_of(target))
    return measurements(names) + tables(names) + receipts(target) + judged


def urgency(wildcards):
    """Priority of a job. Sources come in their order. Of one source, its data and its quick experiments come first.

    Of one experiment, the batch with most runs comes first, so that no long job is left at the end. Data of no experiment come last.
    """
    named = dict(wildcards.items())
    if "group" in named:
        named["source"] = plan.experiments[plan.members(named.pop("group"))[0]]["source"]
    runs = len(plan.runs(wildcards.experiment, wildcards.batch)) if "batch" in named else 0
    users = [
        (plan.sources().index(e["source"]), e.get("budget", 0) if "experiment" in named else -1)
        for n, e in plan.experiments.items()
        if named.get("source", e["source"]) == e["source"]
        and named.get("experiment", n) == n
        and named.get("dataset", next(iter(e["datasets"]))) in e["datasets"]
    ]
    rank, budget = min(users, default=(len(plan.sources()), 0))
    return 1000 * (len(plan.sources()) - rank) + max(0, 998 - budget) + min(runs, 999) / 1000


def entry_digest(wildcards):
    return digest(essence(config["datasets"][wildcards.dataset]))


def local_files(wildcards):
    """Local files that could serve the data set, with size and time: one that appears or changes is fetched."""
    entry = config["datasets"][wildcards.dataset]
    files = [p for p in local_candidates(wildcards.dataset, entry, config, Path.cwd()) if p.is_file()]
    return [f"{p} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in files]


def nothing(wildcards):
    """No input: only the beginning of a run."""
    start_run()
    return []


def parsing_recipe(wildcards):
    return digest([entry_digest(wildcards), code_digest(config["datasets"][wildcards.dataset]["class"])])


def with_records(names):
    """Data sets that have records. A simulated one has none, as it is drawn where it is observed."""
    return [d for d in names if not is_subclass(config["datasets"][d]["class"], SIMULATED)]


def stored_records(names):
    return [f"{R}/records/{d}" for d in with_records(names)]


def observed_records(wildcards):
    start_run()
    return stored_records(plan.datasets(wildcards.experiment))


def observed_slots(wildcards):
    return digest([s.key for d in plan.datasets(wildcards.experiment) for s in plan.slots(wildcards.experiment, d)])


def observing_recipes(wildcards):
    """Data set → how each of its slots is observed, however many there are."""
    e = plan.experiments[wildcards.experiment]
    types = [o["type"] for o in e["observe"].values()]
    recipes = {}
    for name in plan.datasets(wildcards.experiment):
        code = code_digest(e["task"], config["datasets"][name]["class"], *types)
        recipes[name] = digest([e["observe"], digest(essence(config["datasets"][name])), code])
    return recipes


def observations(wildcards):
    if RECORDED:
        start_run()
        return []
    if DELETES:
        start_run()
        delete_runs(wildcards.experiment, wildcards.batch)
    return f"{S}/observations/{wildcards.experiment}"


def recipes(wildcards):
    runs = plan.runs(wildcards.experiment, wildcards.batch)
    return digest([[r.recipe for r in runs], plan.experiments[wildcards.experiment]["time_limit"]])


def recorded_files(wildcards):
    """Digests of the files that measurements are read from. None where they are computed."""
    folder = Path(config["record"]) / wildcards.experiment
    return digest([file_digest(path) for path in sorted(folder.glob("*.parquet"))]) if RECORDED else None


def fit_threads(wildcards):
    """Fits of a timed experiment have the machine for themselves."""
    return workflow.cores if plan.experiments[wildcards.experiment]["timed"] and not RECORDED else 1


def library_threads(wildcards):
    """Threads of the numerical libraries in a job."""
    return plan.experiments[wildcards.experiment].get("threads", fit_threads(wildcards))


def parsing_memory(wildcards, input):
    return memory.for_parsing(config["datasets"][wildcards.dataset], Path(input[0]))


def observing_memory(wildcards, input):
    """Data sets are observed one after the other: that of the largest one."""
    folders = {Path(folder).name: Path(folder) for folder in input}
    needs = []
    for name in plan.datasets(wildcards.experiment):
        texts = {s.dataset_params for s in plan.slots(wildcards.experiment, name)}
        entry = config["datasets"][name]
        needs.append(memory.for_observing(entry, [json.loads(text) for text in texts], folders.get(name)))
    return max(needs)


def fitting_memory(wildcards, input):
    if RECORDED:
        return memory.FLOOR
    return memory.for_fitting(Path(input.manifests), plan.datasets(wildcards.experiment, wildcards.batch))


def batches(wildcards):
    return measurements([wildcards.experiment])


def shown(wildcards):
    """What the table shows besides the measurements."""
    e = plan.experiments[wildcards.experiment]
    fields = {
        k: e.get(k) for k in ("title", "caption", "table", "figure", "reported", "agreement", "baseline", "budget")
    }
    titles = {d: config["datasets"][d]["title"] for d in e["datasets"]}
    return digest([fields, {n: m.get("name") for n, m in e["methods"].items()}, titles])


def source_title(wildcards):
    """Title of an experiment's source: its category in Snakemake's report."""
    source = plan.experiments[wildcards.experiment]["source"]
    return config["references"].get("papers", {}).get(source, {"title": source})["title"]


def shown_as(kind):
    """Labels of an experiment's table or figure in Snakemake's report."""
    return lambda wildcards: {"experiment": plan.experiments[wildcards.experiment]["title"], "shown as": kind}


def tracked_measurements(wildcards):
    return measurements(plan.members(wildcards.group))


def tracked_tables(wildcards):
    """The last file that is written with each table and figure."""
    return [f"{S}/tables/{e}.json" for e in plan.members(wildcards.group)]


def sending_attempt(wildcards):
    return attempts(f"{S}/tracking/{wildcards.group}.json", config["tracking"]["uri"])


def claims_of(group):
    """Claims that are judged together."""
    names = plan.members(group)
    return {name: c for name, c in config["claims"].items() if c["experiment"] in names}


def claimed(wildcards):
    return measurements(sorted({c["experiment"] for c in claims_of(wildcards.group).values()}))


def claims_digest(wildcards):
    return digest(claims_of(wildcards.group))


def record_digest(wildcards):
    """What the record has of the claimed experiments. Empty where it has nothing, and where results are no smaller than its own."""
    if RECORDED or config["scale"] == "paper":
        return ""
    names = {c["experiment"] for c in claims_of(wildcards.group).values()}
    files = sorted(path for name in names for path in Path(config["record"], name).glob("*.parquet"))
    return digest([file_digest(path) for path in files]) if files else ""


def everything_shown(wildcards):
    fields = [[n, e.get("title"), e.get("caption"), e.get("budget"), e["source"]] for n, e in plan.experiments.items()]
    guide = (Path(R) / "docs/index.html").is_file()  # which the site then links to
    return digest([fields, config["datasets"], config["references"], guide, config["from"]])


def table_digest(wildcards):
    return digest([file_digest(path) for path in sorted((PACKAGE / "reporting/templates").glob("table.*"))])


def template_digest(wildcards):
    templates, findings = PACKAGE / "reporting/templates", FILES / "config/findings"
    shown = [*sorted(templates.iterdir()), *sorted(findings.glob("*.md")), FILES / "docs/verdicts.md"]
    return digest([file_digest(path) for path in shown])
