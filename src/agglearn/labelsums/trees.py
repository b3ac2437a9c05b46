"""Boosted trees of scikit-learn as an array of bytes, in the format of skops: without pickle, and checked when read."""

import io
import zipfile
from typing import TYPE_CHECKING

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from agglearn.machine import memory_bytes
from agglearn.optional import require

if TYPE_CHECKING:
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

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


def _is_tree(predictor: "TreePredictor", categorical: np.ndarray) -> bool:
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
