"""What MLflow is sent of a finished run."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY, PRINT = "agglearn.run", "agglearn.fingerprint"
LONGEST = {"note": 5000, "param": 500}  # characters
FILES = "measurements.parquet", "run.json", "traceback.txt"


@dataclass(frozen=True)
class Entry:
    """A run as MLflow shows it. Times are milliseconds since 1970."""

    title: str
    tags: dict[str, str]
    fingerprint: str
    params: dict[str, str]
    metrics: list  # of `mlflow.entities.Metric`
    status: str
    began: int
    ended: int
    files: list[Path]
    model: Path | None

    @classmethod
    def of(cls, key: str, record: dict, folder: Path) -> "Entry":
        """The entry of a run from its record and its folder."""
        began, ended = milliseconds(record)
        return cls(
            title=title(record),
            tags=tags(key, record),
            fingerprint=record["fingerprint"],
            params=_params(record),
            metrics=_metrics(folder / FILES[0], ended),
            status="FINISHED" if record["status"] in ("ok", "stopped") else "FAILED",
            began=began,
            ended=ended,
            files=[folder / name for name in FILES if (folder / name).exists()],
            model=folder / "model" if (folder / "model").exists() else None,
        )


def tags(key: str, record: dict) -> dict[str, str]:
    """Tags of a run, but for its fingerprint. A run that is tried again may end otherwise under the same fingerprint."""
    own = {KEY: key, **{name: record[name] for name in ("dataset", "observation", "method", "status")}}
    shown = {"mlflow.source.name": record["experiment"], "mlflow.source.git.commit": record["commit"] or ""}
    note = (record["reason"] or "")[: LONGEST["note"]]
    change = record["config"]["experiment"]["methods"][record["method"]].get("change")
    shown |= {"change": change} if change else {}
    return own | shown | {"scale": record["config"]["scale"], "mlflow.note.content": note}


def title(record: dict) -> str:
    """Name of a run in MLflow's lists: the method as tables call it, data set, seed."""
    method = record["config"]["experiment"]["methods"][record["method"]]
    return f"{method.get('name', record['method'])} · {record['dataset']} · seed {record['seed']}"


def milliseconds(record: dict) -> tuple[int, int]:
    """Begin and end of a run in milliseconds since 1970: loading, the fit and its measures, not the time of sending."""
    return int(1000 * record["began"]), int(1000 * record["ended"])


def _params(record: dict) -> dict[str, str]:
    params = {"dataset": record["dataset"], "method": record["method"], "seed": record["seed"]}
    for part, prefix in (("dataset_params", "dataset."), ("observation_params", "observation."), ("params", "")):
        params |= {prefix + name: value for name, value in json.loads(record[part]).items()}
    return {name: str(value)[: LONGEST["param"]] for name, value in params.items()}


def _metrics(path: Path, ended: int) -> list:
    """What has no item: curves at their steps. MLflow shows the last of a measure, so the number of the tables is that."""
    from mlflow.entities import Metric

    table = pq.ParquetFile(path).read(columns=["measure", "item", "step", "value"])
    table = table.filter(pc.is_null(table["item"]))  # what has an item travels in the file
    table = table.filter(pc.is_valid(table["value"]))
    rows = list(zip(*(table[name].to_pylist() for name in ("measure", "value", "step")), strict=True))
    last: dict[str, int] = {}
    for measure, _, step in rows:
        last[measure] = max(last.get(measure, 0), int(step or 0))
    return [
        Metric(measure, value, *((ended, int(step)) if step is not None else (ended + 1, last[measure])))
        for measure, value, step in rows
    ]
