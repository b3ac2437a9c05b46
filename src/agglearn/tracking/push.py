"""Send runs to MLflow: one writer, by key; a run is complete when it bears its fingerprint.

What MLflow already has under the same fingerprint stays; nothing is deleted but what is replaced. When the
server is away the receipt says `pending`, no other experiment of this invocation asks the server, and the next invocation
tries again.
"""

import json
import os
import sys
from pathlib import Path

import pandas as pd

from agglearn import products
from agglearn.errors import NotAvailable, described
from agglearn.tracking.receipts import SQLITE, away_mark, read_receipt

KEY, PRINT = "agglearn.run", "agglearn.fingerprint"
REPEATED = 3  # failures in a row after which a line states what to delete
LONGEST = 5000  # characters of a tag
MOST_METRICS = 800  # of one request, whose limit of 1,000 holds for all that it brings


def track(uri, name, experiment, keys, results, receipt, attempt, terminal) -> None:
    """Send the runs of an experiment; write the receipt whatever happens."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing but results leaves, and only to this store
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
    products.write_json(receipt, said)


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
    """Send what the store lacks; returns counts. An experiment that somebody has deleted is restored, which a line states."""
    import mlflow

    if uri.startswith(SQLITE):
        create_database(Path(uri.removeprefix(SQLITE)))
    mlflow.set_tracking_uri(uri)
    client = mlflow.MlflowClient()
    home = client.get_experiment_by_name(name)
    if home is None:
        artifacts = (results / "mlartifacts" / name).resolve().as_uri() if uri.startswith("sqlite:") else None
        tags = {
            "mlflow.note.content": f"{experiment['title']}. {experiment.get('caption', '')}",
            "source": experiment["source"],
        }
        eid = client.create_experiment(name, artifact_location=artifacts, tags=tags)
    else:
        eid = home.experiment_id
        if home.lifecycle_stage == "deleted":
            client.restore_experiment(eid)
            print(f"agglearn: MLflow's experiment {name} was deleted; it is restored", file=terminal)
    known = _known(client, eid)
    counts = {"sent": 0, "kept": 0}
    for key in keys:
        folder = results / "runs" / key
        record = products.read_json(folder / "run.json")
        old = known.get(key, [])
        wanted = (_tags(key, record) | {PRINT: record["fingerprint"]}).items()
        whole = [r for r in old if wanted <= r.data.tags.items() and r.info.status != "RUNNING"]
        complete = [r for r in whole if r.info.start_time == _milliseconds(record)[0]]
        if len(old) == 1 and complete:
            counts["kept"] += 1
            continue
        for run in old:
            delete_run(client, eid, run)
        _send_one(client, eid, key, record, folder)
        counts["sent"] += 1
    return counts | {"experiment_id": eid}


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


def _tags(key: str, record: dict) -> dict[str, str]:
    """Tags of a run, but for its fingerprint. A run that is tried again may end otherwise under the same fingerprint."""
    tags = {KEY: key, **{name: record[name] for name in ("dataset", "observation", "method", "status")}}
    shown = {"mlflow.source.name": record["experiment"], "mlflow.source.git.commit": record["commit"] or ""}
    return (
        tags | shown | {"scale": record["config"]["scale"], "mlflow.note.content": (record["reason"] or "")[:LONGEST]}
    )


def _title(record: dict) -> str:
    """Name of a run in MLflow's lists: the method as tables call it, data set, seed."""
    method = record["config"]["experiment"]["methods"][record["method"]]
    return f"{method.get('name', record['method'])} · {record['dataset']} · seed {record['seed']}"


def _milliseconds(record: dict) -> tuple[int, int]:
    """Begin and end of a run in milliseconds since 1970: loading, the fit and its measures, not the time of sending."""
    return int(1000 * record["began"]), int(1000 * record["ended"])


def _metrics(rows: pd.DataFrame, now: int) -> list:
    """What has no item: curves at their steps. MLflow shows the last of a measure, so the number of the tables is that."""
    from mlflow.entities import Metric

    rows = rows[rows["value"].notna() & rows["item"].isna()]  # what has an item travels in the file
    last = rows.groupby("measure")["step"].max().fillna(0)
    return [
        Metric(r.measure, r.value, *((now, int(r.step)) if r.step == r.step else (now + 1, int(last[r.measure]))))
        for r in rows.itertuples()
    ]


def _send_one(client, eid, key: str, record: dict, folder: Path) -> None:
    from mlflow.entities import Param, RunTag
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    began, ended = _milliseconds(record)
    run = client.create_run(eid, start_time=began, run_name=_title(record), tags=_tags(key, record))
    rid = run.info.run_id
    metrics = _metrics(pd.read_parquet(folder / "measurements.parquet"), ended)
    params = {"dataset": record["dataset"], "method": record["method"], "seed": record["seed"]}
    for part in ("dataset_params", "observation_params", "params"):
        prefix = {"params": ""}.get(part, part.removesuffix("_params") + ".")
        params |= {prefix + k: v for k, v in json.loads(record[part]).items()}
    files = get_artifact_repository(run.info.artifact_uri)
    for name in ("measurements.parquet", "run.json", "traceback.txt"):
        if (folder / name).exists():
            files.log_artifact(str(folder / name))
    if (folder / "model").exists():
        _log_model(rid, folder / "model")
    for start in range(MOST_METRICS, len(metrics), MOST_METRICS):
        client.log_batch(rid, metrics=metrics[start : start + MOST_METRICS])
    said = [Param(k, str(v)[:500]) for k, v in params.items()]
    client.log_batch(rid, metrics[:MOST_METRICS], said, [RunTag(PRINT, record["fingerprint"])])
    status = "FINISHED" if record["status"] in ("ok", "stopped") else "FAILED"
    client.set_terminated(rid, status, ended)  # only then is it complete


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
