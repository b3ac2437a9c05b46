"""The lowest and the highest step of the ladder: the base rate alone, and boosted trees on all records."""

import io
import zipfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import CategoricalEncoder
from agglearn.encoding.columns import as_frame
from agglearn.estimator import RecordClassifier
from agglearn.machine import memory_bytes
from agglearn.observations import ContingencyTables, Records
from agglearn.optional import require
from agglearn.saving import expect
from agglearn.seeds import draw_seed
from agglearn.settings import Count, Positive, Range

MAX_CATEGORIES = 255  # that scikit-learn's trees split as categories


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
        categorical = [isinstance(f, CategoricalEncoder) and f.size < MAX_CATEGORIES for f in self.encoder_.features]
        seed = draw_seed(self.random_state) % 2**32
        self._trees = HistGradientBoostingClassifier(
            max_iter=self.max_iter, learning_rate=self.learning_rate, max_leaf_nodes=self.max_leaf_nodes,
            categorical_features=categorical, early_stopping=True, random_state=seed,
        ).fit(self._codes(observation.frame), observation.y)  # fmt: skip

    def _codes(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        codes = self.encoder_.encode(X).astype(float)
        codes[codes < 0] = np.nan
        return codes

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        codes = self._codes(X)  # NotFittedError where nothing is fitted
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
        self._trees = from_bytes(self.trees_, len(self.encoder_.features))


# -- boosted trees as bytes, in the format of skops: without pickle, and checked when read ----------------------------

TRUSTED = (  # types in the trees besides those that skops trusts itself
    "functools.partial",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
)


def to_bytes(trees: HistGradientBoostingClassifier) -> np.ndarray:
    return np.frombuffer(require("skops.io", "workflow").dumps(trees), np.uint8)


def from_bytes(content: np.ndarray, n_features: int) -> HistGradientBoostingClassifier:
    data, skops = content.tobytes(), require("skops.io", "workflow")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            if sum(member.file_size for member in pack.infolist()) > memory_bytes():
                raise ValueError("the trees are larger than allowed")
        trees = skops.loads(data, trusted=list(TRUSTED))
        valid = type(trees) is HistGradientBoostingClassifier and trees.n_features_in_ == n_features
        valid = valid and all(_is_tree(p, trees._bin_mapper.is_categorical_) for row in trees._predictors for p in row)
    except Exception as error:  # skops and scikit-learn raise errors of any kind where content does not fit
        raise ValueError(f"trees_: {error}") from None
    if not valid:
        raise ValueError(f"trees_: must be boosted trees on {n_features} features")
    return trees


def _is_tree(predictor: Any, categorical: np.ndarray) -> bool:
    """Whether nodes refer to later nodes, and existing features and categories, which scikit-learn does not check."""
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    position = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[position]
    splits = inner[inner["is_categorical"] != 0]
    return bool(
        len(nodes)
        and all(((position < inner[side]) & (inner[side] < len(nodes))).all() for side in ("left", "right"))
        and ((inner["feature_idx"] >= 0) & (inner["feature_idx"] < len(categorical))).all()
        and categorical[splits["feature_idx"]].all()
        and (splits["bitset_idx"] < len(sets)).all()
        and (sets.shape[1:] == (8,) or not len(splits))
    )
