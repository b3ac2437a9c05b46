"""Newton's method on the dual of the approximate MAP problem, with belief propagation as its only oracle.

This goes beyond the thesis. The dual D(λ) is convex and has one variable per observed cell; its Hessian is M times the
covariance of the observed cells plus a diagonal. A product with it costs one pass up and one down the tree, like belief
propagation itself, so the Newton equation is solved by conjugate gradients without ever building the Hessian. With
its diagonal as preconditioner the eigenvalues lie between about 1/2 and N/2 whatever the potentials, the grid
or M, hence some ten products per step. Bounds on λ (the box of Laplace noise, the pole of Poisson noise)
are kept by projection (Bertsekas 1982) and by a fraction-to-the-boundary rule; a step is taken only where D falls enough.
As long as plain steps of mirror descent, one belief propagation each, do as well, they are taken instead.
"""

import numpy as np

from agglearn.collective.noise import Poisson
from agglearn.collective.problem import Point, Problem
from agglearn.settings import NonNegative, Whole

ARMIJO, TO_BOUNDARY, SHORTEST, MOST_PRODUCTS, DAMPING, LOOSEST = 1e-4, 0.95, 1e-7, 200, 1e-2, 0.3
ROUNDING = 1e-14  # of D, below which its differences say nothing
WORTH = 0.1  # a step of mirror descent costs a fifth of a Newton step, and is taken while it divides the gap by ten


def dual_newton(problem: Problem, start=None, tol: NonNegative = 1e-8, max_iter: Whole = 200, record=None) -> Point:
    """Minimise D; stops when the gap is below tol · max(1, |F|) and exact counts are met.

    start : λ to begin with, from a problem with the same observed cells; default zero.
    record : called with each point.
    """
    zero = np.zeros(problem.size)
    point = problem.at(zero, problem.start) if start is None else problem.at(_inside(problem, start))
    if not np.isfinite(point.dual_value):
        point = problem.at(zero, problem.start)
    before, cheap, damping = np.inf, problem.smooth, 0.0 if problem.smooth else DAMPING
    for _ in range(max_iter):
        if record:
            record(point)
        if problem.reached(point, tol) or problem.size == 0:
            break
        if cheap:
            averaged = problem.at(_inside(problem, 0.5 * (point.dual + problem.gradient(point.z))))
            cheap = averaged.dual_value < point.dual_value and averaged.gap < WORTH * point.gap
            if cheap:
                point = averaged
                continue
        gradient = problem.mean(point.dual) - point.z
        free = ~_held(problem, point.dual, gradient)
        direction = _direction(problem, point, gradient, free, before, damping)
        before = float(np.abs(gradient[free]).sum())
        moved, step = _search(problem, point, gradient, direction)
        damping *= 0.2 if step == 1.0 else 1.0 if step > 0.1 else 10.0
        if moved is None:
            if damping == 0.0 or damping > 1e6:
                break
            damping = max(damping, DAMPING)
            continue
        point = moved
    return point


def _inside(problem: Problem, dual) -> np.ndarray:
    """λ within its box, and off the pole of Poisson noise."""
    dual = np.clip(dual, problem.lower, problem.upper)
    for t in problem.terms:
        if isinstance(t.noise, Poisson):
            dual[t.at] = np.minimum(dual[t.at], t.noise.rate * (1 - 1e-9))
    return dual


def _held(problem: Problem, dual, gradient) -> np.ndarray:
    """Cells at a bound that the gradient pushes against."""
    return ((dual >= problem.upper) & (gradient < 0)) | ((dual <= problem.lower) & (gradient > 0))


def _direction(problem: Problem, point: Point, gradient, free, before, damping) -> np.ndarray:
    """Solve (M·Cov + diag ℓ*″) p = −g on the free cells by preconditioned conjugate gradients (Dembo, Steihaug 1983).

    damping : multiple of the diagonal that is added (Levenberg, Marquardt), where ℓ*″ is zero and the rest is singular.
    """
    z, curvature = point.z, problem.conjugate_curvature(point.dual)
    curvature = curvature + damping * np.maximum(z + curvature, 1e-9 * problem.M)
    diagonal = z * (1 - np.minimum(z / problem.M, 1.0)) + curvature
    inverse = np.where(free, 1 / np.maximum(diagonal, 1e-12 * problem.M), 0.0)
    residual = np.where(free, -gradient, 0.0)
    size = float(np.abs(residual).sum())
    goal = min(LOOSEST, size / before if 0 < before < np.inf else LOOSEST, np.sqrt(size / problem.M))
    p = np.zeros(problem.size)
    y = inverse * residual
    d, rho = y.copy(), float(residual @ y)
    first = rho
    for _ in range(MOST_PRODUCTS):
        if rho <= goal**2 * first or rho == 0.0:
            break
        product = _times(problem, point, d, curvature)
        product[~free] = 0.0
        bend = float(d @ product)
        if bend <= 0:
            break
        step = rho / bend
        p += step * d
        residual -= step * product
        y = inverse * residual
        rho, old = float(residual @ y), rho
        d = y + (rho / old) * d
    return p if p.any() else inverse * -gradient


def _times(problem: Problem, point: Point, d, curvature) -> np.ndarray:
    """Hessian times d."""
    nodes, edges = problem.spread(d)
    return problem.M * problem.collect(*point.beliefs.covariance_times(nodes, edges)) + curvature * d


def _search(problem: Problem, point: Point, gradient, direction) -> tuple[Point | None, float]:
    """Backtrack along the projected path until D falls by enough. Returns the point, None where D does not fall, and the step.

    Where what a step promises drowns in the rounding of D, it is enough that the gap shrinks.
    """
    step = 1.0
    while step > SHORTEST:
        dual = point.dual + step * direction
        for t in problem.terms:
            if isinstance(t.noise, Poisson):
                room = t.noise.rate - point.dual[t.at]
                dual[t.at] = np.minimum(dual[t.at], point.dual[t.at] + TO_BOUNDARY * room)
        dual = np.clip(dual, problem.lower, problem.upper)
        moved = problem.at(dual)
        promised = float(gradient @ (dual - point.dual))
        drowned = abs(promised) <= ROUNDING * max(abs(point.dual_value), 1.0)
        enough = moved.gap < point.gap if drowned else moved.dual_value <= point.dual_value + ARMIJO * promised
        if enough and np.isfinite(moved.dual_value):
            return moved, step
        step *= 0.5
    return None, 0.0
