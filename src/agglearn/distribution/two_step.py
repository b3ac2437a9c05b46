"""A fixed embedding, then a regressor of its vectors: the two-step procedure of Sun 2019, section 4.1."""

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score

from agglearn.distribution.embedding import BagsLike, Embedding, as_bags, truncate_bags
from agglearn.distribution.ridge import at_edge
from agglearn.errors import ConfigError, DataError, GridEdge
from agglearn.estimator import Estimator, check_labels, choose_best
from agglearn.observations import Bags, Observation
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Built, Count, Number, ParametersOf, Whole

TUNED_ON = 512  # bags, and instances of each, that the embedding's parameters are chosen on


class BagModel(Estimator):
    """The first `n_validation` bags choose among settings, the next `n_bags` are learned from.

    Only the first `bag_size` instances of a bag are used, in prediction too. `bounds` clip predicted numbers. Learned
    are `n_features_in_`, `feature_names_in_`, for classes `classes_` (C,).
    """

    observes = Bags
    classifies = False
    _: KW_ONLY
    n_bags: Count | None = None
    bag_size: Count | None = None
    n_validation: Whole = 0
    bounds: tuple[Number, Number] | None = None

    def fit(self, bags: BagsLike, y: ArrayLike | None = None) -> Self:
        """Learn from `Bags`, arrays (N_b, d) or (X, offsets), with targets (B,) or (B, k), by default the bags' own."""
        if isinstance(bags, Observation) or y is not None:
            return super().fit(as_bags(bags, y))
        raise DataError(f"{type(self).__name__} needs a target of every bag: fit(bags, y)")

    def predict(self, bags: BagsLike) -> np.ndarray:
        """Predictions (B,) or (B, k) of the bags' targets, or their most probable classes (B,)."""
        raise NotImplementedError

    def score(self, bags: BagsLike, y: ArrayLike | None = None) -> float:
        """Accuracy of classes, or R² of numbers."""
        target = as_bags(bags, y).target
        if target is None:
            raise DataError("these bags have no target; give it: score(bags, y)")
        if self.classifies:
            return float(accuracy_score(check_labels(target, self.classes_), self.predict(bags)))
        return float(r2_score(target, self.predict(bags)))

    def _split(self, bags: Bags) -> tuple[Bags, Bags | None]:
        if bags.target is None:
            raise DataError(f"{type(self).__name__}: these bags have no target; distribution regression needs one")
        if self.bounds is not None and (self.classifies or not self.bounds[0] < self.bounds[1]):
            raise ConfigError(f"bounds: must be the ends of an interval of numbers, not of classes, got {self.bounds}")
        self.feature_names_in_ = list(bags.names)
        available = len(bags) - self.n_validation
        n = available if self.n_bags is None else self.n_bags
        if not 0 < n <= available:
            raise ConfigError(f"n_bags: must be between 1 and the {max(available, 0)} bags there are, got {n}")
        if n < 2:
            raise DataError("one bag only; at least two are needed")
        validation = bags.take(np.arange(self.n_validation)) if self.n_validation else None
        training = bags.take(np.arange(self.n_validation, self.n_validation + n))
        return truncate_bags(training, self.bag_size), validation and truncate_bags(validation, self.bag_size)

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        values = values if self.bounds is None else np.clip(values, *self.bounds)
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values

    def _truncate(self, bags: BagsLike) -> Bags:
        return truncate_bags(as_bags(bags, names=self.feature_names_in_), self.bag_size)


