"""Newton's method on the convex dual D(λ) of the approximate MAP problem. It goes beyond the thesis."""

from typing import Annotated

import numpy as np

from agglearn.collective.problem import Point, Problem
from agglearn.progress import track
from agglearn.settings import NonNegative, Whole

Start = Annotated[np.ndarray | None, "checked where it is used"]
ARMIJO, TO_BOUNDARY, MIN_STEP, MAX_PRODUCTS, DAMPING, MAX_RESIDUAL = 1e-4, 0.95, 1e-7, 200, 1e-2, 0.3
ROUNDING = 1e-14  # of D, below which its differences are rounding errors
CHEAP_FACTOR = 0.1  # mirror descent costs a fifth of a Newton step: it is used while a step divides the gap by ten


def dual_newton(problem: Problem, start: Start = None, tol: NonNegative = 1e-8, max_iter: Whole = 200) -> Point:
    """Minimise D from λ = `start`, by default 0, until the gap is below tol · max(1, |F|) and exact counts are met."""
    zero = np.zeros(problem.size)
    point = problem.point(zero, problem.start) if start is None else problem.point(_into_bounds(problem, start))
    if not np.isfinite(point.dual_value):
        point = problem.point(zero, problem.start)
    last_residual, cheap, damping = np.inf, problem.smooth, 0.0 if problem.smooth else DAMPING
    for _ in track(range(max_iter), "Newton"):
        problem.record(point)
        if problem.is_solved(point, tol) or problem.size == 0:
            break
        if cheap:
            averaged = problem.point(_into_bounds(problem, 0.5 * (point.dual + problem.gradient(point.z))))
            falls = averaged.dual_value < point.dual_value
            cheap = falls and averaged.duality_gap < CHEAP_FACTOR * point.duality_gap
            if cheap:
                point = averaged
                continue
        gradient = problem.mean(point.dual) - point.z
        # at a bound, and the gradient pushes outwards
        active = ((point.dual >= problem.upper) & (gradient < 0)) | ((point.dual <= problem.lower) & (gradient > 0))
        direction = _newton_direction(problem, point, gradient, ~active, last_residual, damping)
        last_residual = float(np.abs(gradient[~active]).sum())
        new, step_size = _line_search(problem, point, gradient, direction)
        damping *= 0.2 if step_size == 1.0 else 1.0 if step_size > 0.1 else 10.0
        if new is not None:
            point = new
        elif damping == 0.0 or damping > 1e6:
            break
        else:
            damping = max(damping, DAMPING)
    return point


def _into_bounds(problem: Problem, dual: np.ndarray) -> np.ndarray:
    """λ clipped to its box, and below the pole of Poisson noise."""
    return np.minimum(np.clip(dual, problem.lower, problem.upper), problem.poles * (1 - 1e-9))


def _newton_direction(
    problem: Problem, point: Point, gradient: np.ndarray, free: np.ndarray, last_residual: float, damping: float
) -> np.ndarray:
    """Solve (M·Cov + diag ℓ*″) p = −g on the free cells by conjugate gradients (Dembo, Steihaug 1983)."""
    z, curvature = point.z, problem.conjugate_curvature(point.dual)
    curvature = curvature + damping * np.maximum(z + curvature, 1e-9 * problem.M)
    diagonal = z * (1 - np.minimum(z / problem.M, 1.0)) + curvature
    inverse = np.where(free, 1 / np.maximum(diagonal, 1e-12 * problem.M), 0.0)
    residual = np.where(free, -gradient, 0.0)
    size = float(np.abs(residual).sum())
    progress = size / last_residual if 0 < last_residual < np.inf else MAX_RESIDUAL
    goal = min(MAX_RESIDUAL, progress, np.sqrt(size / problem.M))
    p = np.zeros(problem.size)
    y = inverse * residual
    d, rho = y.copy(), float(residual @ y)
    first = rho
    for _ in range(MAX_PRODUCTS):
        if rho <= goal**2 * first or rho == 0.0:
            break
        covariances = point.beliefs.covariance_product(*problem.spread(d))
        product = problem.M * problem.collect(*covariances) + curvature * d
        product[~free] = 0.0
        d_curvature = float(d @ product)
        if d_curvature <= 0:
            break
        step_size = rho / d_curvature
        p += step_size * d
        residual -= step_size * product
        y = inverse * residual
        rho, old = float(residual @ y), rho
        d = y + (rho / old) * d
    return p if p.any() else inverse * -gradient


def _line_search(
    problem: Problem, point: Point, gradient: np.ndarray, direction: np.ndarray
) -> tuple[Point | None, float]:
    """Point on the projected path where D, or below its rounding error the gap, falls (else None), and step size."""
    step_size, nearest = 1.0, point.dual + TO_BOUNDARY * (problem.poles - point.dual)
    while step_size > MIN_STEP:
        dual = np.clip(np.minimum(point.dual + step_size * direction, nearest), problem.lower, problem.upper)
        new = problem.point(dual)
        predicted = float(gradient @ (dual - point.dual))
        if abs(predicted) <= ROUNDING * max(abs(point.dual_value), 1.0):
            enough = new.duality_gap < point.duality_gap
        else:
            enough = new.dual_value <= point.dual_value + ARMIJO * predicted
        if enough and np.isfinite(new.dual_value):
            return new, step_size
        step_size *= 0.5
    return None, 0.0
