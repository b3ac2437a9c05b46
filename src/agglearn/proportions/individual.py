"""The oracle that sees every label."""

import numpy as np

from agglearn.linear.softmax import Logistic
from agglearn.observations import LabelledBags
from agglearn.proportions.base import BagClassifier
from agglearn.settings import Count, NonNegative


class IndividualClassifier(BagClassifier):
    """Softmax regression on individual labels (Sun 2019, section 3.5.2.2): what no method for proportions should beat.

    Parameters
    ----------
    l2 : λ in ½λ‖θ‖², against one unit per instance.
    n_bags : learn from the instances of the first so many bags; None for all.
    random_state : not used; there for uniformity.
    """

    observes = LabelledBags

    def __init__(self, l2: NonNegative = 1.0, n_bags: Count | None = None, random_state=None):
        self.l2 = l2
        self.n_bags = n_bags
        self.random_state = random_state

    def _fit(self, observation):
        bags = self._chosen(observation.bags)
        y = observation.y[: len(bags.X)]
        self.classes_ = np.arange(max(observation.bags.counts.shape[1], 2))
        problem = Logistic.from_rows(bags.X, bags.weights, self.l2)
        self.l2_, self.feature_names_in_ = self.l2, list(bags.names)
        self._set(problem.fit(problem.moments(np.eye(len(self.classes_))[y])))
