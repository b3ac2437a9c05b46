"""Send runs to MLflow by its client: one writer, each run once by its key. Half, changed and double ones are replaced.
When the server is away, experiments are `pending` in the receipt, and the next invocation tries again."""

import contextlib
import secrets
import shutil
import sqlite3
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import mlflow
from mlflow.entities import Experiment, Param, Run
from sqlalchemy import Engine, event

from agglearn import storage
from agglearn.errors import NotAvailable, describe
from agglearn_workflow.archive.store import lock
from agglearn_workflow.tracking.entry import KIND, PARENT, Contents, Entry, experiment_tags
from agglearn_workflow.tracking.receipts import KEY, SITE, SQLITE, mark_of, overview_key

PATIENCE = 5  # seconds for a server to answer that has just failed
MAX_METRICS = 800  # of one request, whose limit of 1,000 holds for all that it brings


def track(
    uri: str, names: Iterable[str], read: Callable[[str], Contents], receipt: Path | str, attempt: int, terminal: TextIO
) -> None:
    """Send experiments and write their receipt. One that cannot be sent is `pending` there and stops no other one."""
    is_away, states = not answers(uri), {}
    for name in names:
        try:
            if is_away:
                raise NotAvailable(f"{uri} does not answer")
            states[name] = {"status": "ok", **send(uri, read(name), terminal)}
        except Exception as error:  # a tracking server that is away must not cost a result
            is_away = is_away or not answers(uri)
            reason, todo = describe(error)[:200], "the next run sends it"
            if uri.startswith(SQLITE):
                todo += f"; if that fails again, delete {uri.removeprefix(SQLITE)}, and a new one is filled"
            print(f"agglearn: {name} is not tracked: {reason}; {todo}", file=terminal)
            states[name] = {"status": "pending", "reason": reason, "todo": todo}
    pending = any(state["status"] == "pending" for state in states.values())
    storage.write_json(receipt, {"attempts": attempt + pending, "store": mark_of(uri), "experiments": states})


def answers(uri: str) -> bool:
    """Whether a store is there: a file, or a server that answers, if only with an error."""
    try:
        return uri.startswith(SQLITE) or bool(urllib.request.urlopen(uri, timeout=PATIENCE))
    except Exception as error:
        return isinstance(error, urllib.error.HTTPError)


@contextlib.contextmanager
def _open(uri: str) -> Iterator[mlflow.MlflowClient]:
    """MLflow's client of a store. A SQLite file is made where there is none, and this process alone writes into it."""
    with contextlib.ExitStack() as stack:
        if uri.startswith(SQLITE):
            path = Path(uri.removeprefix(SQLITE))
            stack.enter_context(lock(path.with_name(f".{path.name}.lock")))
            create_database(path)
            if mark_of(uri) is None:  # MLflow would try for minutes
                raise NotAvailable(f"{path} is no SQLite database")
        mlflow.set_tracking_uri(uri)
        yield mlflow.MlflowClient()


def send(uri: str, contents: Contents, terminal: TextIO | None = None) -> dict[str, Any]:
    """Send what the store lacks and return counts of the runs of single seeds, the experiment's number and those of `means` by key
    of the cell. A deleted experiment is restored."""
    with _open(uri) as client:
        experiment = _find_experiment(client, uri, contents.name, terminal or sys.stderr)
        numbers, n_sent = _send_entries(client, experiment.experiment_id, contents.entries)
        links = _links(uri, contents, experiment.experiment_id, numbers.get(overview_key(contents.name)))
        for name, value in experiment_tags(contents.experiment, contents.latest, links).items():
            if experiment.tags.get(name) != value:
                client.set_experiment_tag(experiment.experiment_id, name, value)
    n_seeds = sum(entry.parent is not None for entry in contents.entries)
    means = {entry.key: numbers[entry.key] for entry in contents.entries if entry.tags[KIND] == "mean"}
    counts = {"sent": n_sent, "kept": n_seeds - n_sent}
    return {**counts, "experiment_id": experiment.experiment_id, "means": means}


