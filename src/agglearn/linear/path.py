"""Path of a penalty λ from strong to weak, on which a held-out score chooses."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agglearn.progress import track


class PathFit(NamedTuple):
    """λ, held-out score (larger is better) and solution."""

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
    """Fits along λ, which go on from `previous`. With `stop` the first score lower than the one before ends it."""
    fits: list[PathFit] = []
    for l2 in track(l2s, "penalties"):
        solution = solve(l2, None if previous is None else previous.solution)
        fits.append(PathFit(l2, score(solution), solution))
        if stop and previous is not None and fits[-1].score < previous.score:
            break
        previous = fits[-1]
    return fits
