"""Runs sent by MLflow's client, one request after the other, to any store. A run is complete when it bears its fingerprint."""

from collections import defaultdict
from typing import TYPE_CHECKING

from agglearn.tracking import models
from agglearn.tracking.entry import KEY, PARENT, PRINT, Entry

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

MAX_METRICS = 800  # of one request, whose limit of 1,000 holds for all that it brings


def stored_runs(client: "MlflowClient", experiment_id: str) -> "dict[str | None, list[Run]]":
    """Runs of an experiment by our key. Those of others have the key None."""
    runs: dict[str | None, list[Run]] = defaultdict(list)
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=1000, page_token=token)
        for run in page:
            runs[run.data.tags.get(KEY)].append(run)
        token = page.token
        if not token:
            return runs


def delete_run(client: "MlflowClient", experiment_id: str, run: "Run") -> None:
    """Delete a run and its models. MLflow keeps both, hidden, until its garbage is collected."""
    for model in client.search_logged_models([experiment_id], filter_string=f"source_run_id = '{run.info.run_id}'"):
        client.delete_logged_model(model.model_id)  # deleting a run leaves its models
    client.delete_run(run.info.run_id)


def send_entry(client: "MlflowClient", experiment_id: str, entry: Entry, parent: str | None) -> str:
    """Send an entry and return its number in MLflow. It is complete when it bears its fingerprint and has ended.

    Parameters
    ----------
    parent : str or None
        Number of its parent.
    """
    from mlflow.entities import Param, RunTag
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    tags = entry.tags | {KEY: entry.key} | ({PARENT: parent} if parent else {})
    run = client.create_run(experiment_id, start_time=entry.began, run_name=entry.title, tags=tags)
    number = run.info.run_id
    files = get_artifact_repository(run.info.artifact_uri)
    for path in entry.files:
        files.log_artifact(str(path))
    if entry.inputs:
        client.log_inputs(number, [data.entity() for data in entry.inputs])
    metrics = entry.metrics()
    if entry.model:
        metrics = models.bind(metrics, entry, number, models.log_model(client, experiment_id, number, entry))
    for start in range(MAX_METRICS, len(metrics), MAX_METRICS):
        client.log_batch(number, metrics=metrics[start : start + MAX_METRICS])
    params = [Param(name, value) for name, value in entry.params.items()]
    client.log_batch(number, metrics[:MAX_METRICS], params, [RunTag(PRINT, entry.fingerprint)])
    client.set_terminated(number, entry.status, entry.ended)
    return number
