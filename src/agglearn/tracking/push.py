"""Send runs to MLflow: one writer, by key; a run is complete when it bears its fingerprint.

What MLflow already has under the same fingerprint stays; nothing is deleted but what is replaced. When the
server is away the receipt says `pending`, no other experiment of this invocation asks the server, and the next invocation
tries again.
"""

import os
import sys
from pathlib import Path

from agglearn import storage
from agglearn.errors import NotAvailable, described
from agglearn.tracking.entry import KEY, PRINT, Entry, milliseconds, tags
from agglearn.tracking.local import insert_runs
from agglearn.tracking.receipts import SQLITE, away_mark, read_receipt

REPEATED = 3  # failures in a row after which a line states what to delete
MOST_METRICS = 800  # of one request, whose limit of 1,000 holds for all that it brings
TOGETHER = 100  # runs that one transaction writes into a local store


def track(uri, name, experiment, keys, results, receipt, attempt, terminal) -> None:
    """Send the runs of an experiment; write the receipt whatever happens."""
    limit_waits()
    away = away_mark(results)
    try:
        if away.exists():
            raise NotAvailable(f"{uri} did not answer earlier in this run")
        said = {"status": "ok", **send(uri, name, experiment, keys, results, terminal), "attempts": attempt}
    except Exception as error:  # a tracking server that is away must not cost a result
        if is_away(error):
            away.touch()
        reason = described(error)[:200]
        failures = read_receipt(receipt).get("failures", 0) + 1
        todo = advice(uri, name) if failures >= REPEATED and not away.exists() else "the next run sends it"
        said = {"status": "pending", "reason": reason, "attempts": attempt + 1, "failures": failures, "todo": todo}
        print(f"agglearn: {name} is not tracked: {reason}; {todo}", file=terminal)
    storage.write_json(receipt, said)


def limit_waits() -> None:
    """Let MLflow give up soon on a server that does not answer, and send nothing but results, to this store only."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def is_away(error: Exception) -> bool:
    """Whether a server did not answer, as MLflow puts it; an error that the server answers with belongs to one request."""
    text = str(error)
    return ("failed with timeout exception" in text or "failed with exception" in text) and "ResponseError" not in text


def advice(uri: str, name: str) -> str:
    """What to do where sending fails again and again."""
    if uri.startswith(SQLITE):
        path = uri.removeprefix(SQLITE)
        return f"it failed {REPEATED} times: delete {path} (or move it away), and the next run fills a new one"
    return f"it failed {REPEATED} times: delete the experiment {name} in MLflow for good (`mlflow gc`), or set `tracking: {{uri: none}}`"


def send(uri, name, experiment, keys, results: Path, terminal=sys.stderr) -> dict:
    """Send what the store lacks and return counts. An experiment that somebody has deleted is restored, and a line states it.

    A local store gets runs without models many at a time, by rows. All others go through MLflow's client.
    """
    import mlflow

    if uri.startswith(SQLITE):
        create_database(Path(uri.removeprefix(SQLITE)))
    mlflow.set_tracking_uri(uri)
    client = mlflow.MlflowClient()
    home = _home(client, uri, name, experiment, terminal)
    stored = _known(client, home.experiment_id)
    records = {key: storage.read_json(results / "runs" / key / "run.json") for key in keys}
    lacking = [key for key, record in records.items() if not _is_sent(stored.get(key, []), key, record)]
    for start in range(0, len(lacking), TOGETHER):
        part = lacking[start : start + TOGETHER]
        for run in (run for key in part for run in stored.get(key, [])):
            delete_run(client, home.experiment_id, run)
        entries = [Entry.of(key, records[key], results / "runs" / key) for key in part]
        together = [entry for entry in entries if uri.startswith(SQLITE) and not entry.model]
        if together:
            insert_runs(uri, home, together)
        for entry in entries:
            if entry not in together:
                send_one(client, home.experiment_id, entry)
    return {"sent": len(lacking), "kept": len(records) - len(lacking), "experiment_id": home.experiment_id}


def _home(client, uri, name, experiment, terminal):
    """MLflow's experiment of that name, created or restored where need be. Files of a local store stand beside its database."""
    home = client.get_experiment_by_name(name)
    if home is None:
        beside = Path(uri.removeprefix(SQLITE)).resolve().parent if uri.startswith(SQLITE) else None
        artifacts = (beside / "mlartifacts" / name).as_uri() if beside else None
        tags = {
            "mlflow.note.content": f"{experiment['title']}. {experiment.get('caption', '')}",
            "source": experiment["source"],
        }
        return client.get_experiment(client.create_experiment(name, artifact_location=artifacts, tags=tags))
    if home.lifecycle_stage == "deleted":
        client.restore_experiment(home.experiment_id)
        print(f"agglearn: MLflow's experiment {name} was deleted; it is restored", file=terminal)
    return home


def _is_sent(old: list, key: str, record: dict) -> bool:
    """Whether the store has a run once, complete and as it is today."""
    expected = tags(key, record) | {PRINT: record["fingerprint"]}
    if len(old) != 1:
        return False
    [run] = old
    ended = run.info.status != "RUNNING"
    return ended and run.info.start_time == milliseconds(record)[0] and expected.items() <= run.data.tags.items()


def create_database(path: Path) -> None:
    """Make MLflow's SQLite database under another name and rename it, where there is none yet.

    MLflow fills it by dozens of migrations; a process that is killed among them leaves a file that no MLflow can open.
    """
    import mlflow

    if path.exists():
        return
    work = path.with_name(f".{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"{work.name}*"):  # of a killed process, with its journal
        left.unlink()
    mlflow.MlflowClient(f"{SQLITE}{work}").search_experiments()
    os.replace(work, path)


def _known(client, eid) -> dict[str, list]:
    """Runs of the store by our key."""
    known, token = {}, None
    while True:
        page = client.search_runs([eid], max_results=1000, page_token=token)
        for run in page:
            known.setdefault(run.data.tags.get(KEY), []).append(run)
        token = page.token
        if not token:
            return known


def delete_run(client, eid, run) -> None:
    """Delete a run and its models; MLflow keeps both, hidden, until its garbage is collected."""
    for model in client.search_logged_models([eid], filter_string=f"source_run_id = '{run.info.run_id}'"):
        client.delete_logged_model(model.model_id)  # deleting a run leaves its models
    client.delete_run(run.info.run_id)


def send_one(client, eid, entry: Entry) -> None:
    """Send a run by MLflow's client. The run is complete when it bears its fingerprint and has ended."""
    from mlflow.entities import Param, RunTag
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    run = client.create_run(eid, start_time=entry.began, run_name=entry.title, tags=entry.tags)
    rid = run.info.run_id
    files = get_artifact_repository(run.info.artifact_uri)
    for path in entry.files:
        files.log_artifact(str(path))
    if entry.model:
        _log_model(rid, entry.model)
    for start in range(MOST_METRICS, len(entry.metrics), MOST_METRICS):
        client.log_batch(rid, metrics=entry.metrics[start : start + MOST_METRICS])
    params = [Param(name, value) for name, value in entry.params.items()]
    client.log_batch(rid, entry.metrics[:MOST_METRICS], params, [RunTag(PRINT, entry.fingerprint)])
    client.set_terminated(rid, entry.status, entry.ended)


def _log_model(rid: str, folder: Path) -> None:
    import mlflow
    import mlflow.pyfunc

    with mlflow.start_run(run_id=rid):
        mlflow.pyfunc.log_model(
            name="model",
            loader_module="agglearn.tracking.loader",
            data_path=str(folder),
            pip_requirements=["numpy", "pandas", "scikit-learn", "numba"],
        )
