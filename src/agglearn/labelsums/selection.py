"""Model choice without records: parameters chosen by what was held out of the aggregates.

The source of the maximum-entropy model tunes on held-out records, which its user would not have. A release of tables can be
split by thinning its counts; a data holder can release two disjoint halves of the records instead.
"""

from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
from sklearn.base import clone

from agglearn.encoding import FeatureMap
from agglearn.encoding.design import Features
from agglearn.errors import ConfigError, DataError
from agglearn.estimator import Estimator, RecordClassifier, best_of
from agglearn.evaluation.metrics import log_likelihood
from agglearn.maxent import kernels
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.model import MaxEntClassifier
from agglearn.observations import ContingencyTables, Halves, LabelSums, Observation, Records, Table
from agglearn.observations.base import NoiseSpec
from agglearn.observations.consistency import noise_variances, projected
from agglearn.seeds import draw_seed
from agglearn.seeds import seed as seed_of
from agglearn.settings import ParametersOf, Part

BURN_IN, KEPT = 30, 20  # sweeps before samples count, and sweeps that count


class SelectedByAggregates(RecordClassifier):
    """A learner with one parameter chosen by aggregates alone, then fitted to the whole aggregate.

    From `Halves` each value is fitted to the first half and scored on the second. From `ContingencyTables` the halves are
    made by thinning (`thinned`). Scores are log-likelihoods of labels given features, a record: exact for label sums, where
    features are known (`sums_score`); with the model's own samples in the place of features for tables (`tables_score`).

    Parameters
    ----------
    base : MaxEntClassifier (or a subclass) for tables, a linear model of label sums for these.
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
        score = (
            partial(tables_score, seed=seed_of("score", seed)) if isinstance(whole, ContingencyTables) else sums_score
        )
        models = [self._with(value, seed).fit(halves[0]) for value in self.values]
        self.scores_ = np.array([score(model, halves[1]) for model in models])
        self._finish(whole, best_of(self.scores_), seed)

    def _finish(self, whole: Observation, best: int, seed: int) -> None:
        self.value_, self.classes_ = self.values[best], np.array([0, 1])
        self.model_ = self._with(self.value_, seed).fit(whole)

    def _split(self, observation, seed: int):
        if isinstance(observation, Halves):
            return (observation.first, observation.second), observation.whole
        if isinstance(observation, ContingencyTables):
            first, second = thinned(observation, np.random.default_rng(seed))
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


class TunedOnRecords(SelectedByAggregates):
    """What a user of aggregates cannot do: the same choice by held-out records. Then fitted to the aggregate of all.

    Parameters
    ----------
    base, parameter, values, random_state : as in `SelectedByAggregates`. features : of label sums, see `FeatureMap`.
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
        self._finish(self._aggregate(observation, np.ones(len(held), bool)), best_of(self.scores_), seed)

    def _aggregate(self, records: Records, rows: np.ndarray) -> Observation:
        frame, y = records.frame[rows].reset_index(drop=True), records.y[rows]
        if issubclass(self.base.observes, ContingencyTables):
            return ContingencyTables.from_codes(records.encoder, records.encoder.encode(frame), y, records.label)
        return LabelSums.from_map(FeatureMap.fit(self.features, records.encoder, records.frame), frame, y)


# -- halves of one release --------------------------------------------------------------------------------------------


def thinned(tables: ContingencyTables, rng: np.random.Generator) -> tuple[ContingencyTables, ContingencyTables]:
    """Two tables that add up to the one given, every cell thinned by itself.

    Exact counts are thinned binomially: halves of a Poisson number are independent. Noisy ones get normal numbers of their
    own variance, counting error and noise (Neufeld et al. 2024, for normal numbers), and half the variance of the noise
    each. Tables of the same records are still dependent: what two tables share is not held out.
    """
    variance, first, second = noise_variances(tables), {}, {}
    for key, t in tables.tables.items():
        d, c = _half(t, variance[key], tables.noise, rng)
        first[key] = Table(t.shape, t.cells, d, c)
        second[key] = Table(t.shape, t.cells, t.counts - d, t.label_sums - c)
    noise = tables.noise or NoiseSpec(
        "gaussian", np.sqrt(2), float("inf")
    )  # equal weights of the tables in a projection
    scales = noise.scales and {k: s / np.sqrt(2) for k, s in noise.scales.items()}
    half = replace(noise, scale=noise.scale / np.sqrt(2), scales=scales)
    totals = {"total": tables.total / 2, "positives": tables.positives / 2, "noise": half}
    return replace(tables, tables=first, **totals), replace(tables, tables=second, **totals)


def _half(
    t: Table, variance: float, noise: NoiseSpec | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Counts and label sums of one half of a table."""
    if noise is None:
        c, rest = (rng.binomial(v.astype(np.int64), 0.5) for v in (t.label_sums, t.counts - t.label_sums))
        return (c + rest).astype(t.counts.dtype), c.astype(t.label_sums.dtype)
    ones, zeros = np.maximum(t.label_sums, 0), np.maximum(t.counts - t.label_sums, 0)
    own_d, own_c, ones, zeros = (  # noise on counts and on label sums; counting errors of label 1 and 0
        rng.normal(size=t.counts.shape) * np.sqrt(v)
        for v in (0.0 if noise.adjacency == "label" else variance, variance, ones, zeros)
    )
    return (t.counts + own_d + ones + zeros) / 2, (t.label_sums + own_c + ones) / 2


# -- scores -----------------------------------------------------------------------------------------------------------


def sums_score(model, held: LabelSums) -> float:
    """Mean log-likelihood of the labels behind held-out sums: s·θ − Σ ln(1 + e^{X·θ}), for exact sums exactly."""
    theta = model._theta()
    z = held.matrix @ theta
    return float((held.sums @ theta - np.logaddexp(0, z).sum()) / len(z))


def tables_score(model: MaxEntClassifier, held: ContingencyTables, n_chains: int = 2000, seed: int = 1) -> float:
    """Mean log-likelihood of the labels behind held-out tables, Σ c·θ + n₁b − n E ln(1 + e^{φ(x)·θ + b}), with x drawn from
    the model (`seed`): P(Y|X) enters through label sums and through one expectation over features, which tables do not have."""
    layout = model._layout
    mu, theta = model.mu_[layout.rows, layout.columns], model.theta_[layout.rows, layout.columns]
    held.refuse_hashed_pairs("the choice by held-out tables")
    c = np.concatenate([held.dense(*k)[1].ravel() for k in held.tables])
    chains = Chains(layout, n_chains, model.intercept_, seed)
    chains.set_weights(mu, theta)
    chains.sweep(1, BURN_IN)
    normaliser = []
    for sweep in range(KEPT):
        chains.sweep(2 + sweep)
        kernels.predict_logits(
            chains.positions.astype(np.int32), model.theta_, model.intercept_, z := np.empty(n_chains)
        )
        normaliser.append(np.logaddexp(0, z).mean())
    return float((c @ theta + held.positives * model.intercept_) / held.total - np.mean(normaliser))
