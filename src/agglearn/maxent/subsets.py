"""One model per subset of features, all from the same observation (Gilotte et al. 2022, Figure 4)."""

import itertools
from collections.abc import Iterator

import numpy as np
from sklearn.base import clone

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.seeds import draw_generator, draw_seed
from agglearn.settings import Count


class FeatureSubsets(Estimator):
    """A learner fitted to every subset of `size` features.

    Parameters
    ----------
    base : the learner.
    size : features per subset.
    most : subsets at most, drawn at random without replacement (always the same ones); None for all.
    random_state : given to each learner.

    Attributes
    ----------
    models_ : {names of the features: fitted learner}.
    """

    observes = Observation

    def __init__(self, base: Estimator, size: Count = 3, most: Count | None = None, random_state=None):
        self.base = base
        self.size = size
        self.most = most
        self.random_state = random_state

    @property
    def accounts_for_noise(self) -> bool:
        """Whether the learner does."""
        return self.base.accounts_for_noise

    def _fit(self, observation):
        if not isinstance(observation, self.base.observes):
            raise DataError(f"{type(self.base).__name__} learns from {self.base.observes.__name__}")
        subsets = list(itertools.combinations(observation.encoder.names, self.size))
        if self.most is not None and self.most < len(subsets):
            chosen = draw_generator(0).choice(len(subsets), self.most, replace=False)
            subsets = [subsets[i] for i in np.sort(chosen)]
        self.models_, seed = {}, draw_seed(self.random_state)
        for names in subsets:
            model = clone(self.base).set_params(random_state=seed)
            self.models_[names] = model.fit(observation.select(names))

    def warm_up(self) -> None:
        """Whatever the learner does to be ready."""
        if hasattr(self.base, "warm_up"):
            self.base.warm_up()

    def subset_predict_proba(self, frame) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
        """(names of the features, (n,) P(Y=1)) of every subset."""
        for names, model in self.models_.items():
            yield names, model.predict_proba(frame)[:, 1]
