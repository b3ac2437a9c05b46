"""`agglearn track`: runs of a results folder reach a store, each once, whatever happens on the way."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import mlflow
import pytest
from cli_calls import run, write_runs

from agglearn.tracking import push, ui


@pytest.fixture
def copied(tmp_path):
    """A results folder with two experiments, as if copied from another machine."""
    write_runs(tmp_path / "copied", "first", 3)
    write_runs(tmp_path / "copied", "second", 2)
    return tmp_path / "copied"


def seeds(uri: str) -> dict[str, list[str]]:
    """Experiment → seeds of its finished runs, one for each run of the store that is of a seed."""
    client, finished = mlflow.MlflowClient(uri), "attributes.status = 'FINISHED' AND tags.kind = 'seed'"
    return {
        e.name: sorted(r.data.params["seed"] for r in client.search_runs([e.experiment_id], finished))
        for e in client.search_experiments()
        if e.name != "Default"
    }


ALL = {"first": ["0", "1", "2"], "second": ["0", "1"]}


@pytest.mark.slow
def test_each_run_is_sent_once(copied, tmp_path, capsys):
    uri = f"sqlite:///{tmp_path}/store/mlflow.db"
    for expected in ("first: 3 sent, 0 there already\nsecond: 2 sent, 0 there already\n",
                     "first: 0 sent, 3 there already\nsecond: 0 sent, 2 there already\n"):  # fmt: skip
        assert run("track", "--from", str(copied), "--to", uri) == 0
        assert capsys.readouterr().out == expected
        assert seeds(uri) == ALL
    assert [p.name for p in copied.iterdir()] == ["runs"]  # files stand beside the database
    home = mlflow.MlflowClient(uri).get_experiment_by_name("first")
    assert home.tags["source"] == "maxent"
    assert home.artifact_location == (tmp_path / "store/mlartifacts/first").as_uri()


def test_what_cannot_be_sent_is_one_line(tmp_path, capsys):
    assert run("track", "--from", str(tmp_path), "--to", "sqlite:///x.db") == 1
    assert "no runs here; give a results folder" in capsys.readouterr().err
    assert run("track", "--from", str(tmp_path), "--to", "x.db") == 2
    assert "--to: 'x.db' is not allowed; give sqlite:///FILE" in capsys.readouterr().err


class Server:
    """MLflow's server on this machine, with its own store."""

    def __init__(self, folder):
        self.folder, self.store = folder, f"sqlite:///{folder}/server.db"
        push.create_database(folder / "server.db")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        address = ["--backend-store-uri", self.store, "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *address],
            cwd=self.folder,  # where the server keeps files of runs
            env=os.environ | ui.SETTINGS,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=5)
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the server does not answer")

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
def test_a_server_that_goes_down_half_way_has_each_run_once_in_the_end(copied, tmp_path, capsys, monkeypatch):
    server, sent = Server(tmp_path), []
    log_batch = mlflow.MlflowClient.log_batch

    def goes_down(client, *arguments, **more):
        sent.append(arguments)
        if len(sent) == 4:  # the mean comes first; the third run is there, without its metrics and its end
            server.stop()
        return log_batch(client, *arguments, **more)

    try:
        monkeypatch.setattr(mlflow.MlflowClient, "log_batch", goes_down)
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        assert run("track", "--from", str(copied), "--to", server.uri) == 1
        assert "first was not sent whole" in capsys.readouterr().err
        assert len(seeds(server.store)["first"]) == 2
        server.start()
        assert run("track", "--from", str(copied), "--to", server.uri) == 0
        assert capsys.readouterr().out == "first: 1 sent, 2 there already\nsecond: 2 sent, 0 there already\n"
    finally:
        server.stop()
    assert seeds(server.store) == ALL
