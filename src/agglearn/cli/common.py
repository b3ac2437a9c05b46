"""What the commands share: how text is read, numbers in options, words for the terminal."""

import argparse
import contextlib
import math
from pathlib import Path

from agglearn.errors import ConfigError, DataError

READING = "reading.json"  # beside tables and model: how the records were written
SHOWN = 12  # features named on the terminal


def reading_options(command, missing: str, separator: str) -> None:
    """Options on how a file is written; the texts say what holds without them."""
    command.add_argument(
        "--missing",
        action="append",
        metavar="MARK",
        help=f"spelling of a missing value besides the empty field; may be repeated (default: {missing})",
    )
    command.add_argument(
        "--separator", metavar="S", help=f"between the fields of a CSV; tab for tabs (default: {separator})"
    )


def separator_of(given: str | None) -> str:
    """The separator; ConfigError for what none can be."""
    if given is None:
        return ","
    if given not in ("tab", "\\t") and len(given.strip(" ") or given) != 1:
        raise ConfigError(f"--separator: {given!r} is not one character; write for example ';' or tab")
    return given


@contextlib.contextmanager
def say_what_to_do(data, command: str):
    """Errors of the library in the words of the command line."""
    from agglearn.encoding.columns import NotANumber

    try:
        yield
    except NotANumber as error:
        mark = f"declare the text as missing (--missing {str(error.value)!r})"
        if command == "aggregate":
            todo = f"{mark}, or the column as categorical (--categorical {error.column!r})"
        else:
            todo = f"mend the rows, or {mark}"
        raise DataError(f"{error.found}; {todo}") from None


def reading_of(folder) -> dict:
    """How the aggregated records were written; the defaults for tables that were not made here."""
    from agglearn.observations.base import reading
    from agglearn.storage import read_json

    known = {"missing": [], "separator": ","}
    if (Path(folder) / READING).is_file():
        with reading(folder, "a model"):
            found = read_json(Path(folder) / READING)
            known = {"missing": [str(m) for m in found["missing"]], "separator": separator_of(found["separator"])}
    return known


def keep_reading(source, folder: Path) -> None:
    """Hand on how the records were written, where it is known."""
    if (Path(source) / READING).is_file():
        (folder / READING).write_bytes((Path(source) / READING).read_bytes())


def whole_seed(text: str) -> int:
    """A seed from an option: a whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def finite(text: str) -> float:
    """A number from an option, not NaN and not infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def number(n: int, what: str) -> str:
    """`1 table`, `2 tables`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def some(names, most: int = SHOWN) -> str:
    """The first names and how many more there are."""
    names = [str(n) for n in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
