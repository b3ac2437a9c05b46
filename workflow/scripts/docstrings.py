"""Validate the docstrings of all public names with numpydoc.

A name in the `__all__` of a module is public. A class is validated with the methods that it defines itself, but for
those that inherit their docstring.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator

from numpydoc.validate import validate

import agglearn

CHECKS = {
    "GL08": "no docstring",
    "PR01": "parameters without a description",
    "PR02": "descriptions without a parameter",
    "PR03": "parameters in another order",
    "SS02": "summary starts with a small letter",
    "SS03": "summary does not end with a full stop",
}


def public_names() -> Iterator[str]:
    """Dotted names of public classes, their own public methods, and public functions."""
    for info in pkgutil.walk_packages(agglearn.__path__, "agglearn."):
        module = importlib.import_module(info.name) if "__main__" not in info.name else None
        for name in getattr(module, "__all__", ()):
            yield f"{info.name}.{name}"
            kind = getattr(module, name)
            for method, value in vars(kind).items() if inspect.isclass(kind) else ():
                inherits = not value.__doc__ and inspect.getdoc(getattr(kind, method))
                if inspect.isfunction(value) and not method.startswith("_") and not inherits:
                    yield f"{info.name}.{name}.{method}"


def main() -> int:
    """Print what is wrong, and return the exit status."""
    faults = [
        f"{result['file']}:{result['file_line']}: {name.removeprefix('agglearn.')}: {code} {text}"
        for name in public_names()
        for result in [validate(name)]
        for code, text in result["errors"]
        if code in CHECKS
    ]
    print("\n".join(faults) or "docstrings: all public names are documented")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
