"""Inputs of a rule: paths and streams read alike."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from agglearn.errors import DataError

Source = Path | BinaryIO
Inputs = Mapping[str, Source]


def only(inputs: Inputs) -> Source:
    if len(inputs) != 1:
        raise DataError(f"the rule takes one input, the route names {len(inputs)}: {', '.join(inputs)}")
    return next(iter(inputs.values()))


def open_input(source: Source) -> contextlib.AbstractContextManager[BinaryIO]:
    """A path is closed afterwards, a stream is left to its owner."""
    return open(source, "rb") if isinstance(source, Path) else contextlib.nullcontext(source)


def name_of(source: Source) -> str:
    return str(source if isinstance(source, Path) else getattr(source, "name", "the stream"))
