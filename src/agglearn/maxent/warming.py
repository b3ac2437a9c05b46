"""A problem of four records. Fitting it compiles kernels, or loads them, before times are measured."""

import functools

import pandas as pd

from agglearn.observations import ContingencyTables, Records

FRAME = pd.DataFrame({"a": list("uvuv"), "b": list("xxyy"), "label": [0, 1, 1, 0]})


@functools.cache
def tiny_tables() -> ContingencyTables:
    return ContingencyTables.from_records(FRAME, "label")


@functools.cache
def tiny_records() -> Records:
    return Records.from_records(FRAME, "label")
