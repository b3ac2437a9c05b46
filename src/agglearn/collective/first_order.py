"""First-order methods for the approximate MAP problem: each wraps belief propagation and chooses the next λ.

Sun 2019: feasibility-preserving NLBP (Algorithm 2), Bethe-RDA (Algorithm 3, Vilnis et al. 2015), mirror descent (eq. A.2),
accelerated RDA (eqs. A.3 and A.4, after Xiao 2010). Where a loss has no gradient (Laplace noise) they follow a
sub-gradient. What they return is the last belief propagation, which is feasible, with its gap to the optimum.
"""

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np

from agglearn.collective.problem import ROUNDING, Point, Problem
from agglearn.settings import Count, Damping, NonNegative, Positive

Schedule = Literal["safe", "thesis"]
SHORTEST = 4  # steps between two fresh starts of RDA
FLATTEST = 1e12  # inverse of the smallest step


def nlbp_feasible(
    problem: Problem, damping: Damping = 0.1, tol: NonNegative = 1e-8, max_iter: Count = 2000, record=None
) -> Point:
    """z ← (1 − α) z + α BP(θ − ∇ℓ(z)) with α = `damping`; every z is feasible (Algorithm 2).

    Stops when the gap is small and z hardly differs from the result of belief propagation.
    """
    point = problem.at(np.zeros(problem.size))
    z = point.z.copy()
    averaged = problem.M * problem.start.pairs() if record else None
    for _ in range(max_iter):
        point = problem.at(problem.gradient(z))
        moved = float(np.abs(point.z - z).sum())
        z += damping * (point.z - z)
        if record:
            with record.paused():
                point.beliefs.mix_pairs(averaged, 1 - damping, damping * problem.M)
            record(problem.model.split_edges(averaged))
        if problem.reached(point, tol) and moved <= 0.01 * np.sqrt(tol) * problem.M:
            break
    return point


def bethe_rda(
    problem: Problem,
    beta: NonNegative = 0.0,
    schedule: Schedule = "safe",
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
    record=None,
) -> Point:
    """λ = t / (β + t) times the mean of all gradients so far (Algorithm 3).

    schedule : with `thesis`, β is `beta` in every step. The Poisson gradient has no bound, and a large first one stays in
        the mean for ever; with `safe`, the mean starts anew from the present λ, which then has the weight β: with β doubled
        where F would rise, with β halved after max(4, β) steps. Laplace noise, which has no gradient, always takes `thesis`.
    """
    return _last(problem, _rda_points(problem, beta, schedule), tol, max_iter, record)


def _rda_points(problem: Problem, beta: float, schedule: Schedule) -> Iterator[Point]:
    safe = schedule == "safe" and problem.smooth
    point = start = problem.at(np.zeros(problem.size))
    total, t = np.zeros(problem.size), 0
    yield point
    while True:
        t += 1
        total = total + problem.gradient(point.z)
        new = problem.at((total + beta * start.dual) / (beta + t))
        rises = safe and not _falls(new, point)
        if rises and beta > FLATTEST:
            return
        point = point if rises else new
        yield point
        if rises or (safe and t >= max(SHORTEST, beta)):
            start, total, t = point, np.zeros(problem.size), 0
            beta = max(1.0, 2 * beta) if rises else beta / 2


def mirror_descent(
    problem: Problem,
    step: Positive = 1.0,
    schedule: Schedule = "safe",
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
    record=None,
) -> Point:
    """λ ← (λ + η ∇ℓ(z)) / (1 + η) (eq. A.2; ∇φ(z) is −λ there).

    schedule : with `thesis`, η_t = `step` / √t. With `safe`, η starts at `step`, is halved until F does not rise and grows
        by half after each step. Laplace noise, which has no gradient, always takes `thesis`.
    """
    return _last(problem, _mirror_points(problem, step, schedule), tol, max_iter, record)


def _mirror_points(problem: Problem, step: float, schedule: Schedule) -> Iterator[Point]:
    safe, eta = schedule == "safe" and problem.smooth, step
    point = problem.at(np.zeros(problem.size))
    yield point
    for t in itertools.count(1):
        gradient = problem.gradient(point.z)
        eta = eta if safe else step / np.sqrt(t)
        new = problem.at((point.dual + eta * gradient) / (1 + eta))
        while safe and not _falls(new, point):
            eta /= 2
            if eta * FLATTEST < 1:
                return
            new = problem.at((point.dual + eta * gradient) / (1 + eta))
        point, eta = new, 1.5 * eta
        yield point


def _falls(new: Point, old: Point) -> bool:
    """Whether F does not rise, but for rounding."""
    return bool(new.objective <= old.objective + ROUNDING * max(1.0, abs(old.objective)))


def accelerated_rda(
    problem: Problem,
    beta: NonNegative = 0.0,
    lipschitz: Positive = 1.0,
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
    record=None,
) -> Point:
    """Weights t/2 on the gradients, A_t = t(t + 1)/4, λ = A_t / (A_t + β + L′) times their mean (eq. A.4).

    L′ bounds the curvature of the loss relative to that of −H_B. It has no bound for Poisson noise: it starts at `lipschitz`
    and doubles until the step satisfies the inequality that the convergence proof uses.
    """
    return _last(problem, _accelerated_points(problem, beta, lipschitz), tol, max_iter, record)


def _accelerated_points(problem: Problem, beta: float, lipschitz: float) -> Iterator[Point]:
    last = problem.at(np.zeros(problem.size))
    w, mean = last.z.copy(), np.zeros(problem.size)
    yield last
    for t in itertools.count(1):
        weight, share = t * (t + 1) / 4, 2 / (t + 1)
        u = (1 - share) * w + share * last.z
        g = problem.gradient(u)
        mean = (1 - share) * mean + share * g
        loss = problem.loss(np.maximum(u, 1e-300)).sum()
        while True:
            point = problem.at(weight / (weight + beta + lipschitz) * mean)
            new = (1 - share) * w + share * point.z
            rise = problem.loss(np.maximum(new, 1e-300)).sum() - loss - g @ (new - u)
            if rise <= lipschitz / weight * _divergence(problem, point, last) + 1e-9 * abs(loss) or lipschitz > 1e12:
                break
            lipschitz *= 2
        w, last = new, point
        yield point


def _last(problem: Problem, points: Iterator[Point], tol: float, max_iter: int, record) -> Point:
    """The point at which a method is close enough, or stops. The first of `points` is where it starts."""
    point = next(points)
    for point in itertools.islice(points, max_iter):
        if record:
            record(point)
        if problem.reached(point, tol):
            break
    return point


def _divergence(problem: Problem, new: Point, old: Point) -> float:
    """Bregman divergence of −H_B − ⟨θ, ·⟩ between two results of belief propagation: M times their relative entropy."""
    return problem.M * (old.beliefs.log_z - new.beliefs.log_z) + float((old.dual - new.dual) @ new.z)
