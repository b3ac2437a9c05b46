"""First-order methods for the approximate MAP problem: belief propagation and a rule for the next λ (Sun 2019)."""

from typing import Literal

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.problem import ROUNDING, Point, Problem
from agglearn.collective.results import Inference, inference_of
from agglearn.errors import NotAvailable
from agglearn.progress import track
from agglearn.settings import Count, Damping, NonNegative, Positive

Schedule = Literal["safe", "thesis"]
PERIOD = 4  # steps after which RDA starts its mean anew with half of β
MAX_INVERSE_STEP = 1e12


def nlbp_feasible(problem: Problem, damping: Damping = 0.1, tol: NonNegative = 1e-8, max_iter: Count = 2000) -> Point:
    """Algorithm 2: z ← (1 − α) z + α BP(θ − ∇ℓ(z)), α = `damping`, until the gap and the change of z are small."""
    point = problem.point(np.zeros(problem.size))
    z = point.z.copy()
    averaged = problem.M * problem.start.pairs if problem.recorder else np.empty(0)
    for _ in track(range(max_iter), "rounds"):
        point = problem.point(problem.gradient(z))
        change = float(np.abs(point.z - z).sum())
        z += damping * (point.z - z)
        if problem.recorder:
            with problem.recorder.pause():
                point.beliefs.mix_pairs(averaged, 1 - damping, damping * problem.M)
            problem.record(problem.model.split_edges(averaged))
        if problem.is_solved(point, tol) and change <= 0.01 * np.sqrt(tol) * problem.M:
            break
    return point


def nlbp_naive(problem: Problem, damping: Damping = 0.1, tol: NonNegative = 1e-6, max_iter: Count = 2000) -> Inference:
    """Algorithm 1, messages and tables damped (Heskes 2003), until changes and eq. 2.5 are within tol · M · N."""
    if any(noise.code == kernels.EXACT for noise, _, _ in problem.list_observed()):
        raise NotAvailable("exact counts have no gradient; use method='dual-newton'")
    evidence, model = problem.evidence(), problem.model
    potentials = model.tables[model.table_index].copy()
    z = potentials * (problem.M / potentials.sum(axis=(1, 2), keepdims=True))
    z[model.rooted.order[0]] = 0
    sums = z.sum(axis=2), z.sum(axis=1)
    up, down = np.ones((2, model.n_nodes, model.size))
    state = up, down, potentials, z, *sums
    converged, enough = False, tol * problem.M * model.n_nodes
    for _ in track(range(max_iter), "rounds"):
        last = [s.copy() for s in sums]
        kernels.run_naive_round(
            model.tables, model.table_index, model.rooted, model.degrees, model.states, evidence, problem.M, damping, state
        )  # fmt: skip
        problem.record(model.split_edges(z))
        change = sum(float(np.abs(a - b).sum()) for a, b in zip(sums, last, strict=True))
        if change <= damping * enough and model.violation(model.split_edges(z), problem.M) <= enough:
            converged = True
            break
    result = inference_of(problem, [t.copy() for t in model.split_edges(z)])
    result.converged = converged and bool(np.isfinite(result.objective))
    return result


def bethe_rda(
    problem: Problem,
    beta: NonNegative = 0.0,
    schedule: Schedule = "safe",
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
) -> Point:
    """Algorithm 3 (Vilnis et al. 2015): λ = t / (β + t) times the mean of all gradients so far."""
    safe = schedule == "safe" and problem.smooth
    point = start = problem.point(np.zeros(problem.size))
    total, t = np.zeros(problem.size), 0
    for _ in track(range(max_iter), "steps"):
        t += 1
        total = total + problem.gradient(point.z)
        new = problem.point((total + beta * start.dual) / (beta + t))
        rises = safe and not _is_lower(new, point)
        if rises and beta > MAX_INVERSE_STEP:
            break
        point = point if rises else new
        if _is_done(problem, point, tol):
            break
        if rises or (safe and t >= PERIOD):
            start, total, t = point, np.zeros(problem.size), 0
            beta = max(1.0, 2 * beta) if rises else beta / 2
    return point


def mirror_descent(
    problem: Problem,
    step: Positive = 1.0,
    schedule: Schedule = "safe",
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
) -> Point:
    """Eq. A.2: λ ← (λ + η ∇ℓ(z)) / (1 + η). η is step / √t (`thesis`, Laplace noise), or halved until F falls."""
    safe, step_size = schedule == "safe" and problem.smooth, step
    point = problem.point(np.zeros(problem.size))
    for t in track(range(1, max_iter + 1), "steps"):
        gradient = problem.gradient(point.z)
        step_size = step_size if safe else step / np.sqrt(t)
        new = problem.point((point.dual + step_size * gradient) / (1 + step_size))
        while safe and not _is_lower(new, point):
            step_size /= 2
            if step_size * MAX_INVERSE_STEP < 1:
                return point
            new = problem.point((point.dual + step_size * gradient) / (1 + step_size))
        point, step_size = new, 1.5 * step_size
        if _is_done(problem, point, tol):
            break
    return point


def accelerated_rda(
    problem: Problem,
    beta: NonNegative = 0.0,
    lipschitz: Positive = 1.0,
    tol: NonNegative = 1e-8,
    max_iter: Count = 2000,
) -> Point:
    """Eq. A.4 (after Xiao 2010). Its bound of the loss's curvature doubles from `lipschitz` until the proof holds."""
    point = problem.point(np.zeros(problem.size))
    w, mean = point.z.copy(), np.zeros(problem.size)
    for t in track(range(1, max_iter + 1), "steps"):
        weight, alpha, last = t * (t + 1) / 4, 2 / (t + 1), point
        u = (1 - alpha) * w + alpha * last.z
        gradient = problem.gradient(u)
        mean = (1 - alpha) * mean + alpha * gradient
        loss = problem.loss(np.maximum(u, 1e-300)).sum()
        while True:
            point = problem.point(weight / (weight + beta + lipschitz) * mean)
            new = (1 - alpha) * w + alpha * point.z
            rise = problem.loss(np.maximum(new, 1e-300)).sum() - loss - gradient @ (new - u)
            # Bregman divergence of −H_B − ⟨θ, ·⟩: M times the relative entropy of the beliefs
            divergence = problem.M * (last.beliefs.log_z - point.beliefs.log_z) + (last.dual - point.dual) @ point.z
            if rise <= lipschitz / weight * divergence + 1e-9 * abs(loss) or lipschitz > MAX_INVERSE_STEP:
                break
            lipschitz *= 2
        w = new
        if _is_done(problem, point, tol):
            break
    return point


def _is_lower(new: Point, old: Point) -> bool:
    """Whether F does not rise, up to rounding."""
    return bool(new.objective <= old.objective + ROUNDING * max(1.0, abs(old.objective)))


def _is_done(problem: Problem, point: Point, tol: float) -> bool:
    problem.record(point)
    return problem.is_solved(point, tol)
