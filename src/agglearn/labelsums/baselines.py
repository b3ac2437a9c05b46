"""The lowest and the highest step of the ladder: the base rate alone, and boosted trees on all records."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding.columns import as_frame
from agglearn.estimator import RecordClassifier
from agglearn.observations import ContingencyTables, Records
from agglearn.saving import expect
from agglearn.seeds import draw_seed
from agglearn.settings import Count, Positive, Range
from agglearn.trees import categorical_features, codes_of, from_bytes, to_bytes


class BaseRateClassifier(RecordClassifier):
    """P(Y=1|X) is `rate_`, the fraction of records with label 1. No table is read, and no seed is used.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
    """

    observes = ContingencyTables

    def _fit(self, observation: ContingencyTables) -> None:
        self._set_encoder(observation.encoder)
        self.rate_ = float(np.clip(observation.positives / observation.total, 1e-6, 1 - 1e-6))

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return np.full(len(as_frame(X, self.encoder_.names)), self.rate_)


class BoostedTreesSkyline(RecordClassifier):
    """Gradient-boosted trees on the codes of all records: a ceiling for what is learned from aggregates of these codes.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes, random_state
        As in scikit-learn's `HistGradientBoostingClassifier`. Training stops early by a tenth of the records.
        `trees_` are (n,) bytes once the model has been saved or loaded.
    """

    observes = Records
    max_iter: Count = 100
    learning_rate: Positive = 0.1
    max_leaf_nodes: Annotated[int, Range(2)] = 31

    def _fit(self, observation: Records) -> None:
        self._set_encoder(observation.encoder)
        seed = draw_seed(self.random_state) % 2**32
        self._trees = HistGradientBoostingClassifier(
            max_iter=self.max_iter, learning_rate=self.learning_rate, max_leaf_nodes=self.max_leaf_nodes,
            categorical_features=categorical_features(self.encoder_), early_stopping=True, random_state=seed,
        ).fit(codes_of(self.encoder_, observation.frame), observation.y)  # fmt: skip

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        codes = codes_of(self.encoder_, X)  # NotFittedError where nothing is fitted
        return self._trees.predict_proba(codes)[:, 1]

    def save(self, folder: str | Path) -> None:
        check_is_fitted(self)
        self.pack()
        super().save(folder)

    def pack(self) -> None:
        """Put the trees into `trees_`, which is saved, in the format of skops, of the extra `workflow`."""
        self.trees_ = to_bytes(self._trees)

    def _check_state(self) -> None:
        super()._check_state()
        expect(self, trees_=("u", (None,)))
        self._trees = from_bytes(self.trees_, len(self.encoder_.features), HistGradientBoostingClassifier)
