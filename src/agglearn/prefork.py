"""A process that has imported the heavy libraries and forks a child for each job of the workflow.

Imports take more time than most jobs. A forked child has them at once. Measured on 40 jobs of scale smoke, twice each
way: a job takes 0.6 s of processor time in place of 1.7 s. `make reproduce` has about 300 jobs, so the server saves
165 s on two cores, an eighth of its time.

The workflow's main process starts the prefork server (`start`) and puts a launcher in the place of Python
(`agglearn.launcher`). Snakemake starts the launcher for the script of a job. The launcher lets a child of the server
run the script and waits for the exit status. Python itself runs the script where no server answers (another machine,
another environment, another system than Linux), and where a job's libraries may use more than one thread. So nothing
depends on the server but time. Scripts that come while it still imports wait, as their own imports would take as
long. The server ends with the main process, and a child ends with its launcher.
"""

import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agglearn import launcher
from agglearn.workflow import lifeline

ADDRESS = "AGGLEARN_PREFORK"
# Threads of a job's libraries. They are set before the import, so jobs whose libraries may use more run by themselves.
THREADS = 1
MAX_LENGTH = 80  # characters of the folder for temporary files: a socket's address has 107 at most
LIBRARIES = (
    "jinja2", "matplotlib.backends.backend_svg", "matplotlib.pyplot", "numba", "pandas", "pyarrow.csv", "pyarrow.dataset",
    "pyarrow.parquet", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats", "sklearn.base",
    "sklearn.linear_model", "snakemake.script", "urllib.request",
)  # fmt: skip
FOR_TRACKING = ("mlflow",)  # takes longer than all others

_started: list[subprocess.Popen] = []


def library_threads(job: Any) -> int:
    """Threads of the numerical libraries in a job, which may have more of the machine for itself."""
    return getattr(job.params, "library_threads", job.threads)


def limited(threads: int) -> dict[str, str]:
    """Environment that gives the numerical libraries so many threads."""
    return {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def start(tracks: bool = False) -> None:
    """Start the server of this process, unless the environment names one, and put the launcher in the place of Python."""
    python, _, address = os.environ.get(ADDRESS, "").rpartition(":")
    if sys.platform != "linux" or len(tempfile.gettempdir()) > MAX_LENGTH or (address and python != sys.executable):
        return
    if not address:
        address = _serve_elsewhere()
        os.environ[ADDRESS] = f"{sys.executable}:{address}"
    if tracks:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall(launcher.TRACKS)
    sys.executable = str(Path(address).with_name("python"))


def _serve_elsewhere() -> str:
    """Address of a new process that serves as long as this one lives. Beside it lies the launcher."""
    folder = tempfile.mkdtemp(prefix="agglearn-")
    python = Path(folder, "python")
    call = [sys.executable, "-ISE", launcher.__file__, sys.executable, f"{folder}/socket"]
    python.write_text(f'#!/bin/sh\nexec {shlex.join(call)} "$@"\n')
    python.chmod(0o700)
    own = limited(THREADS) | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with socket.socket(socket.AF_UNIX) as listener:  # it exists before the first job asks for it
        listener.bind(f"{folder}/socket")
        listener.listen(64)
        call = [sys.executable, "-m", "agglearn.prefork", folder, str(listener.fileno())]
        server = subprocess.Popen(call, stdin=subprocess.PIPE, env=os.environ | own, pass_fds=[listener.fileno()])
    _started.append(server)
    return f"{folder}/socket"


def _import(names: Iterable[str]) -> None:
    """Import libraries, whose memory children then share."""
    for name in names:
        with contextlib.suppress(ImportError):  # the job that needs it reports it
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children share these objects' memory


def serve(folder: str, listener: socket.socket) -> None:
    """Fork a child for every script handed over, until standard input ends."""
    with contextlib.suppress(ImportError):
        importlib.import_module("numba").njit(lambda x: x)(1.0)  # the first compilation fills its tables
    _import(LIBRARIES)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt reaches children and the main process, which decides
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children's answers travel by their sockets
    tracks = False
    with listener:
        while listener in select.select([sys.stdin, listener], [], [])[0]:
            line = listener.accept()[0]
            if line.recv(1) == launcher.TRACKS:
                tracks = True
            elif os.fork() == 0:
                listener.close()
                _child(line)
            elif tracks:
                _import(FOR_TRACKING)
                tracks = False
            line.close()
    shutil.rmtree(folder)
    lifeline.end_children(
        os.getpid()
    )  # jobs end with this process, but the processes that they have started would stay


def _child(line: socket.socket) -> None:
    """Run the script that a launcher names as the launcher would. The exit status is the answer."""
    status = 1
    try:
        lifeline.die_with_parent()
        line.sendall(b".")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for theirs, ours in zip(socket.recv_fds(line, 1, 2)[1], (1, 2), strict=True):
            os.dup2(theirs, ours)
            os.close(theirs)
        with line.makefile("rb") as stream:
            folder, environ, script = marshal.load(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        threading.Thread(target=_end_with, args=(line,), daemon=True).start()
        sys.argv[:] = [script]
        own = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[:1] = [str(Path(script).parent), *own]
        status = _status(script)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(bytes([status]))
        os._exit(0)


def _status(script: str) -> int:
    """Exit status of a script, as Python has it. The script finds `forked` among its globals."""
    try:
        runpy.run_path(script, {"forked": True}, "__main__")
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return (leaving.code or 0) & 255
        print(leaving.code, file=sys.stderr)
        return 1
    return 0


def _end_with(line: socket.socket) -> None:
    """End this process when the job's own process is gone."""
    if not line.recv(1):
        lifeline.end_all()


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
