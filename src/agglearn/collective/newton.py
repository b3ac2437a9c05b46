"""Newton's method on the dual of the approximate MAP problem, with belief propagation as its only oracle.

This goes beyond the thesis. The dual D(λ) is convex and has one variable per observed cell. Its Hessian is M times the covariance
of the observed cells plus a diagonal. A product with it costs one pass up and one down the tree, so conjugate gradients solve
the Newton equation. With its diagonal as preconditioner the eigenvalues lie between about 1/2 and N/2 whatever the potentials,
the grid or M, hence some ten products per step. Bounds on λ (the box of Laplace noise, the pole of Poisson noise) are kept by
projection (Bertsekas 1982) and by a fraction-to-the-boundary rule. A step is taken only if D falls enough. While plain steps of
mirror descent, one belief propagation each, do as well, they are taken instead.
"""

from typing import Annotated

import numpy as np

from agglearn.collective.problem import Point, Problem
from agglearn.collective.results import Recorder
from agglearn.progress import track
from agglearn.settings import NonNegative, Whole

Start = Annotated[np.ndarray | None, "checked where it is used"]
ARMIJO, TO_BOUNDARY, MIN_STEP, MAX_PRODUCTS, DAMPING, MAX_RESIDUAL = 1e-4, 0.95, 1e-7, 200, 1e-2, 0.3
ROUNDING = 1e-14  # of D, below which its differences are rounding errors
CHEAP_FACTOR = 0.1  # mirror descent costs a fifth of a Newton step: it is used while a step divides the gap by ten


def dual_newton(
    problem: Problem,
    start: Start = None,
    tol: NonNegative = 1e-8,
    max_iter: Whole = 200,
    record: Recorder | None = None,
) -> Point:
    """Minimise D until the duality gap is below tol · max(1, |F|) and exact counts are met.

    start : initial λ, from a problem with the same observed cells, by default zero.
    """
    zero = np.zeros(problem.size)
    point = problem.point(zero, problem.start) if start is None else problem.point(_into_bounds(problem, start))
    if not np.isfinite(point.dual_value):
        point = problem.point(zero, problem.start)
    last_residual, cheap, damping = np.inf, problem.smooth, 0.0 if problem.smooth else DAMPING
    for _ in track(range(max_iter), "Newton"):
        if record:
            record(point)
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
    """Solve (M·Cov + diag ℓ*″) p = −g on the free cells by preconditioned conjugate gradients (Dembo, Steihaug 1983).

    damping : multiple of the diagonal that is added (Levenberg, Marquardt), because the matrix is singular if ℓ*″ is zero.
    """
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
    """Backtrack along the projected path until D falls enough. Returns the point (None if D does not fall) and the step size.

    If the predicted fall is below the rounding error of D, the duality gap must shrink instead.
    """
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
