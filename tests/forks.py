"""Code that runs in forks of a process that has imported what the code needs."""

import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SERVER = """
import atexit, gc, importlib, json, os, select, signal, socket, sys, traceback

for name in sys.argv[3:]:
    importlib.import_module(name)
gc.freeze()  # no fork looks for garbage in what was imported, which would copy it
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
print("ready", flush=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
        sys.exit()  # the process that started this one has ended
    connection, _ = listener.accept()
    if os.fork() == 0:
        break
    connection.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
listener.close()
text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
while not text.endswith(b"\\n"):
    text += connection.recv(1 << 20)
order = json.loads(text)
child = os.fork()
if child:
    connection.sendall(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)
connection.close()
for stream, copy in enumerate(streams):
    os.dup2(copy, stream)
    os.close(copy)
os.chdir(order["cwd"])
os.environ.clear()
os.environ.update(order["environ"])
sys.executable = sys.argv[2]
sys.argv = ["-c", *order["arguments"]]
sys.path[:0] = [order["cwd"], *order["environ"].get("PYTHONPATH", "").split(os.pathsep)]
status = 0
try:
    exec(order["code"])
except SystemExit as error:
    status = error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error.code, str):
        print(error.code, file=sys.stderr)
except BaseException:
    traceback.print_exc()
    status = 1
# Libraries in C++ wait at their end for threads that a fork does not have, and to search all modules for garbage takes a second.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""

# A program that runs a script, `-m agglearn` or `-m snakemake` in a fork. It leaves everything else to Python.
PROGRAM = """#!{python} -SE
import json, os, socket, sys

first, *arguments = sys.argv[1:]
if first.endswith(".py"):
    code = f"import runpy, sys; sys.argv[0] = {{first!r}}; runpy.run_path({{first!r}}, run_name='__main__')"
elif first == "-m" and arguments[0] in ("agglearn", "snakemake"):
    code = f"import runpy; runpy.run_module({{arguments.pop(0)!r}}, run_name='__main__', alter_sys=True)"
else:
    os.execv({python!r}, [{python!r}, first, *arguments])
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
order = dict(code=code, arguments=arguments, cwd=os.getcwd(), environ=dict(os.environ))
text = json.dumps(order).encode() + b"\\n"
sent = socket.send_fds(connection, [text], [0, 1, 2])
connection.sendall(text[sent:])
status = int(connection.makefile().readline())
sys.exit(status if status >= 0 else 128 - status)
"""


class ForkServer:
    """A process that has imported modules, and ends with this one. It runs code in forks, also several at a time. What these start as
    `sys.executable` is `program`, which runs scripts in forks, too."""

    def __init__(self, *modules: str, environ: Mapping[str, str] = os.environ):
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.address, self.program = f"{folder}/socket", Path(folder, "python")
        self.program.write_text(PROGRAM.format(python=sys.executable, address=self.address))
        self.program.chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, self.address, str(self.program), *modules],
            stdin=subprocess.PIPE,  # it ends as this ends
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=dict(environ),
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(
        self,
        code: str,
        cwd: Path,
        printed: Path,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> int:
        """Run code as `python -c` would; returns its exit status. What it prints goes to the file `printed`."""
        order = {"code": code, "arguments": [*arguments], "environ": dict(environ), "cwd": str(cwd)}
        with socket.socket(socket.AF_UNIX) as connection, open(os.devnull) as nothing, printed.open("w") as out:
            connection.connect(self.address)
            text = json.dumps(order).encode() + b"\n"
            sent = socket.send_fds(connection, [text], [nothing.fileno(), out.fileno(), out.fileno()])
            connection.sendall(text[sent:])
            connection.settimeout(1200)
            try:
                return int(connection.makefile().readline())
            except TimeoutError:
                raise TimeoutError(
                    f"{code[:200]} {' '.join(arguments)} did not end:\n{printed.read_text()[-3000:]}"
                ) from None


IMPORTED = (
    "docutils.core", "jinja2", "jsonschema", "matplotlib.pyplot", "mlflow", "nbformat", "pandas", "pyarrow.parquet", "pydantic", "requests",
    "runpy", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.base", "sklearn.linear_model", "smart_open", "snakemake.cli",
    "snakemake.executors.local", "snakemake.profiles", "snakemake.report.html_reporter", "snakemake.storage", "snakemake.workflow", "yaml",
)  # fmt: skip


@functools.cache
def workflow_server() -> ForkServer:
    """A process that has imported what Snakemake, commands and jobs import, but for this package and numba, whose cache each
    project has elsewhere."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return ForkServer(*IMPORTED, environ=os.environ | threads)
