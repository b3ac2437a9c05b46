"""The maximum-entropy model of small tables, exactly, by enumeration of every (x, y) (Gilotte et al. 2022, eqs. 1, 5).

Training by sampling approximates it.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from agglearn.errors import DataError
from agglearn.linear.sparse_logistic import log_odds
from agglearn.maxent.intervals import Evidence
from agglearn.maxent.model import Pair, PairwiseClassifier
from agglearn.maxent.penalty import Penalty, theta_penalty
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables
from agglearn.progress import steps
from agglearn.settings import NonNegative

MAX_STATES = 1_000_000


@dataclass
class Enumeration:
    index: WeightIndex
    states: np.ndarray  # (S, D) codes
    cells: np.ndarray  # (S, m) 0/1, φ of each state
    d: np.ndarray  # (m,) observed counts
    c: np.ndarray  # (m,) observed label sums
    total: float  # number of records
    intercept: float  # b, log-odds of the label

    @classmethod
    def from_tables(cls, tables: ContingencyTables) -> "Enumeration":
        """DataError if there are too many states."""
        index = WeightIndex.from_tables(tables)
        n_states = int(np.prod(index.sizes.astype(float)))
        if n_states * len(index.rows) > 100 * MAX_STATES:
            raise DataError(f"{n_states} states are too many to enumerate")
        states = np.array(list(itertools.product(*map(range, index.sizes))))
        active = np.zeros((len(states), index.n_modalities), bool)
        np.put_along_axis(active, states + index.offsets, True, axis=1)
        cells = (active[:, index.rows] & active[:, index.columns]).astype(float)
        return cls(index, states, cells, index.d, index.c, tables.total, log_odds(tables.positives, tables.total))

    def _scores(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        without = self.cells @ mu
        return np.column_stack([without, without + self.cells @ theta + self.intercept])

    def log_joint(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return (S, 2) log π(x, y) of eq. 1."""
        scores = self._scores(mu, theta)
        return scores - logsumexp(scores)

    def label_probability(self, theta: np.ndarray) -> np.ndarray:
        return expit(self.cells @ theta + self.intercept)

    def compute_expectations(self, mu: np.ndarray, theta: np.ndarray) -> Pair:
        """Return (m,) E[D] and E[C] on the scale of the records."""
        joint = np.exp(self.log_joint(mu, theta))
        return self.total * joint.sum(axis=1) @ self.cells, self.total * joint[:, 1] @ self.cells

    def objective(
        self, mu: np.ndarray, theta: np.ndarray, l2_mu: float, l2_theta: float | np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the penalised negative log-likelihood, up to a constant, and its gradients (lemma 2)."""
        loss = self.total * logsumexp(self._scores(mu, theta)) - self.d @ mu - self.c @ theta
        d_hat, c_hat = self.compute_expectations(mu, theta)
        penalty = l2_mu * (mu @ mu) + l2_theta * theta @ theta
        return loss + penalty, d_hat - self.d + 2 * l2_mu * mu, c_hat - self.c + 2 * l2_theta * theta

    def optimum(self, l2_mu: float = 1.0, l2_theta: float | np.ndarray = 16.0, start: Pair | None = None) -> Pair:
        """Return (m,) μ* and θ* by L-BFGS, from (μ, θ) or from 0."""
        m = len(self.d)
        first = np.zeros(2 * m) if start is None else np.concatenate(start)

        def both(v: np.ndarray) -> tuple[float, np.ndarray]:
            value, g_mu, g_theta = self.objective(v[:m], v[m:], l2_mu, l2_theta)
            return value / self.total, np.concatenate([g_mu, g_theta]) / self.total

        options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
        with steps("L-BFGS", 20_000) as callback:
            solution = minimize(both, first, jac=True, method="L-BFGS-B", options=options, callback=callback).x
        return solution[:m], solution[m:]


class ExactMaxEntClassifier(PairwiseClassifier):
    """Optimum of the penalised likelihood (Gilotte et al. 2022, eqs. 4 and 5) by enumeration of all states.

    `fit` raises a DataError if there are too many states. `random_state` is not used.

    Parameters
    ----------
    l2_mu, l2_theta, random_state
        As in `MaxEntClassifier`, and so are the attributes `mu_`, `theta_`, `intercept_` and `l2_theta_`.
    """

    observes = ContingencyTables
    l2_mu: NonNegative = 1.0
    l2_theta: Penalty = "moments"

    def _fit(self, observation: ContingencyTables) -> None:
        self.l2_theta_, model = theta_penalty(self.l2_theta, observation), Enumeration.from_tables(observation)
        optimum = model.optimum(self.l2_mu, model.index.spread(*self.l2_theta_))
        self._set_model(model, observation, *optimum)

    def _set_model(self, model: Enumeration, observation: ContingencyTables, mu: np.ndarray, theta: np.ndarray) -> None:
        self._set_encoder(observation.encoder)
        self.mu_, self.theta_, self.intercept_ = model.index.matrix(mu), model.index.matrix(theta), model.intercept
        self._evidence = Evidence.of(model.index, observation, self.accounts_for_noise)
