"""Parametric laws of an individual's path: a model for parameters, and the M step for tables (Sun 2019, section 2.3.2).

Each maximises Σ n log p over its parameters, n being the tables that the E step found for each instance.
"""

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.lbfgs import lbfgs
from agglearn.collective.model import ChainModel
from agglearn.errors import DataError

SMALLEST = 1e-12  # expected number of an individual's visits


class LogLinearTransitions:
    """p(x_{t+1} = j | x_t = i) ∝ exp(θ · f_t(i, j)), with a known start: the bird migration model.

    Parameters
    ----------
    features : (T−1, L, L, K) per instance. log_initial : (L,) log p(x_1), the same for all.
    """

    def __init__(self, features: list[np.ndarray], log_initial: np.ndarray):
        self.features = [np.ascontiguousarray(f, float) for f in features]
        self.log_initial = np.asarray(log_initial, float)
        if any(f.ndim != 4 or f.shape[1:3] != (len(log_initial),) * 2 for f in self.features):
            raise DataError(f"features: must be (steps, {len(log_initial)}, {len(log_initial)}, K) for every instance")

    @property
    def n_parameters(self) -> int:
        return self.features[0].shape[3]

    def model(self, theta: np.ndarray, instance: int) -> ChainModel:
        """The chain of one instance."""
        scores = self.features[instance] @ theta
        scores -= scores.max(axis=2, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
        tables = list(scores)
        tables[0] = tables[0] + self.log_initial[:, None]
        return ChainModel(tables)

    def maximise(self, theta: np.ndarray, tables: list[list[np.ndarray]]) -> np.ndarray:
        """θ of the largest likelihood, by Newton's method from the present one (concave, few parameters)."""
        weights = [np.array([t.sum(axis=1) for t in n]) for n in tables]
        wanted = sum(np.einsum("tij,tijk->k", np.array(n), f) for n, f in zip(tables, self.features, strict=True))
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

    def _moments(self, theta, weights, wanted):
        """Log-likelihood, gradient and minus the Hessian."""
        total, gradient, hessian = float(theta @ wanted), wanted.copy(), np.zeros((len(theta),) * 2)
        for f, w in zip(self.features, weights, strict=True):
            g, h = np.empty(len(theta)), np.empty((len(theta),) * 2)
            total -= kernels.softmax_moments(f, w, theta, 1e-9 * w.sum(), g, h)
            gradient, hessian = gradient - g, hessian + h
        return total, gradient, hessian


class HomogeneousPotentials:
    """p(x) ∝ φ_1(x_1) Π ψ(x_t, x_{t+1}) φ_T(x_T) with free φ_1, ψ and φ_T, ψ the same at all times: the mobility model.

    θ is (log φ_1, log ψ) in one vector of L + L². φ_T is one: any other is had by ψ(i, j) φ_T(j)/φ_T(i) and
    φ_1(i) φ_T(i) instead, so that the family is the thesis's, without a direction in which inconsistent counts pull for ever.

    Parameters
    ----------
    size : L. n_steps : T. max_iter : L-BFGS iterations of an M step, which starts from the present θ.
    """

    def __init__(self, size: int, n_steps: int, max_iter: int = 10):
        if n_steps < 2:
            raise DataError("n_steps: a path needs at least two steps")
        self.size, self.n_steps, self.max_iter = size, n_steps, max_iter

    @property
    def n_parameters(self) -> int:
        return self.size * (self.size + 1)

    def split(self, theta: np.ndarray):
        """log φ_1 (L,), log ψ (L, L)."""
        return theta[: self.size], theta[self.size :].reshape(self.size, self.size)

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        first, psi = self.split(theta)
        return ChainModel([psi + first[:, None], *[psi] * (self.n_steps - 2)])

    def statistics(self, tables) -> np.ndarray:
        """Sums of tables that θ multiplies."""
        return np.concatenate([np.sum(tables[0], axis=1), np.sum(tables, axis=0).ravel()])

    def maximise(self, theta: np.ndarray, tables) -> np.ndarray:
        """Some steps of L-BFGS up the likelihood of all instances."""
        return self.fit(theta, sum(self.statistics(t) for t in tables), self.max_iter)

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
        return beliefs.log_z, np.concatenate([beliefs.marginals[0], beliefs.pairs().sum(axis=0).ravel()])


class FreeTables:
    """One free table φ(x_1, x_2) shared by all instances: M step in closed form, φ ∝ Σ n."""

    def __init__(self, size: int, smallest: float = 1e-12):
        self.size, self.smallest = size, smallest

    @property
    def n_parameters(self) -> int:
        return self.size**2

    def model(self, theta: np.ndarray, instance: int = 0) -> ChainModel:
        return ChainModel([theta.reshape(self.size, self.size)])

    def maximise(self, theta: np.ndarray, tables) -> np.ndarray:
        total = sum(t[0] for t in tables)
        return np.log(np.maximum(total / total.sum(), self.smallest)).ravel()
