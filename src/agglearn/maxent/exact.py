"""The maximum-entropy model of small tables, exactly. Training by sampling approximates it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agglearn.maxent.enumeration import Enumeration
from agglearn.maxent.model import PairwiseClassifier
from agglearn.maxent.penalty import theta_penalty
from agglearn.observations import ContingencyTables
from agglearn.settings import NonNegative


@dataclass(eq=False, repr=False)
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
    l2_theta: Literal["moments"] | NonNegative = "moments"

    def _fit(self, observation: ContingencyTables) -> None:
        self.l2_theta_, model = theta_penalty(self.l2_theta, observation), Enumeration.from_tables(observation)
        self._set_model(model, observation, *model.optimum(self.l2_mu, self.l2_theta_))

    def _set_model(self, model: Enumeration, observation: ContingencyTables, mu: np.ndarray, theta: np.ndarray) -> None:
        self._set_encoder(observation.encoder)
        self.mu_, self.theta_, self.intercept_ = model.index.matrix(mu), model.index.matrix(theta), model.intercept
