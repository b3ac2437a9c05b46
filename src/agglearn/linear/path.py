"""The path of a penalty λ from strong to weak, on which a held-out score chooses."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agglearn.progress import track


class PathFit(NamedTuple):
    """A fit on the path: its λ, its held-out score (larger is better) and its solution."""

    l2: float
    score: float
    solution: Any


def fit_path(
    l2s: Iterable[float],
    solve: Callable[[float, Any], Any],
    score: Callable[[Any], float],
    previous: PathFit | None = None,
    stop: bool = True,
) -> list[PathFit]:
    """Return the fits for values of λ, in order. Each fit starts from the solution of the last, the first from that of `previous`.

    l2s : values of λ in λ‖θ‖², which is added to a sum of losses. solve : (λ, solution to start from or None) →
    solution. score : solution → held-out score, larger is better. previous : fit that the path goes on from. It is not
    returned. stop : whether the first fit with a lower score than the fit before it is the last.
    """
    fits: list[PathFit] = []
    for l2 in track(l2s, "penalties"):
        solution = solve(l2, None if previous is None else previous.solution)
        fits.append(PathFit(l2, score(solution), solution))
        if stop and previous is not None and fits[-1].score < previous.score:
            break
        previous = fits[-1]
    return fits
