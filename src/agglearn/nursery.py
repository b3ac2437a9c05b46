"""A process that has imported the heavy libraries and forks a child for each job of the workflow.

Imports take two to four seconds, more than most jobs; a forked child has them at once. The workflow's main process starts
the nursery (`start`), `workflow/scripts/stage.py` hands its job over (`hand_over`) and waits for the child's answer. Where none
answers (another machine, another environment, another system than Linux), the job runs in its own process: nothing
depends on the nursery but time. Jobs handed over while it still imports wait: their own imports would take as long.
It ends with the main process, a child with its job's process.
"""

import contextlib
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from agglearn import lifeline

ADDRESS = "AGGLEARN_NURSERY"
# Threads of a job's libraries. They are set before the import, so jobs whose libraries may use more run by themselves.
THREADS = 1
LONGEST = 80  # characters of the folder for temporary files: a socket's address has 107 at most
LIBRARIES = (
    "jinja2", "matplotlib.backends.backend_svg", "matplotlib.pyplot", "numba", "pandas", "pyarrow.csv", "pyarrow.dataset",
    "pyarrow.parquet", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats", "sklearn.base",
    "sklearn.linear_model", "snakemake.script", "urllib.request",
)  # fmt: skip
FOR_TRACKING = (
    "mlflow.store.tracking.sqlalchemy_store",
)  # takes longer than all others: for the first job that tracks
TRACKS, OTHER = b"t", b"."

_started = []


def library_threads(job) -> int:
    """Threads of the numerical libraries in a job, which may have more of the machine for itself."""
    return getattr(job.params, "library_threads", job.threads)


def limited(threads: int) -> dict[str, str]:
    """Environment that gives the numerical libraries so many threads."""
    return {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def start() -> None:
    """Start the nursery of this process, unless the environment names one, and let the processes it starts know its address."""
    if sys.platform != "linux" or len(tempfile.gettempdir()) > LONGEST or os.environ.get(ADDRESS):
        return
    home = tempfile.mkdtemp(prefix="agglearn-")
    more = limited(THREADS) | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with socket.socket(socket.AF_UNIX) as listener:  # it exists before the first job asks for it
        listener.bind(f"{home}/socket")
        listener.listen(64)
        call = [sys.executable, "-m", "agglearn.nursery", home, str(listener.fileno())]
        server = subprocess.Popen(call, stdin=subprocess.PIPE, env=os.environ | more, pass_fds=[listener.fileno()])
    _started.append(server)
    os.environ[ADDRESS] = f"{sys.executable}:{home}/socket"


def hand_over(job, **more) -> str | bool | None:
    """Let a child of the nursery run `stages.run(job, **more)`.

    Returns
    -------
    What it returned (None or an error's line); False where no nursery takes this job.
    """
    python, _, address = os.environ.get(ADDRESS, "").rpartition(":")
    if library_threads(job) != THREADS or python != sys.executable:
        return False
    with socket.socket(socket.AF_UNIX) as line, line.makefile("rwb") as stream:
        try:
            line.connect(address)
            line.sendall(TRACKS if job.rule == "track" else OTHER)
            accepted = line.recv(1)
        except OSError:
            return False
        if not accepted:
            return False
        socket.send_fds(line, [b"."], [1, 2])
        pickle.dump({"cwd": os.getcwd(), "environ": dict(os.environ), "path": sys.path}, stream)
        pickle.dump((job, more), stream)
        stream.flush()
        answer = stream.read()
    if not answer:
        return f"agglearn: error: {job.rule} {' '.join(job.wildcards)}: its process was killed"
    return pickle.loads(answer)


def _import(names: Iterable[str]) -> None:
    """Import libraries, whose memory children then share."""
    for name in names:
        with contextlib.suppress(ImportError):  # the job that needs it says so
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children share these objects' memory


def serve(home: str, listener: socket.socket) -> None:
    """Fork a child for every job handed over, until standard input ends."""
    with contextlib.suppress(ImportError):
        importlib.import_module("numba").njit(lambda x: x)(1.0)  # the first compilation fills its tables
    _import(LIBRARIES)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt reaches children and the main process; that decides
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children's answers travel by their sockets
    with listener:
        while listener in select.select([sys.stdin, listener], [], [])[0]:
            line = listener.accept()[0]
            if line.recv(1) == TRACKS:
                _import(FOR_TRACKING)
            if os.fork() == 0:
                listener.close()
                _child(line)
            line.close()
    shutil.rmtree(home)
    lifeline.end_children(os.getpid())  # jobs end with this process; the processes that they have started would stay


def _child(line: socket.socket) -> None:
    from agglearn.running import die_with_parent

    answer = "agglearn: error: the job could not be taken over"
    try:
        die_with_parent()
        line.sendall(b".")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for theirs, ours in zip(socket.recv_fds(line, 1, 2)[1], (1, 2), strict=True):
            os.dup2(theirs, ours)
            os.close(theirs)
        stream = line.makefile("rwb")
        place = pickle.load(stream)
        os.chdir(place["cwd"])
        os.environ.clear()
        os.environ.update(place["environ"])
        sys.path[:] = place["path"]
        job, more = pickle.load(stream)
        threading.Thread(target=_end_with, args=(line,), daemon=True).start()
        from agglearn import stages

        answer = stages.run(job, **more)
    except BaseException as error:
        answer = f"agglearn: error: {type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(pickle.dumps(answer))
        os._exit(0)


def _end_with(line: socket.socket) -> None:
    """End this process when the job's own process is gone."""
    if not line.recv(1):
        lifeline.end_all()


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
