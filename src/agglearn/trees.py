"""Boosted trees of scikit-learn: on codes of features, and as bytes in the format of skops, checked when read."""

import io
import zipfile
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.machine import memory_bytes
from agglearn.optional import require

MAX_CATEGORIES = 255  # that scikit-learn's trees split as categories
Trees: TypeAlias = HistGradientBoostingClassifier | list[HistGradientBoostingRegressor]


def categorical_features(encoder: FrameEncoder) -> list[bool]:
    return [isinstance(f, CategoricalEncoder) and f.size < MAX_CATEGORIES for f in encoder.features]


def codes_of(encoder: FrameEncoder, X: pd.DataFrame | np.ndarray) -> np.ndarray:
    """(n, D) codes of raw features, NaN where a value has none."""
    codes = encoder.encode(X).astype(float)
    codes[codes < 0] = np.nan
    return codes


TRUSTED = (  # types in the trees besides those that skops trusts itself
    "functools.partial",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
)


def to_bytes(trees: Trees) -> np.ndarray:
    return np.frombuffer(require("skops.io", "workflow").dumps(trees), np.uint8)


def from_bytes(content: np.ndarray, n_features: int, kind: type[Any]) -> Any:
    """The trees: one classifier, or a list of regressors, by `kind`. ValueError for others."""
    data, skops = content.tobytes(), require("skops.io", "workflow")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            if sum(member.file_size for member in pack.infolist()) > memory_bytes():
                raise ValueError("the trees are larger than allowed")
        loaded = skops.loads(data, trusted=list(TRUSTED))
        stages: list[Any] = [loaded] if kind is HistGradientBoostingClassifier else list(loaded)
        valid = all(type(trees) is kind and trees.n_features_in_ == n_features for trees in stages) and all(
            _is_tree(p, trees._bin_mapper.is_categorical_) for trees in stages for row in trees._predictors for p in row
        )
    except Exception as error:  # skops and scikit-learn raise errors of any kind where content does not fit
        raise ValueError(f"trees_: {error}") from None
    if not valid:
        raise ValueError(f"trees_: must be boosted trees on {n_features} features")
    return loaded


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
