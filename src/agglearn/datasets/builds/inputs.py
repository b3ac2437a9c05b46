"""Inputs of a rule: paths and streams read alike."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from agglearn.errors import DataError

Source = Path | BinaryIO
Inputs = Mapping[str, Source]


def only(inputs: Inputs) -> Source:
    """The input of a rule that takes one, whatever its name."""
    if len(inputs) != 1:
        raise DataError(f"the rule takes one input, the route names {len(inputs)}: {', '.join(inputs)}")
    return next(iter(inputs.values()))


@contextlib.contextmanager
def open_input(source: Source) -> Iterator[BinaryIO]:
    """A binary stream of an input. A path is closed afterwards, a stream is left to its owner."""
    if isinstance(source, Path):
        with open(source, "rb") as stream:
            yield stream
    else:
        yield source


def name_of(source: Source) -> str:
    """What messages call an input."""
    return str(source if isinstance(source, Path) else getattr(source, "name", "the stream"))
