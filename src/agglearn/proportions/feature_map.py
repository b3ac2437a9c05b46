"""Learners of bags on non-linear features of the instances, which the source leaves to future work."""

import itertools
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from agglearn.errors import DataError
from agglearn.estimator import choose_best
from agglearn.observations import Bags, LabelledBags, Observation
from agglearn.proportions.base import FOLDS, PATH, BagClassifier, counts_likelihood, counts_of
from agglearn.saving import check_classes, expect
from agglearn.seeds import derive_seed, draw_generator, draw_seed
from agglearn.settings import Built


class FeatureMapClassifier(BagClassifier):
    """A learner of bags on the covariates and a map of them, which the likelihood of held-out bags' counts chooses.

    The source has a linear model and names others as future work (Sun 2019, section 3.6). On the covariates and random
    features of a kernel the gradient of the counts' likelihood stays exact. A fifth of the bags is held out to choose
    the penalty and the scale of the map, whether the learner gets counts or labels. It then learns from all bags.

    Parameters
    ----------
    learner, embedding : BagClassifier, embedding or None
        One with `l2`. Map with `scale`, such as `agglearn.distribution.OrthogonalRandomEmbedding`, which gets every
        instance as a bag by itself, or None for the covariates alone.
    l2, scale : list of float
        Choices of λ and, with an embedding, of its scale.
    random_state : int, RandomState, Generator or None
        Seed of the bags that are held out, of the map and of the learner.

    Attributes
    ----------
    learner_, embedding_, tuned_ : BagClassifier, embedding or None, dict
        Both fitted, and what was chosen.
    """

    observes: ClassVar[type[Observation]] = Observation  # type: ignore[type-abstract]  # only compared with

    learner: BagClassifier
    embedding: Built | None = None
    l2: list = PATH  # type: ignore[assignment]  # not mutable
    scale: list = (0.5, 1.0, 2.0, 4.0)  # type: ignore[assignment]
    n_bags: None = field(default=None, init=False)

    def _fit(self, observation: Any) -> None:
        if not isinstance(observation, self.learner.observes):
            raise DataError(f"{type(self.learner).__name__} learns from {self.learner.observes.__name__}")
        bags: Any = observation.bags if isinstance(observation, LabelledBags) else observation
        if len(bags) < 2:
            raise DataError("one bag only; a second one is needed to choose the penalty")
        self.classes_, self.feature_names_in_ = bags.classes, list(bags.names)
        seed = draw_seed(self.random_state)
        order = draw_generator(derive_seed("held out", seed)).permutation(len(bags))
        held_out, training = (np.sort(block) for block in np.split(order, [-(-len(bags) // FOLDS)]))
        scales = self.scale if self.embedding is not None else [1.0]
        scores, y = [], getattr(observation, "y", None)
        for scale in scales:
            mapped = self._map_bags(bags, scale, seed)
            test = mapped.take(held_out)
            for l2 in self.l2:
                model = self._with(l2, seed).fit(_select(mapped, y, training))
                scores.append(counts_likelihood(model.predict_proba(test.X), test.offsets, counts_of(test)))
        chosen, l2 = list(itertools.product(scales, self.l2))[choose_best(scores)]
        self.tuned_ = {"l2": l2} if self.embedding is None else {"scale": chosen, "l2": l2}
        self.learner_ = self._with(l2, seed).fit(_select(self._map_bags(bags, chosen, seed), y, np.arange(len(bags))))

    def _with(self, l2: float, seed: int) -> BagClassifier:
        return clone(self.learner).set_params(l2=l2, random_state=derive_seed("learner", seed))

    def _map_bags(self, bags: Bags, scale: float, seed: int) -> Bags:
        self.embedding_ = None
        if self.embedding is not None:
            embedding = clone(self.embedding).set_params(scale=scale, random_state=derive_seed("map", seed))
            self.embedding_ = embedding.fit(_singly(bags.X))
        return replace(bags, X=self._map(bags.X), names=())

    def _map(self, x: np.ndarray) -> np.ndarray:
        return x if self.embedding_ is None else np.hstack([x, self.embedding_.transform(_singly(x))], dtype=np.float32)

    def _check_state(self) -> None:
        check_classes(self)
        expect(self, learner_=BagClassifier)
        if not np.array_equal(self.classes_, self.learner_.classes_):
            raise ValueError(f"{type(self).__name__}.classes_: must be those of learner_")

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        return self.learner_.predict_proba(self._map(self._ordered(X)))

    @property
    def n_features_in_(self) -> int:
        return self.learner_.n_features_in_ if self.embedding_ is None else self.embedding_.n_features_in_


def _singly(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every instance as a bag."""
    return x, np.arange(len(x) + 1)


def _select(bags: Bags, y: np.ndarray | None, chosen: np.ndarray) -> Bags | LabelledBags:
    some = bags.take(chosen)
    return some if y is None else LabelledBags(some, y[np.isin(bags.bag_of, chosen)])
