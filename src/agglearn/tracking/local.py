"""Runs written into MLflow's SQLite store, many in one transaction.

MLflow's client opens six sessions per run, and SQLite waits for the disk after each. The rows are the ones that the client
would write. Runs appear finished, all of one transaction or none.
"""

import uuid

from agglearn.tracking.entry import PRINT, Entry


def insert_runs(uri: str, experiment, entries: list[Entry]) -> None:
    """Insert finished runs without models into the SQLite store at `uri`. Their files are copied first.

    Parameters
    ----------
    experiment : mlflow.entities.Experiment
        The experiment of the store that the runs belong to.
    """
    from mlflow.store.tracking.dbmodels import models
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import insert

    store = SqlAlchemyStore(uri, experiment.artifact_location)
    rows: dict[type, list[dict]] = {}
    for entry in entries:
        run = _run(experiment, entry)
        _copy_files(run["artifact_uri"], entry)
        own = {"run_uuid": run["run_uuid"]}
        metrics = _metric_rows(store, entry)
        tags = entry.tags | {"mlflow.runName": entry.title, PRINT: entry.fingerprint}
        rows.setdefault(models.SqlRun, []).append(run)
        for model, columns in (
            (models.SqlTag, [{"key": name, "value": value} for name, value in tags.items()]),
            (models.SqlParam, [{"key": name, "value": value} for name, value in entry.params.items()]),
            (models.SqlMetric, metrics),
            (models.SqlLatestMetric, _latest(metrics)),
        ):
            rows.setdefault(model, []).extend(own | row for row in columns)
    with store.ManagedSessionMaker(read_only=False) as session:
        for model, content in rows.items():
            if content:
                session.execute(insert(model), content)


def _run(experiment, entry: Entry) -> dict:
    """The row of a run in MLflow's table `runs`, as its store fills it."""
    from mlflow.utils.uri import append_to_uri_path

    number = uuid.uuid4().hex
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


def _metric_rows(store, entry: Entry) -> list[dict]:
    """Rows of `metrics`, equal ones once. The store has finite numbers for infinite ones."""
    unique = dict.fromkeys((m.key, m.value, m.timestamp, m.step) for m in entry.metrics)
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
