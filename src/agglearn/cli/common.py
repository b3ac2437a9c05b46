"""Helpers of several commands: options on how text is read, numbers in options, texts for the terminal."""

import argparse
import contextlib
import math
from collections.abc import Callable
from pathlib import Path

from agglearn.errors import ConfigError

READING = "reading.json"  # beside tables and model: format of the records


def add_reading_options(command: argparse.ArgumentParser, missing: str, separator: str) -> None:
    """Add the options on the format of a file. `missing` and `separator` describe the defaults."""
    command.add_argument(
        "--missing",
        action="append",
        metavar="MARK",
        help=f"spelling of a missing value besides the empty field; may be repeated (default: {missing})",
    )
    add_separator(command, separator)


def add_separator(command: argparse.ArgumentParser, separator: str) -> None:
    command.add_argument(
        "--separator", metavar="S", help=f"between the fields of a CSV; tab for tabs (default: {separator})"
    )


def separator_of(text: str | None) -> str:
    if text is None:
        return ","
    if text not in ("tab", "\\t") and len(text.strip(" ") or text) != 1:
        raise ConfigError(f"--separator: {text!r} is not one character; write for example ';' or tab")
    return text


def reading_of(folder: str) -> dict:
    """Format of the aggregated records. The defaults for tables of another origin."""
    from agglearn.saving import refuse_damaged
    from agglearn.storage import read_json

    if not (Path(folder) / READING).is_file():
        return {"missing": [], "separator": ","}
    with refuse_damaged(folder, "a model"):
        saved = read_json(Path(folder) / READING)
        return {"missing": [str(m) for m in saved["missing"]], "separator": separator_of(saved["separator"])}


def copy_reading(source: str, folder: Path) -> None:
    if (Path(source) / READING).is_file():
        (folder / READING).write_bytes((Path(source) / READING).read_bytes())


def whole_seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def not_negative(text: str) -> float:
    return _number(text, lambda value: value >= 0, "is below 0")


def positive(text: str) -> float:
    return _number(text, lambda value: value > 0, "is not above 0")


def _number(text: str, is_allowed: Callable[[float], bool], fault: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(text)):
            if is_allowed(value):
                return value
            raise argparse.ArgumentTypeError(f"{text!r} {fault}")
    raise argparse.ArgumentTypeError(f"{text!r} is not a number")


def number(n: int, noun: str) -> str:
    """`1 table`, `2 tables`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
