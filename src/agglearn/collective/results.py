"""What inference gives, and how its iterates are recorded."""

import contextlib
import time
from dataclasses import dataclass, field

import numpy as np

from agglearn.collective.problem import Point, Problem


@dataclass
class Inference:
    """Tables of a population, given what was observed.

    Attributes
    ----------
    edge_tables : one (L_i, L_j) array per edge. node_tables : one (L_i,) array per node.
    objective : F of eq. 2.7 at the tables; NaN for methods that do not minimise it.
    trace : (iteration, seconds, objective, violation) per iteration where asked for. The clock stands still while the
        objective and the violation of eq. 2.5 are computed.
    gap : bound on F − F* where the method has one, else NaN.
    converged : whether the tolerance was reached.
    details : what else the method tells.
    """

    edge_tables: list[np.ndarray]
    node_tables: list[np.ndarray]
    objective: float
    trace: list[tuple[int, float, float, float]] = field(default_factory=list)
    gap: float = np.nan
    converged: bool = True
    details: dict = field(default_factory=dict)


class Recorder:
    """Collects the trace of a method; its own time does not count.

    The first 20 iterates are recorded, then every one that is 5 % further, and the last.
    """

    def __init__(self, problem: Problem):
        self.problem, self.rows, self.begin, self.out = problem, [], time.perf_counter(), 0.0
        self.seen, self.due, self.last = 0, 0, None

    @contextlib.contextmanager
    def paused(self):
        since = time.perf_counter()
        yield
        self.out += time.perf_counter() - since

    def __call__(self, at) -> None:
        """at : a Point, or edge tables as they are."""
        seconds = time.perf_counter() - self.begin - self.out
        with self.paused():
            self.last = self.seen, seconds, at
            if self.seen >= self.due:
                self._keep()
            self.seen += 1

    def finish(self) -> list[tuple[int, float, float, float]]:
        """All rows, the last iterate among them."""
        if self.last and (not self.rows or self.rows[-1][0] < self.last[0]):
            self._keep()
        return self.rows

    def _keep(self) -> None:
        iteration, seconds, at = self.last
        self.due = max(iteration + 1, int(1.05 * iteration)) if iteration >= 20 else iteration + 1
        if isinstance(at, Point):
            tables, objective = self.problem.tables(at.beliefs)[0], float(at.objective)
        else:
            tables, objective = at, self.problem.objective_of(at)
        self.rows.append((iteration, seconds, objective, self.problem.model.violation(tables, self.problem.M)))
