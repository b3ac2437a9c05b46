"""Code that runs in forks of a process that has imported what the code needs."""

import atexit
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
import atexit, importlib, json, os, select, signal, socket, sys, traceback

for name in sys.argv[2:]:
    importlib.import_module(name)
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

# A program that runs a script as Python does, in a fork.
PROGRAM = """#!{python} -SE
import json, os, socket, sys

connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
code = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
order = dict(code=code, arguments=sys.argv[1:], cwd=os.getcwd(), environ=dict(os.environ))
text = json.dumps(order).encode() + b"\\n"
sent = socket.send_fds(connection, [text], [0, 1, 2])
connection.sendall(text[sent:])
status = int(connection.makefile().readline())
sys.exit(status if status >= 0 else 128 - status)
"""


class ForkServer:
    """A process that has imported modules, and ends with this one. It runs code in forks, `program` a script, also several at a time."""

    def __init__(self, *modules: str, environ: Mapping[str, str] = os.environ):
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.address, self.program = f"{folder}/socket", Path(folder, "python")
        self.program.write_text(PROGRAM.format(python=sys.executable, address=self.address))
        self.program.chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, self.address, *modules],
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
