"""The maximum-entropy model of small tables, exactly: what training by sampling approximates."""

from typing import Literal

import numpy as np
from scipy.special import expit

from agglearn.estimator import RecordClassifier
from agglearn.maxent import kernels
from agglearn.maxent.enumeration import Enumeration
from agglearn.maxent.penalty import theta_penalty
from agglearn.maxent.weight_index import Layout, positions
from agglearn.observations import ContingencyTables
from agglearn.persistence import expect
from agglearn.settings import NonNegative


class ExactMaxEntClassifier(RecordClassifier):
    """Optimum of the penalised likelihood (Gilotte et al. 2022, eqs. 4 and 5) by enumeration of all states.

    Parameters
    ----------
    l2_mu, l2_theta : as in `MaxEntClassifier`.
    random_state : not used; every estimator has it.

    Attributes
    ----------
    mu_, theta_, intercept_, l2_theta_, encoder_, classes_ : as in `MaxEntClassifier`.

    Raises
    ------
    DataError : the features have too many states.
    """

    observes = ContingencyTables

    def __init__(
        self, l2_mu: NonNegative = 1.0, l2_theta: Literal["moments"] | NonNegative = "moments", random_state=None
    ):
        self.l2_mu = l2_mu
        self.l2_theta = l2_theta
        self.random_state = random_state

    def _fit(self, observation):
        model, layout = Enumeration.of(observation), Layout.of(observation)
        self.l2_theta_ = theta_penalty(self.l2_theta, observation)
        mu, theta = model.optimum(self.l2_mu, self.l2_theta_)
        self.mu_, self.theta_ = layout.matrix(mu), layout.matrix(theta)
        self.intercept_, self.encoder_, self.classes_ = model.intercept, observation.encoder, np.array([0, 1])

    def _check_state(self):
        k = int(self.encoder_.sizes.sum())
        expect(self, theta_=("f", (k, k)), mu_=("f", (k, k)), intercept_=float)

    def predict_proba(self, frame) -> np.ndarray:
        """(n, 2) probabilities of both labels."""
        at = positions(self.encoder_, frame)
        kernels.predict_logits(at, self.theta_, self.intercept_, logits := np.empty(len(at)))
        p = expit(logits)
        return np.column_stack([1 - p, p])