class EmbeddingRegressor(BagModel):
    """Embeds bags, then regresses their targets on the vectors.

    Parameters
    ----------
    embedding, regressor : Embedding, regressor
        A fixed embedding, and `LinearRidge`, `KernelRidge` or one with fit(Z, y, validation), predict(Z) and score_.
    tune : dict or None
        Parameter of the embedding → values. The value of least error is taken, of equal ones the first, on at most 512
        bags and 512 instances of each: `score_` on validation bags or, without these, on training bags that it leaves
        out (ridge: each in turn). GridEdge warns of a value at an end of its grid.
    random_state : int, RandomState, Generator or None
        Seed, from which embedding and regressor get theirs.
    n_bags, bag_size, n_validation, bounds : see `BagModel`
        None: all bags, all instances, no bounds.

    Attributes
    ----------
    embedding_, regressor_, tuned_, edges_ : Embedding, regressor, dict, list of str
        Both fitted, parameters chosen, and settings chosen at an end of their grid.
    """

    embedding: Embedding
    regressor: Built
    tune: Annotated[dict[str, list] | None, ParametersOf("embedding")] = None

    def _fit(self, observation: Bags) -> None:
        training, validation = self._split(observation)
        state = draw_seed(self.random_state)
        self.tuned_ = self._tune(training, validation, state)
        self.embedding_ = self._seeded_embedding(self.tuned_, state).fit(training)
        vectors = None if validation is None else (self.embedding_.transform(validation), validation.target)
        self.regressor_ = self._seeded_regressor(state)
        self.regressor_.fit(self.embedding_.transform(training), training.target, vectors)
        grids = self.tune or {}
        edges = at_edge({name: (value, grids[name]) for name, value in self.tuned_.items()})
        edges = [name for name in edges if not (name.startswith("n_") and self.tuned_[name] == 1)]  # no less than one
        for name in edges:
            message = f"tune: {name} = {self.tuned_[name]} is an end of its grid; try values beyond it"
            warnings.warn(message, GridEdge, stacklevel=4)
        self.edges_ = edges + list(getattr(self.regressor_, "edges_", []))

    def _seeded_embedding(self, params: Mapping[str, Any], state: int) -> Embedding:
        return clone(self.embedding).set_params(random_state=derive_seed("embedding", state), **params)

    def _seeded_regressor(self, state: int) -> BaseEstimator:
        return clone(self.regressor).set_params(random_state=derive_seed("regressor", state))

    def _tune(self, training: Bags, validation: Bags | None, state: int) -> dict[str, Any]:
        grids = self.tune or {}
        candidates = [dict(zip(grids, v, strict=True)) for v in itertools.product(*grids.values())]
        if len(candidates) < 2:
            return candidates[0]
        few, few_validation = _first(training), validation and _first(validation)
        scores = []
        for params in candidates:
            embedding = self._seeded_embedding(params, state).fit(few)
            vectors = few_validation and (embedding.transform(few_validation), few_validation.target)
            scores.append(self._seeded_regressor(state).fit(embedding.transform(few), few.target, vectors).score_)
        return candidates[choose_best(-np.array(scores))]

    @property
    def n_features_in_(self) -> int:
        """Number of covariates."""
        return self.embedding_.n_features_in_

    def predict(self, bags: BagsLike) -> np.ndarray:
        return self._bounded(self.regressor_.predict(self.embedding_.transform(self._truncate(bags))))


class EmbeddingClassifier(EmbeddingRegressor):
    """Embeds bags, then classifies the vectors.

    Parameters
    ----------
    embedding, regressor, tune, random_state, n_bags, bag_size, n_validation, bounds : see `EmbeddingRegressor`
        `regressor` has predict_proba, and `bounds` are None.
    """

    classifies = True

    @property
    def classes_(self) -> np.ndarray:
        """Classes in sorted order."""
        return self.regressor_.classes_

    def predict_proba(self, bags: BagsLike) -> np.ndarray:
        """Probabilities (B, C) of the classes.

        Parameters
        ----------
        bags : see `fit`
        """
        return self.regressor_.predict_proba(self.embedding_.transform(self._truncate(bags)))

    def predict(self, bags: BagsLike) -> np.ndarray:
        return self.classes_[self.predict_proba(bags).argmax(axis=1)]


def _first(bags: Bags) -> Bags:
    """The first bags, and their first instances, that parameters are chosen on."""
    return truncate_bags(bags.take(np.arange(min(len(bags), TUNED_ON))), TUNED_ON)
