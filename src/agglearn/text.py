"""Words for people."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FORMULA = re.compile(r"[=+\-@\t\r\n'\uff1d\uff0b\uff0d\uff20]")  # first characters, full-width ones too
LONGEST = 200  # characters of a name in a message
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def bytes_text(size: int | None) -> str:
    """A size in bytes with three digits and its unit, as `5.83 MB`, or `unknown`."""
    if size is None:
        return "unknown"
    scaled = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if scaled < 999.5:  # 999.6 would be rounded to 1,000
            return f"{scaled:.3g} {unit}"
        scaled /= 1000
    return f"{scaled:,.3g} TB"


def count_text(n: int, noun: str) -> str:
    """`1 table`, `2,000 tables`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def is_buckets(text: str) -> bool:
    """Whether a text is a number of buckets that values can be hashed into."""
    return text.isdecimal() and len(text) <= 10 and 1 <= int(text) < 1 << 31


def visible(text: object) -> str:
    """A text in which characters that a terminal would obey, or not show, are spelt as in Python's `repr`."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def shorten(text: str) -> str:
    """The text, cut where it is longer than a person reads: a file without line breaks is one name of a column."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def list_some(names: Iterable[object], limit: int = 12) -> str:
    """The first names, each of at most `LONGEST` characters, and how many follow."""
    texts = [visible(shorten(str(name))) for name in names]
    return ", ".join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")


def write_csv(frame: "pd.DataFrame", path: str | Path) -> None:
    """Write a table, with an apostrophe before each text that a spreadsheet would run as a formula.

    A text that begins with an apostrophe gets one too, so a program removes the first one.
    """
    texts = frame.select_dtypes(exclude=["number", "bool"])
    escaped = {name: texts[name].map(_escape, na_action="ignore") for name in texts}
    split = any("\r" in str(text) for name in texts for text in (name, *texts[name].unique()))
    quoting = csv.QUOTE_NONNUMERIC if split else csv.QUOTE_MINIMAL  # which leaves a carriage return without quotes
    frame.assign(**escaped).rename(columns=_escape).to_csv(path, index=False, quoting=quoting)


def _escape(value: object) -> object:
    formula = isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value)
    return f"'{value}" if formula else value
