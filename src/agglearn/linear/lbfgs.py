"""L-BFGS without bounds: SciPy's has them, and with many weights and cheap gradients their bookkeeping takes most of the time."""

from collections import deque
from collections.abc import Callable

import numpy as np

ARMIJO = 1e-4


def lbfgs(
    objective: Callable,
    start: np.ndarray,
    scale: np.ndarray,
    max_iter: int,
    memory=10,
    gtol=1e-9,
    ftol=1e-12,
    shortest=1e-10,
    on_step: Callable | None = None,
) -> np.ndarray:
    """A point of low value (Nocedal and Wright 2006, algorithms 3.1 and 7.4); values never rise.

    Where a line search gives up, the pairs are forgotten, and the next step goes along the scaled gradient.

    Parameters
    ----------
    objective : x ↦ (value, gradient); where the value is infinite, any gradient. start : (n,). scale : (n,) positive, of the order of the Hessian's diagonal.
    max_iter : iterations. memory : pairs of steps and gradient changes kept.
    gtol, ftol : stop at this largest entry of the gradient, or this relative fall of the value.
    shortest : step below which a line search gives up, and without pairs the whole search. on_step : called with every point that is taken after the start.
    """
    x, (value, gradient), pairs = start, objective(start), deque(maxlen=memory)
    for _ in range(max_iter):
        if np.abs(gradient).max() <= gtol:
            break
        direction = -_product(gradient, pairs, scale)
        slope, step = float(direction @ gradient), 1.0
        while step > shortest:
            moved = x + step * direction
            now, then = objective(moved)
            if now <= value + ARMIJO * step * slope:
                break
            step *= 0.5
        else:
            if not pairs:
                break
            pairs.clear()  # the pairs mislead: start anew from the scaled gradient
            continue
        change = then - gradient
        bend = float(change @ (moved - x))
        if bend > 0:
            pairs.append((moved - x, change, bend))
        fell = value - now
        x, value, gradient = moved, now, then
        if on_step:
            on_step(x)
        if fell <= ftol * max(abs(value), 1.0):
            break
    return x


def _product(gradient: np.ndarray, pairs: deque, scale: np.ndarray) -> np.ndarray:
    """The approximate inverse Hessian times the gradient."""
    q, shares = gradient.copy(), []
    for moved, change, bend in reversed(pairs):
        share = float(moved @ q) / bend
        q -= share * change
        shares.append(share)
    q /= scale
    if pairs:
        _, change, bend = pairs[-1]
        q *= bend / float(change @ (change / scale))
    for (moved, change, bend), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float(change @ q) / bend) * moved
    return q
