"""`agglearn track`: runs of a results folder reach a store, each once, whatever happens on the way."""

import contextlib
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request

import mlflow
import pytest
from cli_calls import call, write_runs
from hosts import free_port
from samples import write_empty_store

from agglearn_workflow.tracking import ui


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
        assert call(f"track --from {copied} --to {uri}") == 0
        assert capsys.readouterr().out == expected
        assert seeds(uri) == ALL
    assert [p.name for p in copied.iterdir()] == ["runs"]  # files stand beside the database
    home = mlflow.MlflowClient(uri).get_experiment_by_name("first")
    assert home.tags["source"] == "maxent"
    assert home.artifact_location == (tmp_path / "store/mlartifacts/first").as_uri()


class Line(socketserver.ThreadingTCPServer):
    """A port of this machine that passes on to another one, until it goes down and when it is up again."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, behind: int):
        self.behind, self.is_up = behind, True
        super().__init__(("127.0.0.1", 0), Passing)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class Passing(socketserver.BaseRequestHandler):
    """One connection: closed where the line is down, or goes down."""

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.behind)) as behind:
            other = {self.request: behind, behind: self.request}
            while self.server.is_up:
                for end in select.select([*other], [], [], 0.05)[0]:
                    if not (text := end.recv(1 << 16)) or not self.server.is_up:
                        return
                    other[end].sendall(text)


@pytest.fixture
def server(tmp_path):
    """MLflow's server on this machine with a store of its own: its line, and the store."""
    write_empty_store(tmp_path / "server.db")
    port, store = free_port(), f"sqlite:///{tmp_path}/server.db"
    address = ["--backend-store-uri", store, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "mlflow", "server", *address]  # it keeps files of runs where it starts
    process = subprocess.Popen(command, cwd=tmp_path, env=os.environ | ui.SETTINGS, start_new_session=True, **nowhere)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            time.sleep(0.1)
        else:
            raise TimeoutError("the server does not answer")
        with Line(port) as line:
            yield line, store
            line.shutdown()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_a_server_that_goes_down_half_way_has_each_run_once_in_the_end(server, copied, capsys, monkeypatch):
    (line, store), sent = server, []
    log_batch = mlflow.MlflowClient.log_batch
    uri = f"http://127.0.0.1:{line.server_address[1]}"

    def goes_down(client, *arguments, **more):
        sent.append(arguments)
        if len(sent) == 4:  # the mean comes first; the third run is there, without its metrics and its end
            line.is_up = False
        return log_batch(client, *arguments, **more)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", goes_down)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert call(f"track --from {copied} --to {uri}") == 1
    assert "first was not sent whole" in capsys.readouterr().err
    assert len(seeds(store)["first"]) == 2
    line.is_up = True
    assert call(f"track --from {copied} --to {uri}") == 0
    assert capsys.readouterr().out == "first: 1 sent, 2 there already\nsecond: 2 sent, 0 there already\n"
    assert seeds(store) == ALL
