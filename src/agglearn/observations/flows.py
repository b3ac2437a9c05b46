"""Flow counts: noisy tables of the individuals at places, and of those that move between them (Sun 2019, 2.1.2.1)."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from agglearn.encoding.columns import present
from agglearn.errors import ConfigError, DataError
from agglearn.observations.base import NoiseSpec, Observation
from agglearn.observations.flow_cells import Graph, read_flows, read_graph

NOISES = ("exact", "poisson", "gaussian", "laplace")
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
        totals = {
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
        if self.population_size is not None and totals and abs(total - self.population_size) > 1e-9 * max(1.0, total):
            stated = f"the population has {self.population_size:g}; give its right size, or declare the noise"
            raise DataError(f"{name} counts {total:g} in all, {stated}")

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
