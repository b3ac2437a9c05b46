"""The lowest and the highest step of the ladder: nothing but the base rate, and boosted trees on all records."""

from typing import Annotated

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import CategoricalEncoder
from agglearn.encoding.columns import named_columns
from agglearn.estimator import RecordClassifier
from agglearn.labelsums.trees import from_bytes, to_bytes
from agglearn.observations import ContingencyTables, Records
from agglearn.persistence import expect
from agglearn.seeds import draw_seed
from agglearn.settings import Count, Positive, Range

MOST_CATEGORIES = 255  # that scikit-learn's trees split as categories


class BaseRateClassifier(RecordClassifier):
    """P(Y=1|X) is the share of records with label 1; no table is looked at.

    Attributes
    ----------
    rate_, encoder_, classes_. random_state : not used.
    """

    observes = ContingencyTables

    def __init__(self, random_state=None):
        self.random_state = random_state

    def _fit(self, observation):
        self.encoder_, self.classes_ = observation.encoder, np.array([0, 1])
        self.rate_ = float(np.clip(observation.positives / observation.total, 1e-6, 1 - 1e-6))

    def predict_proba(self, X) -> np.ndarray:
        """(n, 2) the same for every row."""
        return np.tile([1 - self.rate_, self.rate_], (len(named_columns(X, self.encoder_.names)), 1))


class BoostedTreesSkyline(RecordClassifier):
    """Gradient-boosted trees on the codes of all records: a ceiling for what is learned from aggregates of these codes.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes : of scikit-learn's `HistGradientBoostingClassifier`; it stops early by a tenth
        of the records.
    random_state : of these.

    Attributes
    ----------
    encoder_, classes_. trees_ : (n,) the fitted trees as bytes, once the model has been saved or loaded.
    """

    observes = Records

    def __init__(
        self,
        max_iter: Count = 100,
        learning_rate: Positive = 0.1,
        max_leaf_nodes: Annotated[int, Range(2)] = 31,
        random_state=None,
    ):
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state

    def _fit(self, observation):
        self.encoder_, self.classes_ = observation.encoder, np.array([0, 1])
        named = [isinstance(f, CategoricalEncoder) and f.size < MOST_CATEGORIES for f in self.encoder_.features]
        seed = draw_seed(self.random_state) % 2**32
        self._trees = HistGradientBoostingClassifier(
            max_iter=self.max_iter, learning_rate=self.learning_rate, max_leaf_nodes=self.max_leaf_nodes,
            categorical_features=named, early_stopping=True, random_state=seed,
        ).fit(self._codes(observation.frame), observation.y)  # fmt: skip

    def _codes(self, frame) -> np.ndarray:
        codes = self.encoder_.encode(frame).astype(float)
        codes[codes < 0] = np.nan
        return codes

    def predict_proba(self, X) -> np.ndarray:
        """(n, 2) probabilities of both labels."""
        codes = self._codes(X)
        return self._trees.predict_proba(codes)

    def save(self, folder) -> None:
        """Write `model.json` and `model.npz`, which hold the trees in the format of skops (extra `workflow`)."""
        check_is_fitted(self)
        self.trees_ = to_bytes(self._trees)
        super().save(folder)

    def _check_state(self):
        expect(self, trees_=("u", (None,)))
        self._trees = from_bytes(self.trees_, len(self.encoder_.features))
