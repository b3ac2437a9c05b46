"""The folder of numba's compiled functions, named by a digest of every module that mentions numba.

Numba looks only at the file that defines a function, though others are compiled into it. The folder is chosen before
numba is imported, so nothing heavy is imported here.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"  # which numba reads when it is imported
PACKAGE = Path(__file__).resolve().parent
PREFIX = "agglearn-"


def choose(code: Iterable[Path | str] = ()) -> None:
    """Let numba keep what it compiles in the folder for today's code, and for that in further folders of code."""
    name = today(code)
    # A process that was started by one of ours keeps its folder, whose name may have the digest of further code.
    if not Path(os.environ.get(VARIABLE, "")).name.startswith(name):
        os.environ[VARIABLE] = str(base() / name)


def base() -> Path:
    """Folder of the folders of all states: `NUMBA_CACHE_DIR` as the user has set it, else the package's own cache."""
    folder = Path(os.environ.get(VARIABLE) or default_base())
    return folder.parent if folder.name.startswith(PREFIX) else folder


def default_base() -> Path:
    """Folder of the folders by default: in the package, or in the user's cache if the package is read-only."""
    if os.access(PACKAGE, os.W_OK):
        return PACKAGE / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agglearn"


def today(code: Iterable[Path | str] = ()) -> str:
    """Name of the folder. One module of further code leaves it as it is, since numba notices an edit of it, so that nothing of
    the package is compiled twice."""
    further = [path for folder in code for path in compiled_modules(Path(folder).resolve())]
    texts = _texts(compiled_modules(PACKAGE)), _texts(further if len(further) > 1 else ())
    return PREFIX + "-".join(hashlib.sha256(text).hexdigest()[:16] for text in texts if text)


def _texts(paths: Iterable[Path]) -> bytes:
    return b"".join(path.name.encode() + path.read_bytes() for path in paths)


def compiled_modules(folder: Path) -> Iterator[Path]:
    """Modules in a folder, and in the packages that lie in it, that mention numba, sorted."""
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if os.path.isfile(os.path.join(parent, name, "__init__.py")))
        paths = (Path(parent, file) for file in sorted(files) if file.endswith(".py"))
        yield from (path for path in paths if b"numba" in path.read_bytes())
