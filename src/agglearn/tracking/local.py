"""Runs written into MLflow's SQLite store, many in one transaction.

MLflow's client opens six sessions per run, and SQLite waits for the disk after each. The rows are the ones that the client
would write. Runs appear finished, all of one transaction or none.
"""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agglearn.tracking.data import CONTEXT
from agglearn.tracking.entry import PARENT, Entry

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy.orm import Session


def insert_runs(
    uri: str, experiment: "Experiment", entries: list[Entry], numbers: Mapping[str | None, str]
) -> dict[str | None, str]:
    """Insert finished entries without models into the SQLite store at `uri`. Their files are copied first.

    Parameters
    ----------
    experiment : mlflow.entities.Experiment
        The experiment of the store that the runs belong to.
    numbers : mapping
        Numbers of runs that the store has, by key.

    Returns
    -------
    dict
        Numbers of the new runs by key.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import insert

    store = SqlAlchemyStore(uri, experiment.artifact_location)
    new: dict[str | None, str] = {entry.key: uuid.uuid4().hex for entry in entries}
    with store.ManagedSessionMaker(read_only=False) as session:
        rows = _data_rows(session, experiment, entries, new)
        for entry in entries:
            run = _run(experiment, entry, new[entry.key])
            _copy_files(run["artifact_uri"], entry)
            for model, content in _rows_of_run(store, entry, run, ({**numbers, **new}).get(entry.parent)).items():
                rows.setdefault(model, []).extend(content)
        for model, content in rows.items():
            if content:
                session.execute(insert(model), content)
    return new


def _rows_of_run(store: "SqlAlchemyStore", entry: Entry, run: dict, parent: str | None) -> dict[type, list[dict]]:
    """Rows of an entry by MLflow's table."""
    from mlflow.store.tracking.dbmodels import models

    metrics = _metric_rows(store, entry)
    tags = entry.all_tags | {"mlflow.runName": entry.title} | ({PARENT: parent} if parent else {})
    columns = {
        models.SqlTag: [{"key": name, "value": value} for name, value in tags.items()],
        models.SqlParam: [{"key": name, "value": value} for name, value in entry.params.items()],
        models.SqlMetric: metrics,
        models.SqlLatestMetric: _latest(metrics),
    }
    own = {"run_uuid": run["run_uuid"]}
    return {models.SqlRun: [run]} | {model: [own | row for row in content] for model, content in columns.items()}


def _data_rows(
    session: "Session", experiment: "Experiment", entries: list[Entry], new: Mapping[str | None, str]
) -> dict[type, list[dict]]:
    """Rows of the data sets that the experiment lacks, and of the use of data sets by entries."""
    from mlflow.store.tracking.dbmodels.models import SqlDataset, SqlInput, SqlInputTag

    number = int(experiment.experiment_id)
    rows: dict[type, list[dict]] = {SqlDataset: [], SqlInput: [], SqlInputTag: []}
    stored = session.query(SqlDataset).filter(SqlDataset.experiment_id == number)
    numbers = {(str(dataset.name), str(dataset.digest)): str(dataset.dataset_uuid) for dataset in stored}
    for entry in entries:
        for data in entry.inputs:
            key = data.name, data.digest
            if key not in numbers:
                numbers[key] = uuid.uuid4().hex
                rows[SqlDataset].append(data.row() | {"dataset_uuid": numbers[key], "experiment_id": number})
            use = {
                "source_type": "DATASET",
                "source_id": numbers[key],
                "destination_type": "RUN",
                "destination_id": new[entry.key],
            }
            rows[SqlInput].append(use | {"input_uuid": uuid.uuid4().hex})
            tags = [{"input_uuid": rows[SqlInput][-1]["input_uuid"], "name": k, "value": v} for k, v in CONTEXT.items()]
            rows[SqlInputTag] += tags
    return rows


def _run(experiment: "Experiment", entry: Entry, number: str) -> dict:
    """The row of a run in MLflow's table `runs`, as its store fills it."""
    from mlflow.utils.uri import append_to_uri_path

    return {
        "run_uuid": number,
        "name": entry.title,
        "experiment_id": int(experiment.experiment_id),
        "artifact_uri": append_to_uri_path(experiment.artifact_location, number, "artifacts"),
        "user_id": "unknown",
        "status": entry.status,
        "start_time": entry.began,
        "end_time": entry.ended,
        "lifecycle_stage": "active",
        "source_type": "UNKNOWN",
        **dict.fromkeys(("source_name", "source_version", "entry_point_name"), ""),
    }


def _copy_files(artifacts: str, entry: Entry) -> None:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    files = get_artifact_repository(artifacts)
    for path in entry.files:
        files.log_artifact(str(path))


def _metric_rows(store: "SqlAlchemyStore", entry: Entry) -> list[dict]:
    """Rows of `metrics`, equal ones once. The store has finite numbers for infinite ones."""
    unique = dict.fromkeys((m.key, m.value, m.timestamp, m.step) for m in entry.metrics())
    return [
        {"key": key, "value": store.sanitize_metric_value(value)[1], "timestamp": time, "step": step, "is_nan": False}
        for key, value, time, step in unique
    ]


def _latest(metrics: list[dict]) -> list[dict]:
    """Rows of `latest_metrics`: of each key the one with the last step, then time, then the largest value."""
    latest: dict[str, dict] = {}
    for row in metrics:
        old = latest.setdefault(row["key"], row)
        if (row["step"], row["timestamp"], row["value"]) > (old["step"], old["timestamp"], old["value"]):
            latest[row["key"]] = row
    return list(latest.values())
