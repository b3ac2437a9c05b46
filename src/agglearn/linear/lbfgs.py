"""L-BFGS without bounds. SciPy's has them, which takes most of the time if gradients are cheap and weights many."""

from collections import deque
from collections.abc import Callable

import numpy as np

from agglearn.progress import track

ARMIJO = 1e-4

Pairs = deque[tuple[np.ndarray, np.ndarray, float]]  # steps, changes of the gradient, and their products


def lbfgs(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    scale: np.ndarray,
    max_iter: int,
    memory: int = 10,
    gtol: float = 1e-9,
    ftol: float = 1e-12,
    shortest: float = 1e-10,
    on_step: Callable[[np.ndarray], object] | None = None,
) -> np.ndarray:
    """(n,) point of low value (Nocedal and Wright 2006, algorithms 3.1 and 7.4). Values never rise.

    `scale` (n,) is of the order of the Hessian's diagonal. The search ends at a largest entry `gtol` of the gradient,
    or at a relative decrease `ftol`. A line search gives up at `shortest`. It drops the `memory` of pairs, and without
    pairs the search ends. `on_step` gets every point after the start.
    """
    x, (value, gradient) = start, objective(start)
    pairs: Pairs = deque(maxlen=memory)
    for _ in track(range(max_iter), "L-BFGS"):
        if np.abs(gradient).max() <= gtol:
            break
        direction = -_multiply(gradient, pairs, scale)
        slope, step = float(direction @ gradient), 1.0
        while step > shortest:
            new = x + step * direction
            new_value, new_gradient = objective(new)
            if new_value <= value + ARMIJO * step * slope:
                break
            step *= 0.5
        else:
            if not pairs:
                break
            pairs.clear()  # the pairs mislead: start anew from the scaled gradient
            continue
        change = new_gradient - gradient
        curvature = float(change @ (new - x))
        if curvature > 0:
            pairs.append((new - x, change, curvature))
        decrease = value - new_value
        x, value, gradient = new, new_value, new_gradient
        if on_step:
            on_step(x)
        if decrease <= ftol * max(abs(value), 1.0):
            break
    return x


def _multiply(gradient: np.ndarray, pairs: Pairs, scale: np.ndarray) -> np.ndarray:
    q, factors = gradient.copy(), []
    for step, change, curvature in reversed(pairs):
        factor = float(step @ q) / curvature
        q -= factor * change
        factors.append(factor)
    q /= scale
    if pairs:
        _, change, curvature = pairs[-1]
        q *= curvature / float(change @ (change / scale))
    for (step, change, curvature), factor in zip(pairs, reversed(factors), strict=True):
        q += (factor - float(change @ q) / curvature) * step
    return q
