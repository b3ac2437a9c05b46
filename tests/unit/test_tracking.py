"""MLflow's database is there whole or not at all."""

import multiprocessing
import os
import signal
import sys
import time

import pytest

from agglearn.tracking import push

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

EXPERIMENT = {"title": "Table 4"}


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
