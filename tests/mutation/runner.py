"""Runs tests in children of a process that has imported the libraries: each child reads the project anew.

Started as a program in a copy of the project. Requests and answers are lines of JSON: `{"tests": [...], "seconds": 900}` gives
`{"failed": name or null}`.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

# None of them may start threads when it is imported, or load a module of the project.
LIBRARIES = (
    "hypothesis",
    "matplotlib.pyplot",
    "mlflow",
    "numba",
    "pandas",
    "pyarrow.parquet",
    "pytest",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
)
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no")


def main() -> None:
    """Answer requests until standard input ends."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        failed = first_failure(request["tests"], request["seconds"])
        print(json.dumps({"failed": failed}), flush=True)


def first_failure(tests: list[str], seconds: float) -> str | None:
    """Name of the first test that fails, of the working directory; `no test starts` or `too slow` count as failures."""
    output = Path("selection.out")
    child = os.fork()
    if child == 0:
        run(tests, output)
    status = wait(child, seconds)
    with contextlib.suppress(ProcessLookupError):  # what the tests have started
        os.killpg(child, signal.SIGKILL)
    if status is None:
        return "too slow"
    if status == 0:
        return None
    if "ERROR: not found: " in output.read_text():
        raise LookupError(f"{output.resolve()}: a test is not there")
    failed = [line for line in output.read_text().splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].split(" ")[1] if failed else "no test starts"


def run(tests: list[str], output: Path) -> None:
    """Run tests in this process, which ends."""
    status = 1
    try:
        os.setsid()
        null, target = os.open(os.devnull, os.O_RDONLY), os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for source, place in ((null, 0), (target, 1), (target, 2)):
            os.dup2(source, place)
        import pytest

        Path("selection.txt").write_text("\n".join(tests))
        status = int(pytest.main([*OPTIONS, "@selection.txt"]))
        sys.stdout.flush()
    finally:
        os._exit(status)


def wait(child: int, seconds: float) -> int | None:
    """Exit status of a child; None after that many seconds, when it is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    main()
