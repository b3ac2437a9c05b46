"""Calls the command line where some modules are not installed: prints the status and what is printed of each call, as JSON.

The modules are refused before any finder looks for them.
"""

import contextlib
import importlib.abc
import io
import json
import sys
import traceback

refused, calls = map(json.loads, sys.argv[1:])


class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def outcomes() -> dict[str, tuple[int | str, str]]:
    sys.meta_path.insert(0, Absent())
    from agglearn.cli import main

    found = {}
    for call, arguments in calls.items():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as printed:
            try:
                status = main(arguments.split())
            except SystemExit as ended:
                status = ended.code
            except BaseException:
                status = traceback.format_exc()
        found[call] = status, printed.getvalue()
    return found


if __name__ == "__main__":
    print(json.dumps(outcomes()))
