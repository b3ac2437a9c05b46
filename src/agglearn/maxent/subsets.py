"""One model per subset of features, all from the same observation (Gilotte et al. 2022, Figure 4)."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from agglearn.estimator import Estimator, MetaEstimator
from agglearn.observations import Observation
from agglearn.seeds import draw_generator, draw_seed
from agglearn.settings import Count


class FeatureSubsets(MetaEstimator):
    """A learner fitted to every subset of `size` features. `models_` maps names of features to the fitted learner.

    Parameters
    ----------
    base, size, most, random_state
        `most` subsets at most, drawn without replacement, always the same ones. `random_state` seeds each learner.
    """

    observes = Observation
    base: Estimator
    size: Count = 3
    most: Count | None = None

    def _fit(self, observation: Any) -> None:
        self._check_base(observation)
        subsets = list(itertools.combinations(observation.encoder.names, self.size))
        if self.most is not None and self.most < len(subsets):
            chosen = draw_generator(0).choice(len(subsets), self.most, replace=False)
            subsets = [subsets[i] for i in np.sort(chosen)]
        self.models_, seed = {}, draw_seed(self.random_state)
        for names in subsets:
            model = clone(self.base).set_params(random_state=seed)
            self.models_[names] = model.fit(observation.select(names))

    def subset_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
        """Yield (names of the features, (n,) P(Y=1)) of every subset.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, D)
            Raw columns of all features.
        """
        for names, model in self.models_.items():
            yield names, model.predict_proba(X)[:, 1]
