"""Model choice without records, which a user of aggregates does not have, by aggregates that were held out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from agglearn.encoding import FeatureMap
from agglearn.encoding.design import Features
from agglearn.errors import DataError
from agglearn.estimator import Estimator, MetaEstimator, RecordClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.observations import ContingencyTables, Halves, LabelSums, Observation, Records
from agglearn.observations.consistency import project_tables, thin_tables
from agglearn.progress import track
from agglearn.seeds import derive_seed, draw_generator, draw_seed
from agglearn.settings import ParametersOf, Part

SCORING_CHAINS = 50_000  # 2,000 leave an error of .008 in a score, which is more than strengths differ by
Split = tuple[Observation, Callable[[Any], float], Observation]  # to learn from, score of a learner, the whole


class AggregateSearch(MetaEstimator, RecordClassifier):
    """A learner with one parameter chosen by aggregates alone, then fitted to the whole aggregate.

    From `Halves` each value is fitted to the first half and scored on the second. `ContingencyTables` are split by
    thinning (`agglearn.observations.consistency`). Scores are mean log-likelihoods of labels given features, exact for
    label sums, whose features are public. For tables, samples of the model replace the features. That makes weak penalties
    look better than they are: of two with nearly the same score the stronger one is safer.

    Parameters
    ----------
    base, parameter, values, random_state : Estimator, str, list, int or None
        Learner with `held_out_score` (MaxEntClassifier for tables, WALRClassifier for label sums), name, and choices.
        Seed of the thinning, the samples and the learner.

    Attributes
    ----------
    value_, scores_, model_ : object, ndarray of shape (V,), Estimator
        The chosen value, the first of equals, the score of each value, and the learner, fitted to the whole.
    """

    observes: ClassVar[type[Observation]] = Observation  # type: ignore[type-abstract]  # only compared with
    base: Estimator
    parameter: Annotated[str, ParametersOf("base")] = "l2_theta"
    values: list = (2.0, 8.0, 32.0, 128.0, 512.0)  # type: ignore[assignment]  # not mutable

    def _fit(self, observation: Any) -> None:
        seed = draw_seed(self.random_state)
        training, score, aggregate = self._split(observation, seed)
        models = [self._learner(value, seed).fit(training) for value in track(self.values, self.parameter)]
        self.scores_ = np.array([score(model) for model in models])
        self.value_, self.classes_ = self.values[choose_best(self.scores_)], np.array([0, 1])
        self.model_ = self._learner(self.value_, seed).fit(aggregate)

    def _split(self, observation: Any, seed: int) -> Split:
        if isinstance(observation, Halves):
            training, held_out, aggregate = observation.first, observation.second, observation.combined
        elif isinstance(observation, ContingencyTables):
            thinned, held_out = thin_tables(observation, draw_generator(seed))
            training, aggregate = project_tables(thinned), observation  # consistent, as tables of records are
        else:
            raise DataError(f"{type(observation).__name__} cannot be split; release halves (Halves)")
        self._check_base(aggregate)
        if not hasattr(self.base, "held_out_score"):
            raise DataError(f"{type(self.base).__name__} has no score on held-out aggregates (held_out_score)")
        drawn = {"seed": derive_seed("score", seed)}
        if isinstance(aggregate, ContingencyTables):
            drawn["n_chains"] = SCORING_CHAINS
        return training, lambda model: model.held_out_score(held_out, **drawn), aggregate

    def _learner(self, value: object, seed: int) -> Estimator:
        return clone(self.base).set_params(**{self.parameter: value, "random_state": seed})

    @property
    def feature_names_in_(self) -> np.ndarray:
        return self.model_.feature_names_in_

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)[:, 1]


class RecordSearch(AggregateSearch):
    """The choice of `AggregateSearch` by held-out records, which a user of aggregates does not have.

    Parameters
    ----------
    base, parameter, values
        As in `AggregateSearch`. Any learner from tables, label sums or records, which is then fitted to those of all.
    features, validation, random_state : str, float, int or Generator or None
        Coordinates of label sums, see `FeatureMap`, held-out fraction, seed of the held-out records and the learner.
    """

    observes = Records
    features: Features = "onehot"
    validation: Part = 0.2

    def _split(self, observation: Records, seed: int) -> Split:
        validation = draw_generator(seed).random(len(observation.y)) < self.validation
        frame, y = observation.frame[validation], observation.y[validation]
        training, aggregate = (self._aggregate(observation, rows) for rows in (~validation, validation | True))
        return training, lambda model: log_likelihood(y, model.predict_proba(frame)[:, 1]), aggregate

    def _aggregate(self, records: Records, rows: np.ndarray) -> Observation:
        frame, y = records.frame[rows].reset_index(drop=True), records.y[rows]
        if issubclass(self.base.observes, Records):
            return replace(records, frame=frame, y=y)
        if issubclass(self.base.observes, ContingencyTables):
            return ContingencyTables.from_codes(records.encoder, records.encoder.encode(frame), y, records.label)
        return LabelSums.from_map(FeatureMap.fit(self.features, records.encoder, records.frame), frame, y)
