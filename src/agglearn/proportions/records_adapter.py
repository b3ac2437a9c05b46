"""Learners of bags on records: raw features in, the same predictions as any other classifier of records out."""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from agglearn.estimator import RecordClassifier
from agglearn.observations import CountedBags
from agglearn.observations.counted_bags import coordinates
from agglearn.proportions.base import BagClassifier
from agglearn.proportions.boosting import CardinalityBoosting
from agglearn.seeds import draw_seed


class BagLearnerOnRecords(RecordClassifier):
    """A learner of bags, over one coordinate per modality of the features.

    Parameters
    ----------
    learner, random_state : BagClassifier, int, RandomState, Generator or None
        A clone of it, with this seed, is fitted as `learner_`.
    """

    observes = CountedBags

    learner: BagClassifier

    @property
    def accounts_for_noise(self) -> bool:
        return self.learner.accounts_for_noise

    def _fit(self, observation: CountedBags) -> None:
        self._set_encoder(observation.encoder)
        learner = clone(self.learner).set_params(random_state=draw_seed(self.random_state))
        self.learner_ = learner.fit(observation.bags())

    def predict_proba(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self.learner_.predict_proba(coordinates(self.encoder_, X))

    def save(self, folder: str | Path) -> None:
        if isinstance(vars(self).get("learner_"), CardinalityBoosting):
            self.learner_.pack()
        super().save(folder)
