"""What an experiment of the workflow is in MLflow: entries, each of which is a run there."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.dataset_source import DatasetSource
from mlflow.data.http_dataset_source import HTTPDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric
from mlflow.types.schema import ColSpec, Schema

from agglearn.storage import digest, file_digest, read_json
from agglearn.text import count_text
from agglearn_workflow.plan import cell_key
from agglearn_workflow.project import SERVER
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.numbers import fitting_unit, number, parameter_name, plain
from agglearn_workflow.tables.summary import summarise
from agglearn_workflow.tracking.receipts import KEY, SITE, overview_key

LONGEST = 250  # characters of a name that MLflow keeps
# Field → prefix of its parameters in MLflow.
PREFIXES = {"dataset_params": "dataset.", "observation_params": "observation.", "params": ""}


def varied_settings(all_facts: Iterable[dict]) -> set[tuple[str, str, str]]:
    """(method, data set, parameter) of each parameter that runs of a method on a data set have several values of."""
    values: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for facts in all_facts:
        for name, value in settings(facts).items():
            values[facts["method"], facts["dataset"], name].add(plain(value))
    return {key for key, texts in values.items() if len(texts) > 1}


def title(facts: dict, varied: set[tuple[str, str, str]], ending: str) -> str:
    """A method as tables call it, its data set, its values of what is varied. The ending stays where this is too long."""
    config, method, dataset = facts["config"], facts["method"], facts["dataset"]
    described = config.get("datasets", {}).get(dataset, {}).get("title", dataset).partition(" (")[0]
    words = [config["experiment"]["methods"][method].get("name", method), described]
    for name, value in settings(facts).items():
        if (method, dataset, name) in varied:
            key = name.rpartition(".")[2]
            words.append(f"{parameter_name(key)} = {plain(value, key)}")
    text = " · ".join([*words, ending])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(ending) - 5]}… · {ending}"


def settings(facts: dict) -> dict[str, object]:
    """Parameters of the data set, of the observation and of the method, without nesting."""
    flat: dict[str, object] = {}
    for field_name, prefix in PREFIXES.items():
        flat |= leaves(json.loads(facts[field_name]), prefix)
    return flat


def leaves(values: dict, prefix: str = "") -> dict:
    """Parameters without nesting: `{"quantizer": {"budget": 5}}` becomes `{"quantizer.budget": 5}`."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


PRINT, NOTE, PARENT = "agglearn.fingerprint", "mlflow.note.content", "mlflow.parentRunId"
KIND = "kind"  # tag: `seed`, `mean` or `overview`
MAX_NOTE, MAX_PARAM = 5000, 500  # characters
FILES = "measurements.parquet", "run.json", "traceback.txt"
RENDERED = "tables/{}.html", "figures/{}.svg", "tables/{}.csv", "tables/{}.md", "tables/{}.tex"
PLACE = re.compile(r"(?:Table|Figure|Section|Appendix|Theorem)s? [\dA-Z](?:[^:,']|, (?=\d|Figure))*")
TYPES = {"integer": "long", "number": "double", "boolean": "boolean", "text": "string"}  # ours → MLflow's
MAY_DIFFER = "mlflow.source.git.commit", "scale"  # tags of the runs of one cell


@dataclass(frozen=True)
class Entry:
    """A run as MLflow shows it: of one seed, the mean over the seeds of a cell, or the overview of an experiment."""

    title: str
    tags: dict[str, str]
    status: str
    times: tuple[int, int]
    params: dict[str, str] = field(default_factory=dict)
    metrics: Callable[[], list[Metric]] = list
    inputs: list[DatasetInput] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    model: Path | None = None
    parent: str | None = None

    @property
    def key(self) -> str:
        return self.tags[KEY]


@dataclass(frozen=True)
class Contents:
    """An experiment as MLflow shows it: configuration, facts on its latest run, and entries, parents first."""

    name: str
    experiment: dict
    latest: dict
    entries: list[Entry]


def read_contents(
    name: str, experiment: dict, results: Path, keys: list[str], rendered: Path | None = None
) -> Contents:
    """Contents of the runs that a results folder has under some keys. Table and figure lie in `rendered`, if anywhere."""
    all_facts = [read_json(results / f"runs/{key}/run.json") for key in keys]
    rows = pa.concat_tables([pq.read_table(results / f"runs/{k}/measurements.parquet") for k in keys]).to_pandas()
    varied, units = varied_settings(all_facts), tag_of_units(rows)
    cells = defaultdict(list)
    for facts in sorted(all_facts, key=lambda facts: facts["seed"]):
        cells[tuple(facts[field] for field in CELL)].append(facts)
    runs = {facts["run"]: of_run(facts, results / "runs" / facts["run"], varied, units) for facts in all_facts}
    summary = {cell: group.to_dict("records") for cell, group in summarise(rows, experiment).groupby(CELL)}
    means = [
        of_mean(summary[cell], members, [runs[facts["run"]] for facts in members], varied)
        for cell, members in cells.items()
    ]
    latest = max(all_facts, key=lambda facts: facts["ended"])
    return Contents(name, experiment, latest, [*means, *runs.values(), *overview(name, latest, rendered or results)])


