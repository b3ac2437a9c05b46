"""Small models exactly, by enumerating every (x, y): the truth that sampler and trainer are held against.

Same model, parameters and penalty as `MaxEntClassifier` (Gilotte et al. 2022, eq. 1, lemma 2, eq. 5).
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from agglearn.errors import DataError
from agglearn.maxent.weight_index import Layout
from agglearn.observations import ContingencyTables

MOST_STATES = 1_000_000


@dataclass
class Enumeration:
    """Every state of the features, and which cells each one is in.

    Attributes
    ----------
    states : (S, D) codes. cells : (S, m) 0/1, φ of each state. d, c : (m,) observed. total : records.
    intercept : b, log-odds of the label.
    """

    states: np.ndarray
    cells: np.ndarray
    d: np.ndarray
    c: np.ndarray
    total: float
    intercept: float

    @classmethod
    def of(cls, tables: ContingencyTables) -> "Enumeration":
        """All states of the features of these tables; DataError when they are too many."""
        layout = Layout.of(tables)
        n_states = int(np.prod(layout.sizes.astype(float)))
        if n_states * len(layout.rows) > 100 * MOST_STATES:
            raise DataError(f"{n_states} states are too many to enumerate")
        states = np.array(list(itertools.product(*map(range, layout.sizes))))
        at = states + layout.offsets
        active = np.zeros((len(states), layout.n_modalities), bool)
        np.put_along_axis(active, at, True, axis=1)
        cells = (active[:, layout.rows] & active[:, layout.columns]).astype(float)
        rate = tables.positives / tables.total
        return cls(states, cells, layout.d, layout.c, tables.total, float(np.log(rate / (1 - rate))))

    def log_joint(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """(S, 2) log π(x, y) of eq. 1."""
        without = self.cells @ mu
        scores = np.column_stack([without, without + self.cells @ theta + self.intercept])
        return scores - logsumexp(scores)

    def label_probability(self, theta: np.ndarray) -> np.ndarray:
        """(S,) P(Y=1|X) of every state (eq. 3)."""
        return expit(self.cells @ theta + self.intercept)

    def expected(self, mu: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) E[D] and E[C] on the scale of the records."""
        joint = np.exp(self.log_joint(mu, theta))
        return self.total * joint.sum(axis=1) @ self.cells, self.total * joint[:, 1] @ self.cells

    def objective(self, mu, theta, l2_mu: float, l2_theta: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Penalised negative log-likelihood of all records, up to a constant, and its gradients (lemma 2)."""
        without = self.cells @ mu
        scores = np.column_stack([without, without + self.cells @ theta + self.intercept])
        loss = self.total * logsumexp(scores) - self.d @ mu - self.c @ theta
        d_hat, c_hat = self.expected(mu, theta)
        penalty = l2_mu * (mu @ mu) + l2_theta * (theta @ theta)
        return loss + penalty, d_hat - self.d + 2 * l2_mu * mu, c_hat - self.c + 2 * l2_theta * theta

    def optimum(self, l2_mu: float = 1.0, l2_theta: float = 16.0, start=None) -> tuple[np.ndarray, np.ndarray]:
        """(m,) μ* and θ* by L-BFGS, from (μ, θ) or from 0."""
        m = len(self.d)
        first = np.zeros(2 * m) if start is None else np.concatenate(start)

        def both(v):
            value, g_mu, g_theta = self.objective(v[:m], v[m:], l2_mu, l2_theta)
            return value / self.total, np.concatenate([g_mu, g_theta]) / self.total

        options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
        found = minimize(both, first, jac=True, method="L-BFGS-B", options=options).x
        return found[:m], found[m:]
