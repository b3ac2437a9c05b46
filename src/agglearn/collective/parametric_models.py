"""Parametric models of an individual's path, and the M step that maximises Σ n log p (Sun 2019, section 2.3.2)."""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from agglearn.collective import kernels
from agglearn.collective.learning import InstanceTables, ParametricModel
from agglearn.collective.model import ChainModel
from agglearn.collective.tree import Tables
from agglearn.errors import DataError
from agglearn.linear.lbfgs import lbfgs

MIN_VISITS = 1e-12  # expected number of an individual's visits, and fraction of movements in a free table
MIN_STEP = 1e-6  # of Newton's line search
Moments = tuple[float, np.ndarray, np.ndarray]  # log-likelihood, gradient, minus the Hessian


class LogLinearTransitions(ParametricModel):
    """Model of bird migration: p(x_{t+1} = j | x_t = i) ∝ exp(θ · f_t(i, j)), with a known start.

    Parameters
    ----------
    features : list of ndarray of shape (T−1, L, L, K)
        Finite features of each instance. Those of impossible steps are ignored.
    log_initial : ndarray of shape (L,)
        log p(x_1), the same for all instances.
    allowed : ndarray of bool of shape (L, L), optional
        Which steps are possible, at least one from each state. By default all are.
    """

    def __init__(
        self, features: Sequence[np.ndarray], log_initial: np.ndarray, allowed: np.ndarray | None = None
    ) -> None:
        self.log_initial = np.asarray(log_initial, float)
        self.allowed = _check_mask(allowed, len(self.log_initial))
        self.features = [np.ascontiguousarray(f, float) for f in features]
        if any(f.ndim != 4 or f.shape[1:3] != (len(log_initial),) * 2 for f in self.features):
            raise DataError(f"features: must be (steps, {len(log_initial)}, {len(log_initial)}, K) for every instance")
        if any(not np.isfinite(f[:, self.allowed]).all() for f in self.features):
            raise DataError("features: must be finite; forbid steps by the mask `allowed`")
        if not self.allowed.any(axis=1).all():
            state = int(np.argmin(self.allowed.any(axis=1)))
            raise DataError(f"allowed: no step leaves state {state}; allow it to stay")
        self.features = [np.where(self.allowed[..., None], f, 0.0) for f in self.features]

    @property
    def n_parameters(self) -> int:
        return self.features[0].shape[3]

    def model(self, theta: np.ndarray, instance: int) -> ChainModel:
        scores = np.where(self.allowed, self.features[instance] @ theta, -np.inf)
        scores -= scores.max(axis=2, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
        tables = list(scores)
        tables[0] = tables[0] + self.log_initial[:, None]
        return ChainModel(tables)

    def maximise(self, theta: np.ndarray, tables: InstanceTables) -> np.ndarray:
        # Newton's method: the likelihood is concave, with few parameters
        weights, feature_sums = self._statistics(tables)
        value, gradient, hessian = self._moments(theta, weights, feature_sums)
        for _ in range(50):
            direction = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(len(theta)), gradient)
            rise, step_size = float(gradient @ direction), 1.0
            if rise <= 1e-9 * max(1.0, abs(value)):
                break
            while step_size > MIN_STEP:
                new_theta = theta + step_size * direction
                new = self._moments(new_theta, weights, feature_sums)
                if new[0] >= value + 1e-4 * step_size * rise:
                    break
                step_size /= 2
            else:
                break
            theta, (value, gradient, hessian) = new_theta, new
        return theta

    def gradient(self, theta: np.ndarray, tables: InstanceTables) -> tuple[np.ndarray, np.ndarray]:
        _, gradient, hessian = self._moments(theta, *self._statistics(tables))
        return -gradient, np.diag(hessian) + 1e-9 * np.trace(hessian)

    def _statistics(self, tables: InstanceTables) -> tuple[list[np.ndarray], np.ndarray]:
        """(T−1, L) departures from each state, per instance, and the (K,) sum of the features of all steps."""
        weights = [np.array([t.sum(axis=1) for t in n]) for n in tables]
        sums = [np.einsum("tij,tijk->k", np.array(n), f) for n, f in zip(tables, self.features, strict=True)]
        return weights, np.sum(sums, axis=0)

    def _moments(self, theta: np.ndarray, weights: list[np.ndarray], feature_sums: np.ndarray) -> Moments:
        shape = len(theta), len(theta)
        total, gradient, hessian = float(theta @ feature_sums), feature_sums.copy(), np.zeros(shape)
        for f, w in zip(self.features, weights, strict=True):
            g, h = np.empty(len(theta)), np.empty(shape)
            total -= kernels.fill_softmax_moments(f, self.allowed, w, theta, 1e-9 * w.sum(), g, h)
            gradient, hessian = gradient - g, hessian + h
        return total, gradient, hessian