def of_run(facts: dict, folder: Path, varied: set[tuple[str, str, str]], units: dict[str, str]) -> Entry:
    times, data = milliseconds(facts), facts.get("data")
    return Entry(
        title(facts, varied, f"seed {facts['seed']}"),
        tags(facts) | units | {KIND: "seed", KEY: facts["run"], PRINT: facts["fingerprint"]},
        mlflow_status(facts["status"]),
        times,
        params=parameters(facts) | {"seed": str(facts["seed"])},
        metrics=partial(_metrics, folder / FILES[0], times[1]),
        inputs=[_input(facts)] if data else [],
        types=data["types"] if data else {},
        files=tuple(folder / name for name in FILES if (folder / name).exists()),
        model=folder / "model" if (folder / "model").exists() else None,
        parent=cell_key(facts),
    )


def of_mean(rows: list[dict], facts: Sequence[dict], runs: Sequence[Entry], varied: set[tuple[str, str, str]]) -> Entry:
    """The mean of a cell, from the rows of its summary, the facts on its runs, and their entries, by seed."""
    ended = max(run.times[1] for run in runs)
    measured = [row for row in rows if row["status"] == "ok" and not isinstance(row["keys"], str)]
    numbers = {f"{row['measure']}_{bound}": row[bound] for row in measured for bound in ("mean", "low", "high")}
    numbers = {name: value for name, value in numbers.items() if not math.isnan(value)}
    numbers["n_seeds"] = float(sum(run.tags["status"] == "ok" for run in runs))
    inputs = {used.dataset.digest: used for run in runs for used in run.inputs}
    several = {name: ", ".join(dict.fromkeys(run.tags[name] for run in runs)) for name in MAY_DIFFER}
    mean = {KIND: "mean", "seeds": ", ".join(run.params["seed"] for run in runs), "status": rows[0]["status"]}
    identity = {KEY: cell_key(facts[0]), PRINT: digest([numbers, [*inputs]]), NOTE: _note(rows, facts[-1])[:MAX_NOTE]}
    return Entry(
        title(facts[-1], varied, f"mean of {count_text(len(facts), 'seed')}"),
        runs[-1].tags | several | mean | identity | _printed(rows),
        mlflow_status(rows[0]["status"]),
        (ended, ended),  # a mean takes no time of its own
        params=parameters(facts[-1]),
        metrics=lambda: [Metric(name, value, ended, 0) for name, value in numbers.items()],
        inputs=[*inputs.values()],
    )


def overview(name: str, latest: dict, rendered: Path) -> list[Entry]:
    """The entry with table and figure, the newest of the experiment. There is none where nothing is rendered."""
    files = tuple(path for pattern in RENDERED if (path := rendered / pattern.format(name)).exists())
    shared = {KIND: "overview", "scale": latest["config"]["scale"], "mlflow.source.name": name, KEY: overview_key(name)}
    all_tags, (_, ended) = shared | {PRINT: digest([file_digest(path) for path in files])}, milliseconds(latest)
    return [Entry("Table and figure", all_tags, "FINISHED", (ended + 1, ended + 1), files=files)] if files else []


def tags(facts: dict) -> dict[str, str]:
    """Tags of a run. A run that is tried again may end otherwise under the same fingerprint."""
    cell = {name: facts[name] for name in ("dataset", "observation", "method", "status")}
    change = facts["config"]["experiment"]["methods"][facts["method"]].get("change")
    cell |= {"change": change} if change else {}
    source = {"mlflow.source.name": facts["experiment"], "mlflow.source.git.commit": facts["commit"] or ""}
    return cell | source | {"scale": facts["config"]["scale"], NOTE: (facts["reason"] or "")[:MAX_NOTE]}


def experiment_tags(experiment: dict, latest: dict, links: dict[str, str]) -> dict[str, str]:
    config, position = latest["config"], PLACE.match(experiment["title"])
    paper = config.get("references", {}).get("papers", {}).get(experiment["source"], {})
    source = f"Source: [{paper['short']}]({paper['url']})" if "url" in paper else paper.get("short", "")
    anchors = [f"[{text}]({address})" for text, address in links.items()]
    kinds = "Runs named `mean of … seeds` hold means with 95 % intervals; under each are the runs of its seeds. Times are in seconds."
    title, caption = experiment["title"], experiment.get("caption", "").strip()
    note = "\n\n".join(filter(None, (title, caption, " · ".join(filter(None, [*anchors, source])), kinds)))
    printed_in = {"place": position.group()} if position else {}
    return {"source": experiment["source"], **printed_in, "scale": config["scale"], NOTE: note[:MAX_NOTE]}


