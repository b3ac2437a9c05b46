"""A fixed embedding, then a regressor of its vectors: the two-step procedure of Sun 2019, section 4.1."""

import itertools
import warnings
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from agglearn.distribution.embedding import Embedding, as_bags, truncate_bags
from agglearn.distribution.ridge import at_edge
from agglearn.errors import ConfigError, DataError, GridEdge
from agglearn.estimator import Estimator, check_labels, choose_best
from agglearn.observations import Bags, Observation
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Built, Count, Number, ParametersOf, Whole

TUNED_ON = 512  # bags to learn from, and instances of each, that the embedding's parameters are chosen on


class BagModel(Estimator):
    """What models of bags with a target have in common: which of the bags they learn from.

    The first `n_validation` bags choose among settings, the next `n_bags` are learned from; of each bag the first `bag_size`
    instances are used, in prediction too. `bounds` are the least and the largest value of a number that is predicted, such as
    (0, 1) for a share: predictions beyond are moved there.

    Attributes
    ----------
    n_features_in_ : covariates of an instance. feature_names_in_ : their names, none where the bags have none.
    classes_ : (C,) classes, of classifiers.
    """

    observes = Bags
    classifies = False
    bounds: tuple[float, float] | None = None

    def fit(self, bags, y=None):
        """Learn from bags (see `as_bags`) and their targets `y`, by default those that the bags carry."""
        if isinstance(bags, Observation) or y is not None:
            return super().fit(as_bags(bags, y))
        raise DataError(f"{type(self).__name__} needs a target of every bag: fit(bags, y)")

    def score(self, bags, y=None) -> float:
        """Accuracy of classes, or R² of numbers, on bags and their targets `y`, by default those that the bags carry."""
        y = as_bags(bags, y).target
        if y is None:
            raise DataError("these bags have no target; give it: score(bags, y)")
        if self.classifies:
            return float(accuracy_score(check_labels(y, self.classes_), self.predict(bags)))
        return float(r2_score(y, self.predict(bags)))

    def _parts(self, bags: Bags) -> tuple[Bags, Bags | None]:
        """(bags learned from, bags for choosing or None)."""
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
            raise DataError("one bag only: there is nothing to learn from")
        held = bags.take(np.arange(self.n_validation)) if self.n_validation else None
        part = bags.take(np.arange(self.n_validation, self.n_validation + n))
        return truncate_bags(part, self.bag_size), held and truncate_bags(held, self.bag_size)

    def _bounded(self, found: np.ndarray) -> np.ndarray:
        return found if self.bounds is None else np.clip(found, *self.bounds)

    def _seen(self, bags) -> Bags:
        return truncate_bags(as_bags(bags, names=self.feature_names_in_), self.bag_size)


class EmbeddingRegressor(BagModel):
    """Embeds bags, then regresses their targets on the vectors.

    Parameters
    ----------
    embedding : a fixed embedding. regressor : `LinearRidge` or `KernelRidge`; anything with fit(Z, y, held) and predict(Z).
    tune : parameter of the embedding → values, of which the one with the least error in choosing λ is taken (of equal ones
        the first), on at most 512 of the bags and 512 instances of each.
    n_bags, bag_size, n_validation, bounds : see `BagModel`.
    random_state : seed; embedding and regressor get seeds from it.

    Attributes
    ----------
    embedding_, regressor_ : as fitted. tuned_ : parameters chosen. edges_ : settings chosen at an end of their grid, by name.

    Warns
    -----
    GridEdge : the value chosen of a parameter to tune is an end of its grid.
    """

    def __init__(
        self,
        embedding: Embedding,
        regressor: Built,
        tune: Annotated[dict[str, list] | None, ParametersOf("embedding")] = None,
        n_bags: Count | None = None,
        bag_size: Count | None = None,
        n_validation: Whole = 0,
        bounds: tuple[Number, Number] | None = None,
        random_state=None,
    ):
        self.embedding = embedding
        self.regressor = regressor
        self.tune = tune
        self.n_bags = n_bags
        self.bag_size = bag_size
        self.n_validation = n_validation
        self.bounds = bounds
        self.random_state = random_state

    def _fit(self, observation):
        part, held = self._parts(observation)
        state = draw_seed(self.random_state)
        self.tuned_ = self._tuned(part, held, state)
        self.embedding_ = self._embedding(self.tuned_, state).fit(part)
        self.regressor_ = self._regressor(state)
        vectors = None if held is None else (self.embedding_.transform(held), held.target)
        self.regressor_.fit(self.embedding_.transform(part), part.target, vectors)
        edges = at_edge({name: (value, self.tune[name]) for name, value in self.tuned_.items()})
        for name in edges:
            warnings.warn(
                f"tune: {name} = {self.tuned_[name]} is an end of its grid; try values beyond it",
                GridEdge,
                stacklevel=4,
            )
        self.edges_ = edges + list(getattr(self.regressor_, "edges_", []))

    def _embedding(self, chosen: Mapping, state: int):
        return clone(self.embedding).set_params(random_state=derive_seed("embedding", state), **chosen)

    def _regressor(self, state: int):
        return clone(self.regressor).set_params(random_state=derive_seed("regressor", state))

    def _tuned(self, part: Bags, held: Bags | None, state: int) -> dict:
        names, values = list(self.tune or {}), list((self.tune or {}).values())
        settings = [dict(zip(names, v, strict=True)) for v in itertools.product(*values)]
        if len(settings) < 2:
            return settings[0]
        few, held = (b and truncate_bags(b.take(np.arange(min(len(b), TUNED_ON))), TUNED_ON) for b in (part, held))
        scores = []
        for chosen in settings:
            embedding = self._embedding(chosen, state).fit(few)
            other = None if held is None else (embedding.transform(held), held.target)
            scores.append(self._regressor(state).fit(embedding.transform(few), few.target, other).score_)
        return settings[choose_best(-np.array(scores))]

    @property
    def n_features_in_(self) -> int:
        """d, the number of covariates."""
        return self.embedding_.n_features_in_

    def warm_up(self) -> None:
        """Compile the embedding's kernels, or load them."""
        self.embedding.warm_up()

    def predict(self, bags) -> np.ndarray:
        """(B,) or (B, k) predictions of the bags' targets."""
        found = self._bounded(self.regressor_.predict(self.embedding_.transform(self._seen(bags))))
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


class EmbeddingClassifier(EmbeddingRegressor):
    """Embeds bags, then classifies the vectors; parameters as in `EmbeddingRegressor`, `regressor` with predict_proba."""

    classifies = True

    @property
    def classes_(self) -> np.ndarray:
        """Classes in sorted order."""
        return self.regressor_.classes_

    def predict_proba(self, bags) -> np.ndarray:
        """(B, C) probabilities of the classes."""
        return self.regressor_.predict_proba(self.embedding_.transform(self._seen(bags)))

    def predict(self, bags) -> np.ndarray:
        """(B,) most probable classes."""
        return self.classes_[self.predict_proba(bags).argmax(axis=1)]
