"""Flow counts in a data frame: a row counts those at a place and a time, or those who move between two places."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_frame, numbers, present
from agglearn.errors import DataError
from agglearn.text import list_some

Graph: TypeAlias = Iterable[tuple[Hashable, Hashable]]


def read_flows(
    frame: pd.DataFrame, count: str, ends: Sequence[str], time: str | None, nodes: Sequence | None,
    times: Sequence | None, absent: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Counts (T, L) of one column of places or (E, L, L) of two, and the names of the places and of the times."""
    frame = as_frame(frame)
    present([count, *ends, *([time] if time else [])], frame.columns)
    if frame.empty:
        raise DataError("the frame has no rows; give one row per count")
    values = numbers(frame[count], "mend them")
    if nodes is None:
        nodes = sorted({node for end in ends for node in frame[end].dropna()}, key=str)
    if times is None:
        times = [0] if time is None else _order(frame[time])
    axes = [(time, times)] * (time is not None) + [(end, nodes) for end in ends]
    flat = np.ravel_multi_index(
        [_positions(frame[name], listed, name) for name, listed in axes], [len(listed) for _, listed in axes]
    )
    if (again := pd.Series(flat).duplicated().to_numpy()).any():
        cell = frame.iloc[int(np.argmax(again))][[name for name, _ in axes]].tolist()
        raise DataError(f"{', '.join(map(str, cell))}: two rows count this; add them up, or leave one out")
    counts = np.full((len(times), *[len(nodes)] * len(ends)), float(absent))
    counts.flat[flat] = values
    return counts, np.array([str(node) for node in nodes]), np.array([str(step) for step in times])


def _positions(column: pd.Series, listed: Sequence, name: str | None) -> np.ndarray:
    if len(set(listed)) < len(listed):
        raise DataError(f"{name}: a value is listed twice among {list_some(listed)}")
    positions = pd.Index(list(listed)).get_indexer(column)
    if (unknown := positions < 0).any():
        row = int(np.argmax(unknown))
        raise DataError(f"column {name!r}: row {row + 1} holds {column.iloc[row]!r}; listed are {list_some(listed)}")
    return positions


def _order(column: pd.Series) -> Sequence:
    """The times in order. A time that is absent between evenly spaced ones is a step without counts."""
    if column.isna().any():
        raise DataError(f"column {column.name!r}: row {int(np.argmax(column.isna())) + 1} has no time")
    if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)):
        raise DataError(f"column {column.name!r}: the order of its texts is not known; list them in order as times=[…]")
    steps = np.sort(column.unique())
    gaps = np.diff(steps)
    if not len(gaps) or (gaps.dtype.kind == "f" and (steps % 1).any()) or (gaps % gaps.min()).astype(float).any():
        return list(steps)
    n_steps = int((steps[-1] - steps[0]) / gaps.min()) + 1
    if n_steps > 2 * len(steps):
        advice = "have counts; list all as times=[…]"
        raise DataError(f"column {column.name!r}: only {len(steps)} of {n_steps} evenly spaced times {advice}")
    return [steps[0] + k * gaps.min() for k in range(n_steps)]


def read_graph(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """(L, L) which steps are possible. Everybody may stay."""
    allowed = np.eye(len(nodes), dtype=bool)
    for pair in graph:
        ends = [np.flatnonzero(nodes == str(end)) for end in pair]
        if len(ends) != 2 or not all(len(end) for end in ends):
            raise DataError(f"graph: {pair!r} is no pair of places; these are {list_some(nodes)}")
        allowed[ends[0], ends[1]] = True
    return allowed
