"""Flow counts: noisy tables of the individuals at places, and of those that move between them (Sun 2019, 2.1.2.1)."""

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_frame, numbers, present
from agglearn.errors import ConfigError, DataError
from agglearn.observations.base import NoiseSpec, Observation
from agglearn.text import list_some

NOISES = ("exact", "poisson", "gaussian", "laplace")
Graph: TypeAlias = Iterable[tuple[Hashable, Hashable]]
KINDS: tuple[Literal["node", "edge"], ...] = ("node", "edge")


@dataclass(frozen=True)
class FlowCounts(Observation):
    """Counts of a population at nodes (places at a time) and along edges (movements between two of them).

    DataError for no counts, negative ones under Poisson or exact noise, and exact totals that differ between nodes.

    Parameters
    ----------
    node_counts, edge_counts : ndarray or None
        (N, L) or repeated (R, N, L), and (E, L, L) or (R, E, L, L) in the order of the model's edges, or one array per
        node or edge. NaN where an entry was not observed.
    noise, rate, scale : str, float, float
        `exact`, `poisson` (detection rate), `gaussian` (scale σ) or `laplace` (scale b): of a count given the true one.
    population_size, context, privacy : float or None, dict[str, ndarray], NoiseSpec or None
        M, where it is public, public arrays by name, and the guarantee of noise that was added for privacy.
    """

    node_counts: np.ndarray | None = None
    edge_counts: np.ndarray | None = None
    noise: str = "poisson"
    rate: float = 1.0
    scale: float = 1.0
    population_size: float | None = None
    context: dict[str, np.ndarray] = field(default_factory=dict)
    privacy: NoiseSpec | None = None

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            raise DataError(f"noise: {self.noise!r} is not known; use {', '.join(NOISES)}")
        if self.node_counts is None and self.edge_counts is None:
            raise DataError("there are no counts: give node_counts, edge_counts or both")
        object.__setattr__(self, "node_counts", _stack(self.node_counts, 2, "node_counts"))
        object.__setattr__(self, "edge_counts", _stack(self.edge_counts, 3, "edge_counts"))
        if self.noise in ("poisson", "exact"):
            self._refuse_negative()
        if self.noise == "exact":
            self._check_totals()

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, count: str = "count", place: str | None = None, origin: str | None = None,
        destination: str | None = None, time: str | None = None, places: Sequence | None = None,
        times: Sequence | None = None, graph: Graph | None = None, absent: float = np.nan, **options: Any,
    ) -> Self:  # fmt: skip
        """Counts of a data frame. Places and times keep their names: `context["places"]`, `context["times"]`.

        DataError for an absent column, a count that is no number, a cell that two rows count, a place or a time that is
        not listed, and times of unknown order. ConfigError where columns of places or of times are not stated.

        Parameters
        ----------
        frame, count : DataFrame, str
            A row counts those at a place and a time, or those who move between two places. Column of the counts.
        place, origin, destination, time : str or None
            Column of the places, or the two columns of movements, and of the times (of movements: of their start).
        places, times : sequence or None
            All of them, in order. By default those that occur. Between evenly spaced times, steps may be missing.
        graph, absent : iterable of pairs or None, float
            (from, to) of steps that are possible, beside staying: `context["allowed"]`. The count of a cell without a
            row: NaN, not observed, or 0.
        **options
            `noise`, `rate`, `scale`, `population_size`, `privacy`: fields of the class.
        """
        ends = [name for name in (place, origin, destination) if name is not None]
        if len(ends) != (2 if place is None else 1):
            raise ConfigError("from_frame: give place=, or origin= and destination=")
        if place is not None and time is None:
            raise ConfigError("from_frame: counts at places need time=, the column of their times")
        counts, names, steps = read_flows(frame, count, ends, time, places, times, absent)
        context = {"places": names, "times": steps} | ({} if graph is None else {"allowed": read_graph(graph, names)})
        nodes, edges = (counts, None) if place is not None else (None, counts)
        return cls(node_counts=nodes, edge_counts=edges, context=context, **options)

    @property
    def exact_facts(self) -> str:
        counts = [c for c in (self.node_counts, self.edge_counts) if c is not None]
        facts = ["which counts are missing"] * any(np.isnan(c).any() for c in counts)
        facts += [f"the context ({', '.join(self.context)})"] * bool(self.context)
        return " and ".join(facts)

    def repeats(self, kind: Literal["node", "edge"]) -> np.ndarray:
        """(R, N, L) counts of nodes or (R, E, L, L) of edges. R = 0 where there are none.

        Parameters
        ----------
        kind : {'node', 'edge'}
        """
        counts, ndim = (self.node_counts, 3) if kind == "node" else (self.edge_counts, 4)
        if counts is None:
            return np.zeros((0,) * ndim)
        return counts if counts.ndim == ndim else counts[None]

    def _refuse_negative(self) -> None:
        for kind in KINDS:
            counts = self.repeats(kind)
            if (bad := np.argwhere(counts < 0)).size:
                _, number, *cell = bad[0]
                name = f"{kind} {number}, state {', '.join(map(str, cell))}"
                raise DataError(
                    f"{name}: negative count {counts[tuple(bad[0])]:g} under {self.noise} noise; use gaussian or laplace "
                    "noise for counts that noise was added to"
                )

    def _check_totals(self) -> None:
        totals = {} if self.population_size is None else {"the population": self.population_size}
        totals |= {
            f"{kind} {number}": table.sum()
            for kind in KINDS
            for repeat in self.repeats(kind)
            for number, table in enumerate(repeat)
            if table.size and not np.isnan(table).any()
        }
        for name, total in totals.items():
            first = next(iter(totals))
            if abs(total - totals[first]) > 1e-9 * max(1.0, total):
                raise DataError(
                    f"{first} counts {totals[first]:g} in all and {name} counts {total:g}: exact counts of one population "
                    "have the same total everywhere; declare the noise, or mend the table"
                )

    @property
    def digest(self) -> str:
        hasher = hashlib.sha256(type(self).__name__.encode())
        privacy = self.privacy and asdict(self.privacy)
        hasher.update(repr([self.noise, self.rate, self.scale, self.population_size, privacy]).encode())
        arrays = {"node": self.node_counts, "edge": self.edge_counts, **dict(sorted(self.context.items()))}
        for name, values in arrays.items():
            if values is not None:
                hasher.update(repr([name, np.shape(values), str(np.asarray(values).dtype)]).encode())
                hasher.update(np.ascontiguousarray(values).tobytes())
        return hasher.hexdigest()[:16]