def mlflow_status(status: str) -> str:
    """A run that waits for data or a package is no failure, which MLflow shows in red."""
    return {"ok": "FINISHED", "stopped": "FINISHED", "unavailable": "SCHEDULED"}.get(status, "FAILED")


def milliseconds(facts: dict) -> tuple[int, int]:
    """Begin and end of a run in milliseconds since 1970: loading, the fit and its measures, not the time of sending."""
    return int(1000 * facts["began"]), int(1000 * facts["ended"])


def parameters(facts: dict) -> dict[str, str]:
    values = {"dataset": facts["dataset"], "method": facts["method"], **settings(facts)}
    return {name: str(value)[:MAX_PARAM] for name, value in values.items()}


def _input(facts: dict) -> DatasetInput:
    data, entry = facts["data"], facts["config"]["datasets"][facts["dataset"]]
    schema = Schema([ColSpec(TYPES[kind], name) for name, kind in data["types"].items()]) if data["types"] else None
    profile = {"title": entry["title"], **{f"num_{name}": n for name, n in data["sizes"].items()}}
    if url := f"https://doi.org/{entry['doi']}" if "doi" in entry else entry.get("homepage"):
        source: DatasetSource = HTTPDatasetSource(url)
    else:
        source = CodeDatasetSource({"class": entry["class"], "params": entry.get("params", {})})
    described = MetaDataset(source, facts["dataset"], data["digest"], schema).to_dict()  # type: ignore[abstract]
    dataset = Dataset(**described, profile=json.dumps(profile))
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "train")])


def _metrics(path: Path, ended: int) -> list[Metric]:
    """Measurements without keys: curves at their steps, the number of the tables last, since MLflow shows the last."""
    has_no_keys = pc.field("keys").is_null() & pc.field("value").is_valid()  # what has keys travels in the file
    rows = pq.read_table(path, columns=["measure", "step", "value"], filters=has_no_keys, partitioning=None).to_pandas()
    last = rows.groupby("measure")["step"].transform("max").fillna(0)
    columns = rows["measure"], rows["value"], rows["step"].isna(), rows["step"].fillna(last).astype(int)
    return [Metric(name, value, ended + is_final, step) for name, value, is_final, step in zip(*columns, strict=True)]


def tag_of_units(rows: pd.DataFrame) -> dict[str, str]:
    """The tag `units`, such as `seconds: s`, of the measures that have a unit. MLflow's metrics have none."""
    pairs = rows.loc[rows["unit"].fillna("") != "", ["measure", "unit"]].drop_duplicates().sort_values("measure")
    return {"units": ", ".join(f"{pair.measure}: {pair.unit}" for pair in pairs.itertuples())} if len(pairs) else {}


def _printed(rows: list[dict]) -> dict[str, str]:
    """Outcomes of the comparisons of a cell with printed numbers, such as `agrees`, counted if they differ."""
    outcomes = Counter(row["outcome"] for row in rows if isinstance(row["outcome"], str))
    counted = ", ".join(f"{outcome} {n}" for outcome, n in outcomes.most_common())
    return {"printed": counted if len(outcomes) > 1 else next(iter(outcomes))} if outcomes else {}


def _note(rows: list[dict], facts: dict) -> str:
    """The address of the table, why there is no result, and a line per measure, as text."""
    page = f"{SERVER}{SITE}/{facts['config']['experiment']['source']}.html#{facts['experiment']}"
    reasons = dict.fromkeys(row["reason"] for row in rows if isinstance(row["reason"], str))
    measured = [row for row in rows if isinstance(row["measure"], str)]
    lines = [_line(row) for row in measured if isinstance(row["outcome"], str) or not isinstance(row["keys"], str)]
    return "\n\n".join([f"Its table, while make ui runs: {page}", *reasons, *lines])


def _line(row: dict) -> str:
    unit, size = fitting_unit(row["unit"], [row["mean"]])
    numbers = (row[bound] / size for bound in ("mean", "low", "high"))
    keys = f" ({plain(row['keys'])})" if isinstance(row["keys"], str) else ""
    is_measured = row["status"] == "ok" and not math.isnan(row["mean"])
    value = f"{number(*numbers)} {unit}".strip() if is_measured else row["status"]
    printed = (
        f"; printed {row['reported']:g} ({row['place']}): {row['outcome']}" if isinstance(row["outcome"], str) else ""
    )
    return f"{row['measure']}{keys}: {value}, {count_text(row['n'], 'seed')}{printed}"
