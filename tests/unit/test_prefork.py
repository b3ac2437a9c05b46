"""Jobs forked from the prefork server: their answers, and that nobody outlives whom it works for."""

import importlib.util
import os
import pickle
import shutil
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

from agglearn import jobs, kernel_cache, launcher, prefork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the prefork server needs Linux")

PARSER = """
import os, signal, time
from agglearn.errors import DataError

class Parser:
    def __init__(self, how):
        self.how = how

    @classmethod
    def from_entry(cls, entry):
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
        if self.how == "abort at the end":
            import atexit
            atexit.register(os.abort)
        if self.how == "sleep":
            time.sleep(600)
        return {}
"""
# As Snakemake writes it: the job, then the text of workflow/scripts/stage.py.
SCRIPT = "import pickle; snakemake = pickle.loads({job!r})\n{stage}"


def until(condition):
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("did not happen within 30 s")


def started() -> tuple[subprocess.Popen, str]:
    """A prefork server and its address, known to nobody else."""
    python = sys.executable
    prefork.start()
    sys.executable = python
    address = os.environ.pop(prefork.ADDRESS)
    return prefork._started.pop(), address


@pytest.fixture(scope="module")
def address():
    server, address = started()
    yield address
    server.stdin.close()
    assert server.wait(10) == 0


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """A job of rule `prepare`, whose parser works, refuses, dies or sleeps."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parsing.py").write_text(PARSER)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/files.json").write_text("{}")
    (tmp_path / "source/manifest.json").write_text('{"status": "ok", "content": {}}')

    def job(how, threads=1, **params):
        entry = {"class": "parsing.Parser", "how": how}
        return SimpleNamespace(
            rule="prepare", scriptdir=ROOT / "workflow/scripts", threads=threads, log=["log"], input=["source"], output=["records"],
            wildcards=Wildcards(fromdict={"dataset": "small"}), params=SimpleNamespace(recipe="", **params),
            config={"code": [], "cache": "cache", "on_missing": "report", "on_failure": "fail", "datasets": {"small": entry}},
        )  # fmt: skip

    return job


def launched(job, address: str) -> subprocess.Popen:
    """What Snakemake starts for a job."""
    stage = (ROOT / "workflow/scripts/stage.py").read_text()
    Path("script.py").write_text(SCRIPT.format(job=pickle.dumps(job), stage=stage))
    python = Path(address.rpartition(":")[2]).with_name("python")
    return subprocess.Popen([python, "script.py"], stderr=subprocess.PIPE, text=True)


def worker() -> int:
    """Process that parses, once it does."""
    found = until(lambda: [p for p in Path.cwd().glob(".records.*/pid") if p.read_text()])
    return int(found[0].read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def done(address):
    """`done(job)`: exit status, standard error, and whether a child of the prefork server did it."""

    def done(job, at=address) -> tuple[int, str, bool]:
        process = launched(job, at)
        said = process.communicate()[1]
        pid = Path("records/pid")
        return process.returncode, said, not pid.exists() or int(pid.read_text()) != process.pid

    return done


@pytest.mark.slow
def test_a_job_is_done_by_another_process(prepare, done):
    assert done(prepare("work")) == (0, "", True)
    first, last = Path("log").read_text().splitlines()
    assert first == f"parsing with 1 thread in {Path.cwd()}"
    assert last.startswith("took ")
    assert Path("records/kernels").read_text() == str(kernel_cache.base() / kernel_cache.today())


@pytest.mark.slow
def test_a_job_with_the_machine_for_itself_and_libraries_of_one_thread_is_taken(prepare, done):
    assert done(prepare("work", threads=2, library_threads=1)) == (0, "", True)


def test_an_error_comes_back_as_its_line(prepare, done):
    assert done(prepare("refuse")) == (1, "agglearn: error: small: line 3: no number (log: log)\n", True)
    assert not Path("records").exists()


def test_a_death_comes_back_as_a_line(prepare, done):
    assert done(prepare("die")) == (1, "agglearn: error: the process of the job was killed\n", True)
    assert not Path("records").exists()


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"threads": 2}, {"threads": 1, "library_threads": 2}], ids=str)
def test_a_job_whose_libraries_use_more_threads_runs_by_itself(prepare, done, more):
    assert done(prepare("work", **more)) == (0, "", False)
    assert Path("log").read_text().startswith("parsing with 2 thread")


@pytest.mark.slow
def test_a_job_is_done_although_a_library_aborts_the_end_of_its_process(prepare, done):
    assert done(prepare("abort at the end", threads=2)) == (0, "", False)


@pytest.mark.slow
def test_where_no_server_answers_a_job_runs_by_itself(prepare, done, address, tmp_path):
    home = Path(address.rpartition(":")[2]).parent
    (tmp_path / "python").write_text((home / "python").read_text().replace(str(home), str(tmp_path)))
    (tmp_path / "python").chmod(0o700)
    assert done(prepare("work"), f"{tmp_path}/socket") == (0, "", False)  # there is no socket
    shutil.rmtree("records")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        listener.listen()
        process = launched(prepare("work"), f"{tmp_path}/socket")
        listener.accept()[0].close()  # it ends before it accepts
        assert process.communicate()[1] == ""
    assert int(Path("records/pid").read_text()) == process.pid


def test_what_is_no_script_goes_to_python(address):
    python = Path(address.rpartition(":")[2]).with_name("python")
    assert subprocess.run([python, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout == "42\n"


def test_a_server_that_the_environment_names_serves_this_run_too(address, monkeypatch):
    python = sys.executable
    monkeypatch.setenv(prefork.ADDRESS, address)
    monkeypatch.setattr(sys, "executable", python)
    prefork.start()
    assert prefork._started == []
    assert os.environ[prefork.ADDRESS] == address
    assert sys.executable == str(Path(address.rpartition(":")[2]).with_name("python"))


def test_a_server_of_another_python_is_left(address, monkeypatch):
    python = sys.executable
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv(prefork.ADDRESS, "/other/python:/tmp/socket")
    prefork.start()
    assert (sys.executable, prefork._started) == (python, [])


def test_a_job_ends_with_its_launcher(prepare, address):
    waiting = launched(prepare("sleep"), address)
    pid = worker()
    waiting.kill()
    waiting.communicate()
    until(lambda: not alive(pid))


@pytest.mark.slow
def test_all_end_with_the_main_process(prepare, monkeypatch):
    server, address = started()
    waiting = launched(prepare("sleep"), address)
    pid = worker()
    server.stdin.close()  # as the kernel does when its owner ends
    assert waiting.communicate()[1] == "agglearn: error: the process of the job was killed\n"
    assert waiting.returncode == 1
    until(lambda: not alive(pid))
    assert server.wait(10) == 0
    assert not Path(address.rpartition(":")[2]).parent.exists()


@pytest.mark.slow
def test_an_interrupt_reaches_the_job_but_not_the_server(prepare, done, address):
    waiting = launched(prepare("sleep"), address)
    os.kill(worker(), signal.SIGINT)
    assert waiting.communicate()[1] == ""
    assert waiting.returncode == 128 + signal.SIGINT
    assert done(prepare("work"))[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "expected"), [({"library_threads": 1}, "1"), ({"library_threads": 4}, "4"), ({}, "4")], ids=str
)
def test_a_job_gives_the_numerical_libraries_the_threads_that_its_experiment_states(monkeypatch, params, expected):
    """A timed job may have all cores, so that nothing runs beside it, and libraries of one thread."""
    spec = importlib.util.spec_from_file_location("stage", ROOT / "workflow/scripts/stage.py")
    stage = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stage)
    for name in prefork.limited(1):
        monkeypatch.setenv(name, "7")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("agglearn.workflow.lifeline.follow", lambda: None)
    given = []
    monkeypatch.setattr(jobs, "run", lambda job: given.append({n: os.environ[n] for n in prefork.limited(1)}))
    job = SimpleNamespace(
        scriptdir=ROOT / "workflow/scripts", config={"code": []}, threads=4, params=SimpleNamespace(**params)
    )
    assert stage.main(job, forked=False) is None
    assert given == [dict.fromkeys(prefork.limited(1), expected)]
    assert stage.main(job, forked=True) == (None if expected == "1" else launcher.ALONE)
