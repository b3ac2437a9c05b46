"""Send runs to MLflow: one writer, by key. A run is complete when it bears its fingerprint.

What MLflow already has under the same fingerprint stays. Only what is replaced is deleted. When the server is away, the
experiment is `pending` in the receipt, no other experiment of this invocation asks the server, and the next invocation tries
again.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agglearn import storage
from agglearn.errors import NotAvailable, describe
from agglearn.tracking.contents import Contents
from agglearn.tracking.entry import PARENT, Entry
from agglearn.tracking.local import insert_runs
from agglearn.tracking.overview import TRAINING, page_of
from agglearn.tracking.receipts import SQLITE, away_mark, read_receipt
from agglearn.tracking.remote import delete_run, send_entry, stored_runs

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

REPEATED = 3  # failures in a row after which a line states what to delete
TOGETHER = 100  # runs that one transaction writes into a local store


def track(
    uri: str,
    names: Iterable[str],
    read: Callable[[str], Contents],
    results: Path,
    receipt: Path | str,
    attempt: int,
    terminal: TextIO,
) -> None:
    """Send experiments one after the other, and write their receipt whatever happens.

    An experiment that cannot be sent is `pending` there, and the others are sent all the same.
    """
    limit_waits()
    before = read_receipt(receipt)["experiments"]
    states = {}
    for name in names:
        failures = before.get(name, {}).get("failures", 0)
        states[name] = _try_to_send(uri, name, read, away_mark(results), failures, terminal)
    pending = any(state["status"] == "pending" for state in states.values())
    storage.write_json(receipt, {"attempts": attempt + pending, "experiments": states})


def _try_to_send(
    uri: str, name: str, read: Callable[[str], Contents], away: Path, failures: int, terminal: TextIO
) -> dict[str, object]:
    """State of an experiment in a receipt, after it was sent or could not be. It failed `failures` times before."""
    try:
        if away.exists():
            raise NotAvailable(f"{uri} did not answer earlier in this run")
        return {"status": "ok", **send(uri, read(name), terminal)}
    except Exception as error:  # a tracking server that is away must not cost a result
        if is_away(error):
            away.touch()
        reason, failures = describe(error)[:200], failures + 1
        todo = advice(uri, name) if failures >= REPEATED and not away.exists() else "the next run sends it"
        print(f"agglearn: {name} is not tracked: {reason}; {todo}", file=terminal)
        return {"status": "pending", "reason": reason, "failures": failures, "todo": todo}


def limit_waits() -> None:
    """Let MLflow give up soon on a server that does not answer, and send nothing but results, to this store only."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def is_away(error: Exception) -> bool:
    """Whether a server did not answer, as MLflow puts it. An error that the server answers with belongs to one request."""
    text = str(error)
    return ("failed with timeout exception" in text or "failed with exception" in text) and "ResponseError" not in text


def advice(uri: str, name: str) -> str:
    """What to do where sending fails again and again."""
    if uri.startswith(SQLITE):
        path = uri.removeprefix(SQLITE)
        return f"it failed {REPEATED} times: delete {path} (or move it away), and the next run fills a new one"
    return f"it failed {REPEATED} times: delete the experiment {name} in MLflow for good (`mlflow gc`), or set `tracking: {{uri: none}}`"


