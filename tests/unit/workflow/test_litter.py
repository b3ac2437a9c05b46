"""What killed runs leave is swept; what is whole, or somebody else's, stays."""

import errno
import fcntl
import multiprocessing
import os
import signal

import pytest

from agglearn import storage
from agglearn.workflow import litter, results_lock

OURS = {
    ".lock",
    "runs/a/run.json",
    "runs/.gitkeep",
    "cache/.12.adult.data",
    "notes/.b.abcdefgh/x",
    ".mine",
    "tables/a.csv",
}


@pytest.fixture
def results(tmp_path):
    """A results folder with what is whole."""
    for name in OURS:
        write(tmp_path / name)
    return tmp_path


def write(path, text="whole"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files(folder) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def killed(function, *arguments) -> None:
    """Run a function in a child that kills itself."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def die_while_building(folder):
    with storage.atomic_dir(folder) as work:
        (work / "half").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def die_while_replacing(folder):
    rename = os.rename

    def second_kills(*arguments):
        rename(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    with storage.atomic_dir(folder) as work:
        (work / "new").write_text("new")
        os.rename = second_kills


def die_while_writing(path):
    with storage.atomic_file(path) as work:
        work.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", ["runs/b", "site", "smoke/observations/e", "records/d"])
def test_a_product_that_was_being_made_goes(results, name):
    killed(die_while_building, results / name)
    assert files(results) > OURS
    assert litter.sweep(results) == 1
    assert files(results) == OURS


@pytest.mark.parametrize("name", ["runs/b", "site", "records/d"])
def test_a_product_that_was_being_replaced_comes_back(results, name):
    write(results / name / "old")
    killed(die_while_replacing, results / name)
    assert not (results / name).exists()
    assert litter.sweep(results) == 2
    assert files(results) == OURS | {f"{name}/old"}


@pytest.mark.parametrize(
    "name", ["claims.json", "claims/s.json", "measurements/e/b.parquet", "tables/a.csv", "default/tables/a.csv"]
)
def test_a_file_that_was_being_written_goes(results, name):
    killed(die_while_writing, results / name)
    assert litter.sweep(results) == 1
    assert files(results) == OURS


def test_nothing_to_sweep(tmp_path):
    assert litter.sweep(tmp_path / "absent") == 0


# -- the lock ---------------------------------------------------------------------------------------------------------


def test_a_second_run_leaves_and_a_file_system_without_locks_does_not(tmp_path, monkeypatch, capsys):
    results_lock.acquire(tmp_path / "first").close()
    with open(tmp_path / "lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="another run is working"):
            results_lock.acquire(tmp_path / "lock")

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    results_lock.acquire(tmp_path / "lock").close()
    [line] = capsys.readouterr().err.splitlines()
    assert "has no locks (No locks available); start no second run" in line


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match=r"agglearn: .*Not a directory|File exists"):
        results_lock.acquire(tmp_path / "file/.lock")
