"""The oracle that learns from every label."""

import numpy as np

from agglearn.linear.softmax import LogisticProblem
from agglearn.observations import LabelledBags
from agglearn.proportions.base import BagClassifier
from agglearn.settings import NonNegative


class IndividualClassifier(BagClassifier):
    """Softmax regression on individual labels (Sun 2019, section 3.5.2.2), an upper bound for methods on proportions.

    Parameters
    ----------
    l2 : float
        λ in λ‖θ‖², added to a sum of one loss per instance.
    random_state, n_bags : see `MeanEmbeddingClassifier`
        The seed is not used.
    """

    observes = LabelledBags

    l2: NonNegative = 0.5

    def _fit(self, observation: LabelledBags) -> None:  # type: ignore[override]  # what `observes` names
        bags = self._first_bags(observation.bags)
        y = observation.y[: len(bags.X)]
        self.classes_ = bags.classes if len(bags.classes) > 1 else np.arange(2)
        problem = LogisticProblem.from_rows(bags.X, bags.weights, self.l2)
        self.l2_, self.feature_names_in_ = self.l2, list(bags.names)
        self._set(problem.minimise(problem.moments(np.eye(len(self.classes_))[y]))[0])
