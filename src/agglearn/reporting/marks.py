"""Marks in the pages of docs/ and config/findings/, which refer a number to its measurement.

A page has `<!-- EXPERIMENT: {measure: M, method: N} -->.42`: a comment that is not rendered, then the number. The
selector is that of a claim and names one row of the experiment's table. Numbers are those of scale default.
"""

import re
from collections.abc import Container, Iterator
from pathlib import Path

import yaml

MARK = re.compile(r"<!--\s*(?P<experiment>\w+):\s*(?P<selector>\{.*?\})\s*-->\s*(?P<number>\S*)")
NUMBER = re.compile(r"[−-]?(?:\d[\d,]*)?\.?\d+")


def pages(base: Path) -> list[Path]:
    """Pages of a project that may bear marks."""
    return [page for folder in ("docs", "config/findings") for page in sorted((base / folder).glob("*.md"))]


def references(page: Path) -> Iterator[tuple[int, str, dict, str]]:
    """(line, experiment, selector, number as it is written) of every marked number of a page."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for mark in MARK.finditer(line):
            written = NUMBER.match(mark["number"])
            yield number, mark["experiment"], yaml.safe_load(mark["selector"]), written.group() if written else ""


def marks(base: Path, experiments: Container[str]) -> list[str]:
    """Every mark on the pages that refers to one of the experiments, with its number, as it is written."""
    every = (mark for page in pages(base) for mark in MARK.finditer(page.read_text()))
    return [mark.group() for mark in every if mark["experiment"] in experiments]
