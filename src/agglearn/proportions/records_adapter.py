"""Learners of bags on records: raw features in, the same predictions as any other classifier of records out."""

import numpy as np
from sklearn.base import clone

from agglearn.estimator import RecordClassifier
from agglearn.observations import CountedBags
from agglearn.observations.counted_bags import coordinates
from agglearn.proportions.base import BagClassifier
from agglearn.seeds import draw_seed


class BagLearnerOnRecords(RecordClassifier):
    """A learner of bags, over one coordinate per modality of the features.

    Parameters
    ----------
    learner : a `BagClassifier`. random_state : given to it.

    Attributes
    ----------
    learner_ : fitted. encoder_, classes_.
    """

    observes = CountedBags

    def __init__(self, learner: BagClassifier, random_state=None):
        self.learner = learner
        self.random_state = random_state

    @property
    def accounts_for_noise(self) -> bool:
        """Whether the learner of bags does."""
        return self.learner.accounts_for_noise

    def _fit(self, observation):
        self.encoder_, self.classes_ = observation.encoder, np.array([0, 1])
        self.learner_ = (
            clone(self.learner).set_params(random_state=draw_seed(self.random_state)).fit(observation.bags())
        )

    def warm_up(self) -> None:
        """Whatever the learner does to be ready."""
        self.learner.warm_up()

    def predict_proba(self, X) -> np.ndarray:
        """(n, 2) probabilities of both labels for raw columns, matched by name; what was never seen adds nothing."""
        return self.learner_.predict_proba(coordinates(self.encoder_, X))
