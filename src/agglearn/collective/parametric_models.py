"""Parametric laws of an individual's path: a model for parameters, and the M step for tables (Sun 2019, section 2.3.2).

Each maximises Σ n log p over its parameters, n being the tables that the E step found for each instance, and gives the
gradient of −Σ n log p with the diagonal of its Hessian.

Networks that are not complete have a mask `allowed` (L, L): which state follows which. A forbidden step has no parameter,
and the log-potential −∞.
"""

import numpy as np
from scipy.special import logsumexp

from agglearn.collective import kernels
from agglearn.collective.model import ChainModel
from agglearn.errors import DataError
from agglearn.linear.lbfgs import lbfgs

SMALLEST = 1e-12  # expected number of an individual's visits


class LogLinearTransitions:
    """p(x_{t+1} = j | x_t = i) ∝ exp(θ · f_t(i, j)), with a known start: the bird migration model.

    Parameters
    ----------
    features : (T−1, L, L, K) per instance. log_initial : (L,) log p(x_1), the same for all.
    allowed : (L, L) which steps are possible; default all. The features of the others do not count.
    """

    def __init__(self, features: list[np.ndarray], log_initial: np.ndarray, allowed: np.ndarray | None = None):
        self.log_initial = np.asarray(log_initial, float)
        self.allowed = _mask(allowed, len(self.log_initial))
        self.features = [np.ascontiguousarray(f, float) for f in features]
        if any(f.ndim != 4 or f.shape[1:3] != (len(log_initial),) * 2 for f in self.features):
            raise DataError(f"features: must be (steps, {len(log_initial)}, {len(log_initial)}, K) for every instance")
        if any(not np.isfinite(f[:, self.allowed]).all() for f in self.features):
            raise DataError("features: must be finite; forbid steps by the mask `allowed`")
        if not self.allowed.any(axis=1).all():
            raise DataError(
                f"allowed: no step leaves state {int(np.argmin(self.allowed.any(axis=1)))}; allow it to stay"
            )
        if not self.allowed.all():
            self.features = [np.where(self.allowed[..., None], f, 0.0) for f in self.features]

    @property
    def n_parameters(self) -> int:
        return self.features[0].shape[3]

    def model(self, theta: np.ndarray, instance: int) -> ChainModel:
        """The chain of one instance."""
        scores = np.where(self.allowed, self.features[instance] @ theta, -np.inf)
        scores -= scores.max(axis=2, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
        tables = list(scores)
        tables[0] = tables[0] + self.log_initial[:, None]
        return ChainModel(tables)

    def maximise(self, theta: np.ndarray, tables: list[list[np.ndarray]]) -> np.ndarray:
        """θ of the largest likelihood, by Newton's method from the present one (concave, few parameters)."""
        weights, wanted = self._statistics(tables)
        value, gradient, hessian = self._moments(theta, weights, wanted)
        for _ in range(50):
            step = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(len(theta)), gradient)
            rise, share = float(gradient @ step), 1.0
            if rise <= 1e-9 * max(1.0, abs(value)):
                break
            while share > 1e-6:
                moved = theta + share * step
                new = self._moments(moved, weights, wanted)
                if new[0] >= value + 1e-4 * share * rise:
                    break
                share /= 2
            else:
                break
            theta, (value, gradient, hessian) = moved, new
        return theta

    def gradient(self, theta: np.ndarray, tables: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of −Σ n log p, and the diagonal of its Hessian, both (K,)."""
        _, gradient, hessian = self._moments(theta, *self._statistics(tables))
        return -gradient, np.diag(hessian) + 1e-9 * np.trace(hessian)

    def _statistics(self, tables):
        """Visits of each state that is left, per instance, and the sum of the features of all steps."""
        weights = [np.array([t.sum(axis=1) for t in n]) for n in tables]
        wanted = sum(np.einsum("tij,tijk->k", np.array(n), f) for n, f in zip(tables, self.features, strict=True))
        return weights, wanted

    def _moments(self, theta, weights, wanted):
        """Log-likelihood, gradient and minus the Hessian."""
        total, gradient, hessian = float(theta @ wanted), wanted.copy(), np.zeros((len(theta),) * 2)
        for f, w in zip(self.features, weights, strict=True):
            g, h = np.empty(len(theta)), np.empty((len(theta),) * 2)
            total -= kernels.softmax_moments(f, self.allowed, w, theta, 1e-9 * w.sum(), g, h)
            gradient, hessian = gradient - g, hessian + h
        return total, gradient, hessian


class HomogeneousPotentials:
    """p(x) ∝ φ_1(x_1) Π ψ(x_t, x_{t+1}) φ_T(x_T) with free φ_1, ψ and φ_T, ψ the same at all times: the mobility model.

    θ is log φ_1, then log ψ of the allowed steps row by row: L + L² numbers in a complete network. φ_T is one: any other
    is had by ψ(i, j) φ_T(j)/φ_T(i) and φ_1(i) φ_T(i) instead, so that the family is the thesis's, without a direction in
    which inconsistent counts pull for ever.

    Parameters
    ----------
    size : L. n_steps : T. max_iter : L-BFGS iterations of an M step, which starts from the present θ.
    allowed : (L, L) which steps are possible; default all.
    """

    def __init__(self, size: int, n_steps: int, max_iter: int = 10, allowed: np.ndarray | None = None):
        if n_steps < 2:
            raise DataError("n_steps: a path needs at least two steps")
        self.size, self.n_steps, self.max_iter, self.allowed = size, n_steps, max_iter, _mask(allowed, size)

    @property
    def n_parameters(self) -> int:
        return self.size + int(self.allowed.sum())

    def split(self, theta: np.ndarray):
        """log φ_1 (L,), log ψ (L, L)."""
        psi = np.full((self.size, self.size), -np.inf)
        psi[self.allowed] = theta[self.size :]
        return theta[: self.size], psi

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        first, psi = self.split(theta)
        return ChainModel([psi + first[:, None], *[psi] * (self.n_steps - 2)])

    def statistics(self, tables) -> np.ndarray:
        """Sums of tables that θ multiplies."""
        return np.concatenate([np.sum(tables[0], axis=1), np.sum(tables, axis=0)[self.allowed]])

    def maximise(self, theta: np.ndarray, tables) -> np.ndarray:
        """Some steps of L-BFGS up the likelihood of all instances."""
        return self.fit(theta, sum(self.statistics(t) for t in tables), self.max_iter)

    def gradient(self, theta: np.ndarray, tables) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of −Σ n log p, and nearly the diagonal of its Hessian (the expected counts), one number per parameter."""
        population, (_, expected) = sum(np.sum(t[0]) for t in tables), self._expected(theta)
        wanted = sum(self.statistics(t) for t in tables)
        return population * expected - wanted, population * np.maximum(expected, SMALLEST)

    def fit(self, theta: np.ndarray, statistics: np.ndarray, max_iter: int) -> np.ndarray:
        """θ after L-BFGS on θ·s − log Z, s brought to one individual: φ_1's part adds up to 1, ψ's to T − 1."""
        wanted = statistics.astype(float)
        for part, total in ((slice(0, self.size), 1), (slice(self.size, None), self.n_steps - 1)):
            wanted[part] *= total / wanted[part].sum()
        visits = np.maximum(wanted, self._expected(theta)[1])  # expected ones, nearly their variance
        scale = np.maximum(visits, SMALLEST)
        return lbfgs(lambda at: self._loss(at, wanted), theta, scale, max_iter)

    def _loss(self, theta, wanted):
        log_z, got = self._expected(theta)
        return log_z - float(theta @ wanted), got - wanted

    def _expected(self, theta):
        """log Z, and the expected statistics of one individual."""
        beliefs = self.model(theta)._beliefs
        return beliefs.log_z, np.concatenate([beliefs.marginals[0], beliefs.pairs().sum(axis=0)[self.allowed]])


class FreeTables:
    """One free table φ(x_1, x_2) shared by all instances: M step in closed form, φ ∝ Σ n.

    θ is log φ of the allowed steps, row by row.

    Parameters
    ----------
    size : L. smallest : floor of φ after an M step. allowed : (L, L) which steps are possible; default all.
    """

    def __init__(self, size: int, smallest: float = 1e-12, allowed: np.ndarray | None = None):
        self.size, self.smallest, self.allowed = size, smallest, _mask(allowed, size)

    @property
    def n_parameters(self) -> int:
        return int(self.allowed.sum())

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        table = np.full((self.size, self.size), -np.inf)
        table[self.allowed] = theta
        return ChainModel([table])

    def maximise(self, theta: np.ndarray, tables) -> np.ndarray:
        return self.logarithms(sum(t[0] for t in tables))

    def logarithms(self, total: np.ndarray) -> np.ndarray:
        """θ of the shares of a table of counts."""
        shares = total[self.allowed] / total[self.allowed].sum()
        return np.log(np.maximum(shares, self.smallest))

    def gradient(self, theta: np.ndarray, tables) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of −Σ n log p, and nearly the diagonal of its Hessian, one number per parameter."""
        total, shares = sum(t[0] for t in tables)[self.allowed], np.exp(theta - logsumexp(theta))
        return total.sum() * shares - total, total.sum() * np.maximum(shares, self.smallest)


def _mask(allowed, size: int) -> np.ndarray:
    """(L, L) truth values; DataError for another shape, or where nothing is allowed."""
    mask = np.ones((size, size), bool) if allowed is None else np.asarray(allowed)
    if mask.shape != (size, size) or mask.dtype != bool or not mask.any():
        raise DataError(f"allowed: must be a {size} × {size} table of true and false, with some step allowed")
    return mask
