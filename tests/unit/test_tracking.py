"""MLflow's database is there whole or not at all; what users delete there, and servers that are away."""

import ast
import contextlib
import io
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path

import mlflow
import pandas as pd
import pytest

from agglearn import storage
from agglearn.reporting import run_summary
from agglearn.tracking import local, push, receipts
from agglearn.tracking.entry import Entry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

EXPERIMENT = {"title": "Table 4", "source": "maxent"}
RECORD = {"fingerprint": "f", "experiment": "trial", "dataset": "d", "observation": "tables", "method": "m", "seed": 3, "status": "ok",
          "reason": None, "commit": "c", "dataset_params": "{}", "observation_params": "{}", "params": "{}", "began": 1700000000.5,
          "ended": 1700000002.75,
          "config": {"scale": "smoke", "experiment": {"methods": {"m": {"name": "Maximum entropy"}}}}}  # fmt: skip


def send(folder) -> None:
    """Bring an experiment without runs into the store of a folder."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    push.send(f"sqlite:///{folder}/mlflow.db", "maxent_table4", EXPERIMENT, [], folder)


def forked(folder) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=send, args=(folder,))
    process.start()
    return process


def size(folder) -> int:
    """Bytes of the database that is being made, under whatever name; −1 where there is none."""
    sizes = []
    for path in folder.glob("*mlflow.db*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return max(sizes, default=-1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 200_000, 600_000])
def test_a_kill_while_it_is_made_costs_nothing(tmp_path, moment):
    """`moment`: the database has that many bytes."""
    killed = forked(tmp_path)
    while size(tmp_path) < moment:
        assert killed.is_alive()
        time.sleep(0.0002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    following = forked(tmp_path)
    following.join(240)
    assert following.exitcode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]


def test_a_database_that_is_there_stays(tmp_path):
    (tmp_path / "mlflow.db").write_text("mine")
    push.create_database(tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_text() == "mine"
    assert os.listdir(tmp_path) == ["mlflow.db"]


# -- stores that fail -------------------------------------------------------------------------------------------------


def track(uri, folder, name="trial", attempt=0) -> tuple[dict, str]:
    """(receipt, line for the user) of an experiment with a run, in `folder`."""
    run = folder / "runs/0123456789abcdef"
    if not run.exists():
        storage.write_json(run / "run.json", RECORD)
        pd.DataFrame({"measure": ["nllh"], "item": [None], "step": [float("nan")], "value": [0.4]}).to_parquet(
            run / "measurements.parquet"
        )
    receipt, terminal = folder / f"tracking/{name}.json", io.StringIO()
    push.track(uri, name, EXPERIMENT, [run.name], folder, receipt, attempt, terminal)
    return storage.read_json(receipt), terminal.getvalue()


@pytest.mark.slow
def test_an_experiment_that_somebody_deleted_is_restored(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    said, line = track(uri, tmp_path)
    assert said["status"] == "ok", line
    receipt = tmp_path / "tracking/trial.json"
    client = mlflow.MlflowClient(uri)

    def planned() -> int:
        receipts._active.cache_clear()
        return receipts.attempts(receipt, uri)

    assert planned() == 0  # nothing is left to be sent
    client.delete_experiment(said["experiment_id"])
    assert planned() == 1
    said, line = track(uri, tmp_path, attempt=1)
    assert line == "agglearn: MLflow's experiment trial was deleted; it is restored\n"
    assert (said["status"], planned()) == ("ok", 1)
    assert client.get_experiment(said["experiment_id"]).lifecycle_stage == "active"
    [run] = client.search_runs([said["experiment_id"]])
    assert run.data.metrics == {"nllh": 0.4}


@pytest.mark.slow
def test_the_store_has_each_run_once_as_it_is_today(tmp_path):
    """Edits, other ends under the same fingerprint, curves longer than a request, an interrupted sending."""
    folder = tmp_path / "runs/0123456789abcdef"
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")

    def sent(steps=(), final=0.5, **changed):
        """(the only run that the store shows, what was sent, what was kept)"""
        storage.write_json(folder / "run.json", RECORD | changed)
        steps = [*steps, float("nan")]
        rows = {"measure": ["nllh"] * len(steps), "item": [None] * len(steps), "step": steps}
        pd.DataFrame(rows | {"value": [*range(len(steps) - 1), final]}).to_parquet(folder / "measurements.parquet")
        said, line = track(f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
        assert said["status"] == "ok", line
        [run] = client.search_runs([said["experiment_id"]])
        return run, said["sent"], said["kept"]

    first, *counts = sent()
    assert counts == [1, 0]
    assert (first.data.metrics, first.info.status, first.data.tags["status"]) == ({"nllh": 0.5}, "FINISHED", "ok")
    assert (first.info.start_time, first.info.end_time) == (
        1700000000500,
        1700000002750,
    )  # of the run, not of its sending
    assert first.info.run_name == "Maximum entropy · d · seed 3"
    tags = {"mlflow.source.name": "trial", "mlflow.source.git.commit": "c", "observation": "tables", "scale": "smoke"}
    assert tags.items() <= first.data.tags.items()
    assert client.get_experiment(first.info.experiment_id).tags["source"] == "maxent"
    again, *counts = sent()
    assert (again.info.run_id, *counts) == (first.info.run_id, 0, 1)
    later, *counts = sent(began=1700000001.5)  # tried again, with the same end
    assert (later.info.start_time, *counts) == (1700000001500, 1, 0)
    edited, *counts = sent(final=0.75, fingerprint="g")
    assert (edited.data.metrics, *counts) == ({"nllh": 0.75}, 1, 0)
    assert client.get_run(later.info.run_id).info.lifecycle_stage == "deleted"
    for status, shown in (("failed", "FAILED"), ("stopped", "FINISHED"), ("unavailable", "FAILED"), ("ok", "FINISHED")):
        run, *counts = sent(fingerprint="g", status=status, reason=None if status == "ok" else f"it {status}")
        assert (run.info.status, run.data.tags["status"], *counts) == (shown, status, 1, 0)
        assert run.data.tags["mlflow.note.content"] == ("" if status == "ok" else f"it {status}")
    client.update_run(run.info.run_id, status="RUNNING")  # as a sender that was killed leaves it
    assert sent(fingerprint="g")[0].info.status == "FINISHED"
    steps = range(10, 910)
    curve, *_ = sent(steps, final=0.25, fingerprint="h")
    history = client.get_metric_history(curve.info.run_id, "nllh")
    assert sorted((m.step, m.value) for m in history) == sorted([(909, 0.25), *((s, s - 10.0) for s in steps)])
    assert curve.data.metrics == {"nllh": 0.25}  # the number of the tables, and not the end of the curve


def write_runs(folder) -> list[str]:
    """Keys of three runs: with a curve, equal and infinite values; failed; without a measure."""
    frames = (
        {"item": [None] * 6, "step": [1, 2, 2, None, None, None], "value": [0.5, 0.25, 0.25, 0.75, float("inf"), None]},
        {"item": ["0", None], "step": [None, None], "value": [1.0, -1.0]},
        {"item": [], "step": [], "value": []},
    )
    names = (["nllh"] * 4 + ["loss", "time"], ["nllh", "rmse"], [])
    ends = ({}, {"status": "failed", "reason": "it broke"}, {"params": '{"lambda": 0.1, "norm": null}'})
    for number, (frame, measure, end) in enumerate(zip(frames, names, ends, strict=True)):
        run = folder / f"runs/{number}"
        storage.write_json(run / "run.json", RECORD | {"seed": number} | end)
        pd.DataFrame({"measure": measure} | frame).to_parquet(run / "measurements.parquet")
        if end.get("status") == "failed":
            (run / "traceback.txt").write_text("it broke")
    return ["0", "1", "2"]


def rows(database) -> dict[str, list]:
    """All rows of the tables of runs, with our key in place of MLflow's random one."""
    with contextlib.closing(sqlite3.connect(database)) as store:
        keys = dict(store.execute("SELECT run_uuid, value FROM tags WHERE key = 'agglearn.run'"))
        found = {
            t: store.execute(f"SELECT * FROM {t}").fetchall()
            for t in ("runs", "tags", "params", "metrics", "latest_metrics")
        }
    plain = {}
    for table, content in found.items():
        text = repr(sorted(content, key=repr))
        for number, key in keys.items():
            text = text.replace(number, key)
        plain[table] = sorted(ast.literal_eval(text), key=repr)
    return plain


