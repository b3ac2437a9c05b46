"""The folder in which numba keeps compiled functions: one for each state of the code that is compiled.

Numba compiles a function again when the file that defines the function changes. It does not look at other files, whose
functions and constants are compiled into it too. So the folder's name is a digest of every module that imports numba, and
of the versions that compile. Imports nothing heavy: every process that imports the package chooses its folder first.
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
PACKAGE = Path(__file__).resolve().parent
COMPILES = re.compile(rb"^[ \t]*(?:from|import) (?:numba|llvmlite)\b", re.M)
COMPILERS = ("numba", "llvmlite", "numpy")
NAME = re.compile(r"agglearn-[0-9a-f]{16}(-[0-9a-f]{16})?")


def choose(code: Iterable[Path | str] = ()) -> Path:
    """Let numba keep what it compiles in the folder for today's code, and return that folder.

    Parameters
    ----------
    code : iterable of paths
        Folders with further modules, as under `code:` in the configuration.
    """
    given, name = Path(os.environ.get(VARIABLE, "")), today(code)
    # A process that was started by one of ours keeps its folder.
    folder = given if given.name.startswith(name) else base() / name
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it read the variable when it was imported
        sys.modules["numba"].config.CACHE_DIR = str(folder)
    return folder


def base() -> Path:
    """Folder of the folders of all states: `NUMBA_CACHE_DIR`, else the package's own cache."""
    given = Path(os.environ.get(VARIABLE) or default_base())
    return given.parent if NAME.fullmatch(given.name) else given


def default_base() -> Path:
    """Folder of the folders by default: in the package, or in the user's cache if the package is read-only."""
    if os.access(PACKAGE, os.W_OK):
        return PACKAGE / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agglearn"


def today(code: Iterable[Path | str] = ()) -> str:
    """Name of the folder for today's code."""
    versions = [platform.python_implementation(), platform.python_version(), *map(_version, COMPILERS)]
    name = f"agglearn-{_digest([PACKAGE], versions)}"
    folders = [folder for folder in (Path(f).resolve() for f in code) if any(compiled_modules(folder))]
    return f"{name}-{_digest(folders, [])}" if folders else name


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _digest(folders: Iterable[Path], words: Iterable[str]) -> str:
    hasher = hashlib.sha256("\n".join(words).encode())
    for folder in folders:
        for path in compiled_modules(folder):
            text = path.read_bytes()
            hasher.update(f"{path.relative_to(folder)} {len(text)}\n".encode() + text)
    return hasher.hexdigest()[:16]


def compiled_modules(folder: Path) -> Iterator[Path]:
    """Modules in a folder, and in the packages that lie in it, that import numba or llvmlite, sorted."""
    for parent, names, files in os.walk(folder):
        names[:] = sorted(n for n in names if os.path.isfile(os.path.join(parent, n, "__init__.py")))
        for file in sorted(f for f in files if f.endswith(".py")):
            with open(os.path.join(parent, file), "rb") as stream:
                text = stream.read()
            # The plain words first: every process reads all modules, and the pattern alone takes most of the time.
            if (b"numba" in text or b"llvmlite" in text) and COMPILES.search(text):
                yield Path(parent, file)