def send(uri: str, contents: Contents, terminal: TextIO | None = None) -> dict[str, object]:
    """Send what the store lacks and return counts of the runs of single seeds.

    An experiment that somebody has deleted is restored, and a line states it. A local store gets entries without models many at a
    time, by rows. All others go through MLflow's client.
    """
    import mlflow

    if uri.startswith(SQLITE):
        create_database(Path(uri.removeprefix(SQLITE)))
    mlflow.set_tracking_uri(uri)
    client = mlflow.MlflowClient()
    experiment = _find_experiment(client, uri, contents, terminal or sys.stderr)
    stored = stored_runs(client, experiment.experiment_id)
    whole = {entry.key: stored[entry.key][0] for entry in contents.entries if _is_sent(stored[entry.key], entry)}
    lacking = [entry for entry in contents.entries if entry.key not in whole]
    numbers: dict[str | None, str] = {key: run.info.run_id for key, run in whole.items()}
    for start in range(0, len(lacking), TOGETHER):
        chunk = lacking[start : start + TOGETHER]
        for run in (run for entry in chunk for run in stored[entry.key]):
            delete_run(client, experiment.experiment_id, run)
        if together := [entry for entry in chunk if uri.startswith(SQLITE) and not entry.model]:
            numbers |= insert_runs(uri, experiment, together, numbers)
        for entry in (entry for entry in chunk if entry.key not in numbers):
            numbers[entry.key] = send_entry(client, experiment.experiment_id, entry, numbers.get(entry.parent))
    _adjust(client, contents.entries, whole, numbers)
    _detach(client, [run for key, runs in stored.items() if key and key not in numbers for run in runs], numbers)
    _describe(client, uri, experiment, contents, numbers)
    sent, all_seeds = (sum(entry.parent is not None for entry in some) for some in (lacking, contents.entries))
    return {"sent": sent, "kept": all_seeds - sent, "experiment_id": experiment.experiment_id}


def _find_experiment(client: "MlflowClient", uri: str, contents: Contents, terminal: TextIO) -> "Experiment":
    """MLflow's experiment of that name, created or restored where need be. Files of a local store stand beside its database."""
    experiment = client.get_experiment_by_name(contents.name)
    if experiment is None:
        beside = Path(uri.removeprefix(SQLITE)).resolve().parent if uri.startswith(SQLITE) else None
        artifacts = (beside / "mlartifacts" / contents.name).as_uri() if beside else None
        number = client.create_experiment(contents.name, artifact_location=artifacts, tags=contents.tags({}))
        return client.get_experiment(number)
    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
        print(f"agglearn: MLflow's experiment {contents.name} was deleted; it is restored", file=terminal)
    return experiment


def _is_sent(old: "list[Run]", entry: Entry) -> bool:
    """Whether the store has an entry once, complete and as it is today, but for its name and its parent."""
    if len(old) != 1:
        return False
    [run] = old
    ended = run.info.status != "RUNNING"
    return ended and run.info.start_time == entry.began and entry.all_tags.items() <= run.data.tags.items()


def _adjust(
    client: "MlflowClient", entries: list[Entry], whole: "Mapping[str, Run]", numbers: Mapping[str | None, str]
) -> None:
    """Give runs that stay the names and the parents of today: other settings may be varied, and a mean may be another run."""
    for entry in (entry for entry in entries if entry.key in whole):
        run = whole[entry.key]
        if run.info.run_name != entry.title:
            client.update_run(run.info.run_id, name=entry.title)
        if entry.parent and run.data.tags.get(PARENT) != numbers[entry.parent]:
            client.set_tag(run.info.run_id, PARENT, numbers[entry.parent])


def _detach(client: "MlflowClient", others: "list[Run]", numbers: Mapping[str | None, str]) -> None:
    """Let runs that are no longer planned stand by themselves where the mean that they belonged to is another one today."""
    there = {*numbers.values(), *(run.info.run_id for run in others)}
    for run in others:
        if run.data.tags.get(PARENT, run.info.run_id) not in there:
            client.delete_tag(run.info.run_id, PARENT)


def _describe(
    client: "MlflowClient",
    uri: str,
    experiment: "Experiment",
    contents: Contents,
    numbers: Mapping[str | None, str],
) -> None:
    """Give MLflow's experiment the tags of today."""
    number, links = experiment.experiment_id, {}
    if contents.overview:
        links["Table and figure"] = f"#/experiments/{number}/runs/{numbers[contents.overview.key]}/artifacts?{TRAINING}"
    if uri.startswith(SQLITE):  # which `make ui` serves
        links["Page with the verdicts"] = page_of(contents.name, contents.experiment["source"])
    for name, value in contents.tags(links).items():
        if experiment.tags.get(name) != value:
            client.set_experiment_tag(number, name, value)


def create_database(path: Path) -> None:
    """Make MLflow's SQLite database under another name and rename it, where there is none yet.

    MLflow fills it by dozens of migrations. A process that is killed among them leaves a file that no MLflow can open.
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
