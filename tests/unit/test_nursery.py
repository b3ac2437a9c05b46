"""Jobs forked from the nursery: their answers, and that nobody outlives whom it works for."""

import importlib.util
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples import ROOT
from snakemake.iocontainers import Wildcards

from agglearn import kernel_cache, nursery

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the nursery needs Linux")

PARSER = """
import os, signal, time
from agglearn.errors import DataError

class Parser:
    def __init__(self, how):
        self.how = how

    @classmethod
    def of(cls, entry):
        return cls(entry["how"])

    def parse(self, files, out):
        (out / "pid").write_text(str(os.getpid()))
        print("parsing with", os.environ["OMP_NUM_THREADS"], "thread in", os.getcwd())
        import numba
        (out / "kernels").write_text(numba.config.CACHE_DIR)
        if self.how == "refuse":
            raise DataError("line 3: no number")
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "sleep":
            time.sleep(600)
        return {}
"""
CLIENT = """
import pickle, sys
from agglearn import nursery
job, root = pickle.load(sys.stdin.buffer)
sys.exit(nursery.hand_over(job, root=root))
"""


def until(condition):
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("did not happen within 30 s")


def started() -> tuple[subprocess.Popen, str]:
    """A nursery and its address, known to nobody else."""
    nursery.start()
    address = os.environ.pop(nursery.ADDRESS)
    return nursery._started.pop(), address


@pytest.fixture(scope="module")
def address():
    server, address = started()
    yield address
    server.stdin.close()
    assert server.wait(10) == 0


@pytest.fixture
def prepare(tmp_path, address, monkeypatch):
    """A job of rule `prepare`, whose parser works, refuses, dies or sleeps."""
    monkeypatch.setenv(nursery.ADDRESS, address)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parsing.py").write_text(PARSER)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/files.json").write_text("{}")
    (tmp_path / "source/manifest.json").write_text('{"status": "ok", "content": {}}')

    def job(how, threads=1, **params):
        entry = {"class": "parsing.Parser", "how": how}
        return SimpleNamespace(
            rule="prepare", threads=threads, log=["log"], input=["source"], output=["records"],
            wildcards=Wildcards(fromdict={"dataset": "small"}), params=SimpleNamespace(recipe="", **params),
            config={"code": [], "cache": "cache", "on_missing": "report", "on_failure": "fail", "datasets": {"small": entry}},
        )  # fmt: skip

    return job


def client(job) -> subprocess.Popen:
    """A process that hands the job over and leaves with the answer."""
    process = subprocess.Popen([sys.executable, "-c", CLIENT], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(pickle.dumps((job, Path.cwd())))
    process.stdin.close()
    return process


def worker() -> int:
    """Process that parses, once it does."""
    found = until(lambda: [p for p in Path.cwd().glob(".records.*/pid") if p.read_text()])
    return int(found[0].read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_job_is_done_by_another_process(prepare):
    assert nursery.hand_over(prepare("work"), root=Path.cwd()) is None
    assert int(Path("records/pid").read_text()) != os.getpid()
    first, last = Path("log").read_text().splitlines()
    assert first == f"parsing with 1 thread in {Path.cwd()}"
    assert last.startswith("took ")
    assert Path("records/kernels").read_text() == f"{Path.cwd()}/cache/numba/{kernel_cache.today()}"


@pytest.mark.slow
def test_a_job_with_the_machine_for_itself_and_libraries_of_one_thread_is_taken(prepare):
    assert nursery.hand_over(prepare("work", threads=2, library_threads=1), root=Path.cwd()) is None
    assert int(Path("records/pid").read_text()) != os.getpid()


def test_an_error_comes_back_as_its_line(prepare):
    assert (
        nursery.hand_over(prepare("refuse"), root=Path.cwd()) == "agglearn: error: small: line 3: no number (log: log)"
    )
    assert not Path("records").exists()


def test_a_death_comes_back_as_a_line(prepare):
    assert "prepare small" in nursery.hand_over(prepare("die"), root=Path.cwd())
    assert not Path("records").exists()


def test_what_the_nursery_cannot_do_is_left(prepare, monkeypatch):
    assert nursery.hand_over(prepare("work", threads=2), root=Path.cwd()) is False
    assert nursery.hand_over(prepare("work", library_threads=2), root=Path.cwd()) is False
    for elsewhere in ("/other/python:/tmp/socket", f"{sys.executable}:{Path.cwd()}/socket"):
        monkeypatch.setenv(nursery.ADDRESS, elsewhere)
        assert nursery.hand_over(prepare("work"), root=Path.cwd()) is False
    monkeypatch.delenv(nursery.ADDRESS)
    assert nursery.hand_over(prepare("work"), root=Path.cwd()) is False
    assert not Path("records").exists()


def test_a_job_runs_by_itself_where_the_nursery_ends_before_it_accepts(prepare, tmp_path, monkeypatch):
    monkeypatch.setenv(nursery.ADDRESS, f"{sys.executable}:socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        listener.listen()
        with client(prepare("work")) as waiting:
            listener.accept()[0].close()
        assert waiting.returncode == 0  # sys.exit(False): the job is still to be done
    assert not Path("records").exists()


def test_a_nursery_that_the_environment_names_serves_this_run_too(prepare, address):
    nursery.start()
    assert nursery._started == []
    assert os.environ[nursery.ADDRESS] == address


def test_a_job_ends_with_the_process_that_waits_for_it(prepare):
    with client(prepare("sleep")) as waiting:
        pid = worker()
        waiting.kill()
    until(lambda: not alive(pid))


@pytest.mark.slow
def test_all_end_with_the_main_process(prepare, tmp_path, monkeypatch):
    monkeypatch.delenv(nursery.ADDRESS)
    server, address = started()
    monkeypatch.setenv(nursery.ADDRESS, address)
    with client(prepare("sleep")) as waiting:
        pid = worker()
        server.stdin.close()  # as the kernel does when its owner ends
        assert b"prepare small: its process was killed" in waiting.stderr.read()
    assert waiting.returncode == 1
    until(lambda: not alive(pid))
    assert server.wait(10) == 0
    assert not Path(address.rpartition(":")[2]).parent.exists()


def test_an_interrupt_reaches_the_job_but_not_the_nursery(prepare):
    with client(prepare("sleep")) as waiting:
        os.kill(worker(), signal.SIGINT)
        assert b"KeyboardInterrupt" in waiting.stderr.read()
    assert nursery.hand_over(prepare("work"), root=Path.cwd()) is None


@pytest.mark.parametrize(
    ("params", "expected"), [({"library_threads": 1}, "1"), ({"library_threads": 4}, "4"), ({}, "4")], ids=str
)
def test_a_job_gives_the_numerical_libraries_the_threads_that_its_experiment_states(monkeypatch, params, expected):
    """A timed job may have all cores, so that nothing runs beside it, and libraries of one thread."""
    spec = importlib.util.spec_from_file_location("stage", ROOT / "workflow/scripts/stage.py")
    stage = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stage)
    for name in nursery.limited(1):
        monkeypatch.setenv(name, "7")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("agglearn.lifeline.follow", lambda: None)
    given = []
    monkeypatch.setattr(
        nursery, "hand_over", lambda job, root: given.append({n: os.environ[n] for n in nursery.limited(1)})
    )
    job = SimpleNamespace(
        scriptdir=ROOT / "workflow/scripts", config={"code": []}, threads=4, params=SimpleNamespace(**params)
    )
    stage.main(job)
    assert given == [dict.fromkeys(nursery.limited(1), expected)]
