"""Model choice without records: parameters chosen by what was held out of the aggregates.

The source of the maximum-entropy model tunes on held-out records, which its user would not have. A release of tables can be
split by thinning its counts; a data holder can release two disjoint halves of the records instead.
"""

from typing import Annotated

import numpy as np
from sklearn.base import clone

from agglearn.encoding import FeatureMap
from agglearn.encoding.design import Features
from agglearn.errors import ConfigError, DataError
from agglearn.estimator import Estimator, RecordClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.observations import ContingencyTables, Halves, LabelSums, Observation, Records
from agglearn.observations.consistency import projected
from agglearn.observations.thinning import thin_tables
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import ParametersOf, Part


class AggregateSearch(RecordClassifier):
    """A learner with one parameter chosen by aggregates alone, then fitted to the whole aggregate.

    From `Halves` each value is fitted to the first half and scored on the second. From `ContingencyTables` the halves are
    made by thinning (`agglearn.observations.thinning`). Scores are log-likelihoods of labels given features, a record
    (`held_out_score` of the learner): exact for label sums, where features are known; with the model's own samples in the
    place of features for tables.

    Parameters
    ----------
    base : a learner with `held_out_score`: MaxEntClassifier (or a subclass) for tables, WALRClassifier for label sums.
    parameter, values : what is chosen, and from what.
    random_state : of the thinning, the samples and the learner.

    Attributes
    ----------
    value_ : chosen, of equal ones the first. scores_ : (V,) score of each value. model_ : the learner, fitted to the whole.
    """

    observes = Observation

    def __init__(
        self,
        base: Estimator,
        parameter: Annotated[str, ParametersOf("base")] = "l2_theta",
        values: list = (2.0, 8.0, 32.0, 128.0, 512.0),
        random_state=None,
    ):
        self.base = base
        self.parameter = parameter
        self.values = values
        self.random_state = random_state

    @property
    def accounts_for_noise(self) -> bool:
        """Whether the learner does."""
        return self.base.accounts_for_noise

    def _fit(self, observation):
        seed = draw_seed(self.random_state)
        halves, whole = self._split(observation, seed)
        if not isinstance(whole, self.base.observes):
            raise DataError(f"{type(self.base).__name__} learns from {self.base.observes.__name__}")
        if not hasattr(self.base, "held_out_score"):
            raise DataError(f"{type(self.base).__name__} has no score on held-out aggregates (held_out_score)")
        models = [self._with(value, seed).fit(halves[0]) for value in self.values]
        self.scores_ = np.array([model.held_out_score(halves[1], derive_seed("score", seed)) for model in models])
        self._finish(whole, choose_best(self.scores_), seed)

    def _finish(self, whole: Observation, best: int, seed: int) -> None:
        self.value_, self.classes_ = self.values[best], np.array([0, 1])
        self.model_ = self._with(self.value_, seed).fit(whole)

    def _split(self, observation, seed: int):
        if isinstance(observation, Halves):
            return (observation.first, observation.second), observation.whole
        if isinstance(observation, ContingencyTables):
            first, second = thin_tables(observation, np.random.default_rng(seed))
            return (projected(first), second), observation  # as tables of records agree
        raise DataError(f"{type(observation).__name__} cannot be split; release halves (Halves)")

    def _with(self, value, seed: int) -> Estimator:
        if self.parameter not in self.base.get_params():
            raise ConfigError(f"parameter: {type(self.base).__name__} has no {self.parameter!r}")
        return clone(self.base).set_params(**{self.parameter: value, "random_state": seed})

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the features, in order."""
        return self.model_.feature_names_in_

    def warm_up(self) -> None:
        """Whatever the learner does to be ready."""
        if hasattr(self.base, "warm_up"):
            self.base.warm_up()

    def predict_proba(self, X) -> np.ndarray:
        """(n, 2) probabilities of both labels."""
        return self.model_.predict_proba(X)


class RecordSearch(AggregateSearch):
    """What a user of aggregates cannot do: the same choice by held-out records. Then fitted to the aggregate of all.

    Parameters
    ----------
    base, parameter, values, random_state : as in `AggregateSearch`. features : of label sums, see `FeatureMap`.
    validation : share of the records held out to choose.
    """

    observes = Records

    def __init__(
        self,
        base: Estimator,
        parameter: Annotated[str, ParametersOf("base")] = "l2_theta",
        values: list = (2.0, 8.0, 32.0, 128.0, 512.0),
        features: Features = "onehot",
        validation: Part = 0.2,
        random_state=None,
    ):
        super().__init__(base, parameter, values, random_state)
        self.features = features
        self.validation = validation

    def _fit(self, observation):
        seed = draw_seed(self.random_state)
        held = np.random.default_rng(seed).random(len(observation.y)) < self.validation
        seen, frame, y = self._aggregate(observation, ~held), observation.frame[held], observation.y[held]
        models = [self._with(value, seed).fit(seen) for value in self.values]
        self.scores_ = np.array([log_likelihood(y, model.predict_proba(frame)[:, 1]) for model in models])
        self._finish(self._aggregate(observation, np.ones(len(held), bool)), choose_best(self.scores_), seed)

    def _aggregate(self, records: Records, rows: np.ndarray) -> Observation:
        frame, y = records.frame[rows].reset_index(drop=True), records.y[rows]
        if issubclass(self.base.observes, ContingencyTables):
            return ContingencyTables.from_codes(records.encoder, records.encoder.encode(frame), y, records.label)
        return LabelSums.from_map(FeatureMap.fit(self.features, records.encoder, records.frame), frame, y)