@pytest.mark.slow
def test_rows_written_at_once_are_those_of_the_client(tmp_path):
    keys = write_runs(tmp_path)
    by_client, at_once = tmp_path / "client.db", tmp_path / "rows.db"
    push.create_database(by_client)
    shutil.copy(by_client, at_once)
    client = mlflow.MlflowClient(f"sqlite:///{by_client}")
    home = client.create_experiment("trial", artifact_location=(tmp_path / "mlartifacts/trial").as_uri())
    for key in keys:
        record = storage.read_json(tmp_path / "runs" / key / "run.json")
        push.send_one(client, home, Entry.of(key, record, tmp_path / "runs" / key))
    assert push.send(f"sqlite:///{at_once}", "trial", EXPERIMENT, keys, tmp_path)["sent"] == 3
    assert len(rows(at_once)["metrics"]) == 5  # equal ones once, none without a value
    assert rows(at_once) == rows(by_client)
    [first] = mlflow.MlflowClient(f"sqlite:///{at_once}").search_runs([home], "tags.`agglearn.run` = '1'")
    files = mlflow.artifacts.list_artifacts(first.info.artifact_uri)
    assert sorted(Path(f.path).name for f in files) == ["measurements.parquet", "run.json", "traceback.txt"]


@pytest.mark.slow
def test_a_kill_while_runs_are_written_leaves_none_half_written(tmp_path):
    keys, uri = write_runs(tmp_path), f"sqlite:///{tmp_path}/mlflow.db"

    def send_until_killed():
        copy = local._copy_files
        copied = []

        def copy_or_die(*args):
            copied.append(args)
            if len(copied) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            copy(*args)

        local._copy_files = copy_or_die
        push.send(uri, "trial", EXPERIMENT, keys, tmp_path)

    killed = multiprocessing.get_context("fork").Process(target=send_until_killed)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert rows(tmp_path / "mlflow.db")["runs"] == []
    assert [push.send(uri, "trial", EXPERIMENT, keys, tmp_path)["sent"] for _ in range(2)] == [3, 0]
    assert [run[1][-1] for run in rows(tmp_path / "mlflow.db")["runs"]] == keys


def test_after_repeated_failure_a_line_states_what_to_delete(tmp_path):
    (tmp_path / "mlflow.db").write_text("no database\n" * 100)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    lines = [track(uri, tmp_path, attempt=n)[1] for n in range(4)]
    assert ["the next run sends it" in line for line in lines] == [True, True, False, False]
    assert f"delete {tmp_path}/mlflow.db" in lines[2]
    assert any(f"delete {tmp_path}/mlflow.db" in line for line in run_summary.lines(tmp_path, tmp_path))


def test_a_server_that_does_not_answer_is_asked_once_in_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        server.setblocking(False)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"

        def asked() -> int:
            count = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.accept()[0].close()
                    count += 1
            return count

        assert "first is not tracked: MlflowException" in track(uri, tmp_path, "first")[1]
        assert asked() > 0
        said, line = track(uri, tmp_path, "second")
        assert said["status"] == "pending"
        assert "did not answer earlier in this run" in line
        assert asked() == 0
        receipts.away_mark(tmp_path).unlink()  # as the next run does
        track(uri, tmp_path, "second")
        assert asked() > 0