class HomogeneousPotentials(ParametricModel):
    """Model of mobility: p(x) ∝ φ_1(x_1) Π ψ(x_t, x_{t+1}) φ_T(x_T) with free φ_1 and ψ, the same at all times.

    θ is log φ_1, then log ψ of the allowed steps row by row. φ_T is one: any other is equivalent to another φ_1 and ψ.

    Parameters
    ----------
    size, n_steps : int
        Numbers of states, L, and of steps, T, at least two.
    max_iter : int
        L-BFGS iterations of an M step, which starts from the present θ.
    allowed : see `LogLinearTransitions`
    """

    def __init__(self, size: int, n_steps: int, max_iter: int = 10, allowed: np.ndarray | None = None) -> None:
        if n_steps < 2:
            raise DataError("n_steps: a path needs at least two steps")
        self.size, self.n_steps, self.max_iter, self.allowed = size, n_steps, max_iter, _check_mask(allowed, size)

    @property
    def n_parameters(self) -> int:
        return self.size + int(self.allowed.sum())

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        first, psi = theta[: self.size, None], _unmask(theta[self.size :], self.allowed)
        return ChainModel([psi + first, *[psi] * (self.n_steps - 2)])

    def statistics(self, tables: Tables) -> np.ndarray:
        """Return the (K,) sums of the edge tables of one instance that θ multiplies.

        Parameters
        ----------
        tables : sequence of ndarray, or ndarray of shape (T−1, L, L)
        """
        return np.concatenate([np.sum(tables[0], axis=1), np.sum(tables, axis=0)[self.allowed]])

    def maximise(self, theta: np.ndarray, tables: InstanceTables) -> np.ndarray:
        return self.fit(theta, np.sum([self.statistics(t) for t in tables], axis=0), self.max_iter)

    def gradient(self, theta: np.ndarray, tables: InstanceTables) -> tuple[np.ndarray, np.ndarray]:
        # the diagonal is replaced by the expected counts
        population, expected = sum(np.sum(t[0]) for t in tables), self._compute_expectations(theta)[1]
        statistics = np.sum([self.statistics(t) for t in tables], axis=0)
        return population * expected - statistics, population * np.maximum(expected, MIN_VISITS)

    def fit(self, theta: np.ndarray, statistics: np.ndarray, max_iter: int) -> np.ndarray:
        """Return θ after L-BFGS on θ·s − log Z.

        Parameters
        ----------
        theta, statistics, max_iter : ndarray of shape (K,), ndarray of shape (K,), int
            Start, statistics of one or all individuals, which are scaled to one, and maximal number of iterations.
        """
        target = statistics.astype(float)
        for block, total in ((slice(0, self.size), 1), (slice(self.size, None), self.n_steps - 1)):
            target[block] *= total / target[block].sum()
        visits = np.maximum(target, self._compute_expectations(theta)[1])  # expected counts, nearly their variance

        def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
            log_z, expected = self._compute_expectations(x)
            return log_z - float(x @ target), expected - target

        return lbfgs(loss, theta, np.maximum(visits, MIN_VISITS), max_iter)

    def _compute_expectations(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        beliefs = self.model(theta).beliefs
        return beliefs.log_z, np.concatenate([beliefs.marginals[0], beliefs.pairs.sum(axis=0)[self.allowed]])


class FreeTables(ParametricModel):
    """One free table φ(x_1, x_2) shared by all instances. The M step has a closed form, φ ∝ Σ n.

    θ is log φ of the allowed steps, row by row.

    Parameters
    ----------
    size : int
        Number of states, L.
    allowed : see `LogLinearTransitions`
    """

    def __init__(self, size: int, allowed: np.ndarray | None = None) -> None:
        self.allowed = _check_mask(allowed, size)

    @property
    def n_parameters(self) -> int:
        return int(self.allowed.sum())

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        return ChainModel([_unmask(theta, self.allowed)])

    def maximise(self, theta: np.ndarray, tables: InstanceTables) -> np.ndarray:
        return self.log_fractions(np.sum([t[0] for t in tables], axis=0))

    def log_fractions(self, total: np.ndarray) -> np.ndarray:
        """Return θ of the fractions of a table of counts.

        Parameters
        ----------
        total : ndarray of shape (L, L)
        """
        fractions = total[self.allowed] / total[self.allowed].sum()
        return np.log(np.maximum(fractions, MIN_VISITS))

    def gradient(self, theta: np.ndarray, tables: InstanceTables) -> tuple[np.ndarray, np.ndarray]:
        total, fractions = np.sum([t[0] for t in tables], axis=0)[self.allowed], np.exp(theta - logsumexp(theta))
        return total.sum() * fractions - total, total.sum() * np.maximum(fractions, MIN_VISITS)


def _unmask(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """(L, L) log-potentials, −∞ where a step is forbidden."""
    table = np.full(allowed.shape, -np.inf)
    table[allowed] = values
    return table


def _check_mask(allowed: np.ndarray | None, size: int) -> np.ndarray:
    """(L, L) truth values. Raises DataError for another shape, or if nothing is allowed."""
    mask = np.ones((size, size), bool) if allowed is None else np.asarray(allowed)
    if mask.shape != (size, size) or mask.dtype != bool or not mask.any():
        raise DataError(f"allowed: must be a {size} × {size} table of true and false, with some step allowed")
    return mask
