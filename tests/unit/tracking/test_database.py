"""MLflow's database is there whole or not at all, and writes at once; a server is asked once."""

import io
import multiprocessing
import os
import signal
import socket
import sys
import time

import pytest
import sqlalchemy
from samples import write_empty_store

from agglearn import storage
from agglearn_workflow.tracking import push

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")


def make_database(folder) -> None:
    """Bring an empty store into a folder."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    push.create_database(folder / "mlflow.db")


def forked(folder) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=make_database, args=(folder,))
    process.start()
    return process


def size(folder) -> int:
    """Bytes of the database that is being made, under whatever name; −1 where there is none."""
    sizes = []
    for path in folder.rglob("*mlflow.db*"):
        try:
            sizes += [path.stat().st_size] if path.is_file() else []
        except FileNotFoundError:
            continue
    return max(sizes, default=-1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 600_000])
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


def test_sqlite_does_not_wait_for_the_disk(tmp_path):
    write_empty_store(tmp_path / "mlflow.db")
    with sqlalchemy.create_engine(f"sqlite:///{tmp_path}/mlflow.db").connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 0


def test_a_server_that_does_not_answer_is_asked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(push, "PATIENCE", 1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        server.setblocking(False)
        uri, receipt, terminal = f"http://127.0.0.1:{server.getsockname()[1]}", tmp_path / "receipt.json", io.StringIO()
        push.track(uri, ["first", "second"], lambda name: pytest.fail("it was asked"), receipt, 0, terminal)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()
    states = storage.read_json(receipt)["experiments"]
    assert {state["reason"] for state in states.values()} == {f"{uri} does not answer"}
    assert set(states) == {"first", "second"}
    assert terminal.getvalue().count("does not answer; the next run sends it") == 2
