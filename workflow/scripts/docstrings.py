"""Validate the docstrings of all public names with numpydoc: `docstrings.py [PACKAGE ...]`, or all packages.

A name in the `__all__` of a module is public. A class is validated with the methods that it defines itself. A method
without a docstring inherits that of the nearest base.
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


def public_names(packages: list[str]) -> Iterator[str]:
    """Dotted names of public classes, their own public methods, and public functions."""
    for info in pkgutil.walk_packages(agglearn.__path__, "agglearn."):
        if packages and not info.name.removeprefix("agglearn.").startswith(tuple(packages)):
            continue
        module = importlib.import_module(info.name) if "__main__" not in info.name else None
        for name in getattr(module, "__all__", ()):
            yield f"{info.name}.{name}"
            if inspect.isclass(cls := getattr(module, name)):
                own = (n for n, value in vars(cls).items() if not n.startswith("_") and inspect.isfunction(value))
                yield from (f"{info.name}.{name}.{method}" for method in own if not _inherits(cls, method))


def _inherits(cls: type, method: str) -> bool:
    """Whether a method has its docstring from a base of the class."""
    definitions = [vars(base)[method] for base in cls.__mro__ if method in vars(base)]
    return not definitions[0].__doc__ and any(definition.__doc__ for definition in definitions[1:])


def main() -> int:
    """Print what is wrong, and return the exit status."""
    faults = [
        f"{result['file']}:{result['file_line']}: {name.removeprefix('agglearn.')}: {code} {text}"
        for name in public_names(sys.argv[1:])
        for result in [validate(name)]
        for code, text in result["errors"]
        if code in CHECKS
    ]
    print("\n".join(faults) or "docstrings: all public names are documented")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
