"""A method for `methods:` of an experiment. `python NAME.py` fits it to records that are drawn here."""

import numpy as np
import pandas as pd

from agglearn.estimator import RecordClassifier
from agglearn.observations import ContingencyTables
from agglearn.seeds import RandomState
from agglearn.settings import NonNegative


class NewMethod(RecordClassifier):
    """The same probability for all records: the share of the label in the tables."""

    observes = ContingencyTables

    def __init__(self, smoothing: NonNegative = 1.0, random_state: RandomState = None) -> None:
        self.smoothing, self.random_state = smoothing, random_state

    def _fit(self, observation: ContingencyTables) -> None:
        self._set_encoder(observation.encoder)
        self.rate_ = (observation.positives + self.smoothing) / (observation.total + 2 * self.smoothing)

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return np.full(len(X), self.rate_)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    records = pd.DataFrame({"age": rng.integers(18, 80, 1000), "job": rng.choice(["cook", "nurse"], 1000)})
    bought = rng.random(1000) < np.where(records["job"] == "nurse", 0.7, 0.4)
    print("accuracy", NewMethod().fit(records, bought).score(records, bought))
