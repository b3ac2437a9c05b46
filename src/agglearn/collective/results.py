"""What inference returns, and the trace of its iterates."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from agglearn.collective.problem import Point, Problem


class Iterate(NamedTuple):
    iteration: int  # 0 is the start
    seconds: float  # since the start, without those of the trace itself
    objective: float  # F of eq. 2.7
    violation: float  # L1 distance from the local polytope (eq. 2.5)


@dataclass
class Inference:
    """Tables of a population, given what was observed.

    Parameters
    ----------
    edge_tables, node_tables : list of ndarray
        An (L_i, L_j) table per edge, and an (L_i,) table per node.
    objective, trace : float, list of Iterate
        F of eq. 2.7, NaN for methods that do not minimise it. Iterates, if requested. Their own cost is not timed.
    gap, converged : float, bool
        Bound on F − F*, NaN if the method has none, and whether the tolerance was reached.
    details : dict
        Further results of the method.
    """

    edge_tables: list[np.ndarray]
    node_tables: list[np.ndarray]
    objective: float
    trace: list[Iterate] = field(default_factory=list)
    gap: float = np.nan
    converged: bool = True
    details: dict = field(default_factory=dict)


def inference_of(problem: Problem, edge_tables: list[np.ndarray], **results: Any) -> Inference:
    """Inference with the node tables and the objective of edge tables."""
    nodes = problem.model.node_tables_of(edge_tables)
    return Inference(edge_tables, nodes, problem.objective_of(edge_tables, nodes), **results)


class Recorder:
    """Trace of a method: 20 iterates, then each 5 % above the last one's number, and the final one, off the clock."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.started, self.seconds_paused = problem, time.perf_counter(), 0.0
        self.rows: list[Iterate] = []
        self.count, self.due = 0, 0
        self.last: tuple[int, float, Point | list[np.ndarray]] | None = None

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds_paused += time.perf_counter() - started

    def seconds(self) -> float:
        return time.perf_counter() - self.started - self.seconds_paused

    def __call__(self, result: Point | list[np.ndarray]) -> None:
        seconds = self.seconds()
        with self.pause():
            self.last = self.count, seconds, result
            if self.count >= self.due:
                self._append(*self.last)
            self.count += 1

    def finish(self) -> list[Iterate]:
        """All recorded iterates, the final one included."""
        if self.last and (not self.rows or self.rows[-1].iteration < self.last[0]):
            self._append(*self.last)
        return self.rows

    def _append(self, iteration: int, seconds: float, result: Point | list[np.ndarray]) -> None:
        self.due = max(iteration + 1, int(1.05 * iteration)) if iteration >= 20 else iteration + 1
        if isinstance(result, Point):
            tables, objective = self.problem.tables(result.beliefs)[0], float(result.objective)
        else:
            tables, objective = result, self.problem.objective_of(result)
        violation = self.problem.model.violation(tables, self.problem.M)
        self.rows.append(Iterate(iteration, seconds, objective, violation))
