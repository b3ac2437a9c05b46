"""What MLflow is sent: entries, of which a single run is one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from agglearn.tracking.data import DataInput
from agglearn.tracking.names import Names, leaves

KEY, PRINT = "agglearn.run", "agglearn.fingerprint"
NOTE, PARENT = "mlflow.note.content", "mlflow.parentRunId"
KIND = "kind"  # tag: `seed`, `mean` or `overview`
LONGEST = {"note": 5000, "param": 500}  # characters
FILES = "measurements.parquet", "run.json", "traceback.txt"


@dataclass(frozen=True)
class Entry:
    """A run as MLflow shows it: of one seed, the mean over the seeds of a cell, or the overview of an experiment.

    Attributes
    ----------
    key : str
        It stays the same through edits.
    fingerprint : str
        Digest of the content that is not among the tags.
    metrics : callable
        It reads the metrics, as `mlflow.entities.Metric`.
    began, ended : int
        Milliseconds since 1970.
    parent : str or None
        Key of the entry that this one belongs to.
    """

    key: str
    title: str
    tags: dict[str, str]
    fingerprint: str
    status: str
    began: int
    ended: int
    params: dict[str, str] = field(default_factory=dict)
    metrics: Callable[[], list] = list
    inputs: tuple[DataInput, ...] = ()
    files: tuple[Path, ...] = ()
    model: Path | None = None
    parent: str | None = None

    @property
    def all_tags(self) -> dict[str, str]:
        """Tags of a run that was sent whole, but for that of its parent."""
        return self.tags | {KEY: self.key, PRINT: self.fingerprint}


def of_run(record: dict, folder: Path, names: Names, parent: str, units: dict[str, str]) -> Entry:
    """The entry of a single run from its record and its folder, and the tag with the units of its metrics."""
    began, ended = milliseconds(record)
    return Entry(
        key=record["run"],
        title=names.of_run(record),
        tags=tags(record) | units | {KIND: "seed"},
        fingerprint=record["fingerprint"],
        status=shown_status(record["status"]),
        began=began,
        ended=ended,
        params=parameters(record) | {"seed": str(record["seed"])},
        metrics=lambda: _metrics(folder / FILES[0], ended),
        inputs=DataInput.of(record),
        files=tuple(folder / name for name in FILES if (folder / name).exists()),
        model=folder / "model" if (folder / "model").exists() else None,
        parent=parent,
    )


def tags(record: dict) -> dict[str, str]:
    """Tags of a run. A run that is tried again may end otherwise under the same fingerprint."""
    own = {name: record[name] for name in ("dataset", "observation", "method", "status")}
    change = record["config"]["experiment"]["methods"][record["method"]].get("change")
    own |= {"change": change} if change else {}
    shown = {"mlflow.source.name": record["experiment"], "mlflow.source.git.commit": record["commit"] or ""}
    return own | shown | {"scale": record["config"]["scale"], NOTE: shorten_note(record["reason"] or "")}


def shorten_note(text: str) -> str:
    """A description, no longer than MLflow takes."""
    return text[: LONGEST["note"]]


def shown_status(status: str) -> str:
    """MLflow's word for the status of a run."""
    return "FINISHED" if status in ("ok", "stopped") else "FAILED"


def milliseconds(record: dict) -> tuple[int, int]:
    """Begin and end of a run in milliseconds since 1970: loading, the fit and its measures, not the time of sending."""
    return int(1000 * record["began"]), int(1000 * record["ended"])


def parameters(record: dict) -> dict[str, str]:
    """Parameters of a cell. What is nested has a dotted name."""
    values = {"dataset": record["dataset"], "method": record["method"]}
    for field_name, prefix in (("dataset_params", "dataset."), ("observation_params", "observation."), ("params", "")):
        values |= {prefix + name: value for name, value in leaves(json.loads(record[field_name])).items()}
    return {name: str(value)[: LONGEST["param"]] for name, value in values.items()}


def _metrics(path: Path, ended: int) -> list:
    """Measurements without keys: curves at their steps. MLflow shows the last of a measure, so the number of the tables is that."""
    from mlflow.entities import Metric

    table = pq.ParquetFile(path).read(columns=["measure", "keys", "step", "value"])
    table = table.filter(pc.is_null(table["keys"]))  # what has keys travels in the file
    table = table.filter(pc.is_valid(table["value"]))
    rows = list(zip(*(table[name].to_pylist() for name in ("measure", "value", "step")), strict=True))
    last: dict[str, int] = {}
    for measure, _, step in rows:
        last[measure] = max(last.get(measure, 0), int(step or 0))
    return [
        Metric(measure, value, *((ended, int(step)) if step is not None else (ended + 1, last[measure])))
        for measure, value, step in rows
    ]
