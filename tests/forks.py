"""Code that runs in forks of a process that has imported what the code needs."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SERVER = """
import importlib, json, os, sys

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
order = json.loads(line)
printed = os.open(order["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), printed, printed)):
    os.dup2(file, stream)
os.chdir(order["cwd"])
os.environ.clear()
os.environ.update(order["environ"])
sys.argv = ["-c", *order["arguments"]]
sys.path[:0] = [order["cwd"], *order["environ"].get("PYTHONPATH", "").split(os.pathsep)]
exec(order["code"])
"""


class ForkServer:
    """A process that has imported modules. It runs code in a fork, one after the other, and ends with this process."""

    def __init__(self, *modules: str, environ: Mapping[str, str] = os.environ):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *modules],
            stdin=subprocess.PIPE,  # it ends as this ends
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=dict(environ),
        )

    def run(
        self,
        code: str,
        cwd: Path,
        printed: Path,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> int:
        """Run code as `python -c` would; returns its exit status. What it prints goes to the file `printed`."""
        order = {
            "code": code,
            "arguments": [*arguments],
            "environ": dict(environ),
            "cwd": str(cwd),
            "printed": str(printed),
        }
        print(json.dumps(order), file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], 1200)[0]:
            raise TimeoutError(f"{code[:200]} {' '.join(arguments)} did not end:\n{printed.read_text()[-3000:]}")
        return int(self.process.stdout.readline())