def _send_entries(
    client: mlflow.MlflowClient, experiment_id: str, entries: list[Entry]
) -> tuple[dict[str | None, str], int]:
    """Send the entries that an experiment lacks, and return (key → number in MLflow, how many of single seeds were sent)."""
    stored = defaultdict(list)
    for run in mlflow.search_runs([experiment_id], output_format="list"):
        stored[run.data.tags.get(KEY)].append(run)
    numbers: dict[str | None, str] = {}
    sent = 0
    for entry in entries:
        old, parent = stored.pop(entry.key, []), numbers.get(entry.parent)
        if _is_sent(old, entry):
            numbers[entry.key] = old[0].info.run_id
            # other settings may be varied today, and a mean may be another run
            if old[0].info.run_name != entry.title:
                client.update_run(old[0].info.run_id, name=entry.title)
            if parent and old[0].data.tags.get(PARENT) != parent:
                client.set_tag(old[0].info.run_id, PARENT, parent)
        else:
            for run in old:
                delete_run(client, run)
            numbers[entry.key] = _send_entry(client, experiment_id, entry, parent)
            sent += parent is not None
    unplanned = [run for key, runs in stored.items() if key for run in runs]
    parents = {*numbers.values(), *(run.info.run_id for run in unplanned)}
    for run in unplanned:  # one whose mean is another run today stands by itself
        if PARENT in run.data.tags and run.data.tags[PARENT] not in parents:
            client.delete_tag(run.info.run_id, PARENT)
    return numbers, sent


def _links(uri: str, contents: Contents, experiment_id: str, table: str | None) -> dict[str, str]:
    """Text → address in the description of an experiment. `table`: number of the run with table and figure."""
    links = {"Table and figure": f"#/experiments/{experiment_id}/runs/{table}"} if table else {}
    if uri.startswith(SQLITE):  # which `make ui` serves
        links["Page with the verdicts"] = f"{SITE}/{contents.experiment['source']}.html#{contents.name}"
    return links


def _find_experiment(client: mlflow.MlflowClient, uri: str, name: str, terminal: TextIO) -> Experiment:
    """MLflow's experiment, created or restored where need be. Files of a local store stand beside its database."""
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        beside = Path(uri.removeprefix(SQLITE)).resolve().parent if uri.startswith(SQLITE) else None
        artifacts = (beside / "mlartifacts" / name).as_uri() if beside else None
        return client.get_experiment(client.create_experiment(name, artifacts))
    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
        print(f"agglearn: MLflow's experiment {name} was deleted; it is restored", file=terminal)
    return experiment


def _is_sent(old: list[Run], entry: Entry) -> bool:
    """Whether the store has an entry once, complete and as it is today, but for its name and its parent."""
    if len(old) != 1:
        return False
    info = old[0].info
    ended = (info.status, info.start_time, info.end_time) == (entry.status, *entry.times)
    return ended and entry.tags.items() <= old[0].data.tags.items()


def delete_run(client: mlflow.MlflowClient, run: Run) -> None:
    """Delete a run and its models. MLflow keeps both, hidden, until its garbage is collected."""
    filter_ = f"source_run_id = '{run.info.run_id}'"
    for model in client.search_logged_models([run.info.experiment_id], filter_):
        client.delete_logged_model(model.model_id)  # deleting a run leaves its models
    client.delete_run(run.info.run_id)


def _send_entry(client: mlflow.MlflowClient, experiment_id: str, entry: Entry, parent: str | None) -> str:
    """Send an entry and return its number in MLflow. Status and end come last, and make it complete."""
    tags = entry.tags | ({PARENT: parent} if parent else {})
    number = client.create_run(experiment_id, entry.times[0], tags, entry.title).info.run_id
    for path in entry.files:
        client.log_artifact(number, str(path))
    if entry.inputs:
        client.log_inputs(number, entry.inputs)
    metrics = entry.metrics()
    if entry.model:
        from agglearn_workflow.tracking import models  # which loads scikit-learn

        metrics = models.bind(metrics, entry, number, models.log_model(entry, number))
    params = [Param(name, value) for name, value in entry.params.items()]
    for start in range(0, max(len(metrics), 1), MAX_METRICS):
        client.log_batch(number, metrics[start : start + MAX_METRICS], params if start == 0 else ())
    client.set_terminated(number, entry.status, entry.times[1])
    return number


@event.listens_for(Engine, "connect")
def _do_not_wait(connection: object, _: object) -> None:
    """Let SQLite not wait for the disk after each of a run's transactions: what a power failure costs is sent again."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def create_database(path: Path) -> None:
    """Make MLflow's database under another name, then rename it: nobody can open what a killed migration leaves."""
    if path.exists():
        return
    for folder in path.parent.glob(f".{path.name}.*/"):  # of killed processes
        shutil.rmtree(folder)
    with storage.atomic_file(path) as work:
        mlflow.MlflowClient(f"{SQLITE}{work}").search_experiments()
        with contextlib.closing(sqlite3.connect(work)) as store:
            store.execute(f"PRAGMA user_version = {1 + secrets.randbelow(2**31 - 1)}")
