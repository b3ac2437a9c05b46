"""`make ui` prints links to the runs and leaves no process behind, however it is ended."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import mlflow
import pytest
from hosts import free_port
from samples import ROOT, write_empty_store

from agglearn_workflow.tracking.receipts import SITE
from agglearn_workflow.tracking.ui import port_of, print_links

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "src")}
pytestmark = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("make"), reason="needs Linux and make")


def until(condition, seconds=240):
    for _ in range(seconds * 20):
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s")


def processes(mark: str) -> dict[int, str]:
    """Number and command line of every process whose environment bears the mark."""
    marked = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and (folder / "stat").read_text().split()[2] != "Z":
                marked[int(folder.name)] = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue
    return marked


def answers(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project's folder with an MLflow store."""
    folder = tmp_path_factory.mktemp("ui")
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text("results: results\ntracking: {uri: 'sqlite:///mlflow.db'}\n")
    (folder / "results/site").mkdir(parents=True)
    (folder / "results/site/maxent.html").write_text("the page of a source")
    shutil.copy(ROOT / "config/references.yaml", folder / "config")
    write_empty_store(folder / "mlflow.db")
    mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db").create_experiment("maxent_table4")
    return folder


@pytest.fixture
def started(folder):
    """`started()`: `make ui` on a free port, answering: its process, the mark of all that it starts, and the port."""
    begun = []

    def start() -> tuple[subprocess.Popen, str, int]:
        port = free_port()
        mark = f"AGGLEARN_TEST_MARK={uuid.uuid4()}"
        ready = "--old-file=ready", "READY=ready", f"BIN={Path(sys.executable).parent}"
        make = subprocess.Popen(
            ["make", "-f", str(ROOT / "Makefile"), *ready, "ui", f"PORT={port}"],
            cwd=folder,
            env=ENVIRONMENT | dict([mark.split("=")]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # A shell lets what it starts in the background ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        begun.append((make, mark))
        until(lambda: answers(port) or make.poll() is not None)
        assert make.poll() is None
        return make, mark, port

    yield start
    for make, mark in begun:
        for number in processes(mark):
            os.kill(number, signal.SIGKILL)
        make.wait()


def check_end(make: subprocess.Popen, mark: str, end) -> None:
    """Whether `end()` ends `make ui` and all that it has started."""
    assert len(processes(mark)) >= 3
    end()
    make.wait(60)
    until(lambda: not processes(mark))


@pytest.mark.slow
def test_nothing_stays_behind_after_a_kill(started):
    make, mark, _ = started()
    check_end(make, mark, lambda: make.send_signal(signal.SIGKILL))


@pytest.mark.slow
def test_the_server_has_the_site_and_mlflows_own_pages_until_ctrl_c(started):
    """Descriptions of experiments link to pages of the site."""
    make, mark, port = started()
    address = f"http://127.0.0.1:{port}"
    assert urllib.request.urlopen(f"{address}{SITE}/maxent.html").read() == b"the page of a source"
    assert b"<title>MLflow</title>" in urllib.request.urlopen(address).read()
    check_end(make, mark, lambda: os.killpg(make.pid, signal.SIGINT))


WRONG = "agglearn: port {!r} is not a number from 1 to 65535; for example: make ui PORT=5001"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "web", ""])
def test_a_wrong_port_is_refused(port):
    with pytest.raises(SystemExit) as ended:
        port_of(port)
    assert ended.value.code == WRONG.format(port)


@pytest.mark.slow
def test_a_link_for_each_source_in_the_order_of_the_papers(tmp_path, monkeypatch, capsys):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    write_empty_store(tmp_path / "mlflow.db")
    client, sources = mlflow.MlflowClient(uri), {"a": "mine", "b": "vocabulary", "c": "maxent", "d": "maxent"}
    numbers = {name: client.create_experiment(name, tags={"source": source}) for name, source in sources.items()}
    monkeypatch.chdir(ROOT)
    print_links(uri, 5001)
    address = "http://127.0.0.1:5001/#/experiments/"
    assert capsys.readouterr().out.splitlines() == [
        "Maximum entropy from contingency tables",
        f"  c: {address}{numbers['c']}/runs",
        f"  d: {address}{numbers['d']}/runs",
        "Vocabulary compression",
        f"  b: {address}{numbers['b']}/runs",
        "mine",
        f"  a: {address}{numbers['a']}/runs",
        "Ctrl-C ends it.",
    ]