def _stack(counts: np.ndarray | Sequence[np.ndarray] | None, ndim: int, name: str) -> np.ndarray | None:
    """One float array. Tables of different sizes are padded with NaN, which means not observed."""
    if counts is None:
        return None
    if isinstance(counts, list | tuple) and len({np.shape(c) for c in counts}) > 1:
        padded = np.full((len(counts), *np.max([np.shape(c) for c in counts], axis=0)), np.nan)
        for table, row in zip(counts, padded, strict=True):
            row[tuple(map(slice, np.shape(table)))] = table
        counts = padded
    counts = np.asarray(counts, float)
    if counts.ndim not in (ndim, ndim + 1):
        raise DataError(f"{name}: needs {ndim} axes, or {ndim + 1} with repeated observations first; got {counts.ndim}")
    if np.isinf(counts).any():
        raise DataError(f"{name}: infinite counts; use NaN for entries that were not observed")
    return counts


@dataclass(frozen=True)
class FlowInstances(Observation):
    """Flow counts of several independent populations under one model, for example one species in three years.

    Parameters
    ----------
    instances : tuple[FlowCounts, ...]
    """

    instances: tuple[FlowCounts, ...]

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, by: str, **options: Any) -> Self:
        """Counts of a data frame, in which the column `by` names the population of a row.

        Parameters
        ----------
        frame, by, **options
            See `FlowCounts.from_frame`. By default the places are those of all populations.
        """
        present([by], frame.columns)
        if options.get("places") is None:
            ends = [options[name] for name in ("place", "origin", "destination") if options.get(name) is not None]
            present(ends, frame.columns)
            options["places"] = sorted(set(frame[ends].stack()), key=str)
        return cls(tuple(FlowCounts.from_frame(rows, **options) for _, rows in frame.groupby(by)))

    @property
    def digest(self) -> str:
        digests = "".join(counts.digest for counts in self.instances)
        return hashlib.sha256(f"{type(self).__name__}{digests}".encode()).hexdigest()[:16]


# -- data frames ------------------------------------------------------------------------------------------------------


def read_flows(
    frame: pd.DataFrame, count: str, ends: Sequence[str], time: str | None, nodes: Sequence | None,
    times: Sequence | None, absent: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Counts (T, L) of one column of places or (E, L, L) of two, and the names of the places and of the times."""
    frame = as_frame(frame)
    present([count, *ends, *([time] if time else [])], frame.columns)
    if frame.empty:
        raise DataError("the frame has no rows; give one row per count")
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
    counts.flat[flat] = numbers(frame[count], "mend them")
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
