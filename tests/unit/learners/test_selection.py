"""Every class that chooses a parameter: what was chosen is what is used, and it was judged by units that were not fitted.

The score of every value can be planted here, so that each value of a grid is chosen in turn. Then the model must be the one
that has this value given from the start. A class whose description speaks of a choice needs a row, or a reason for none.
"""

import re
import warnings
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from test_estimator_conventions import learners

from agglearn import collective, distribution, labelsums, maxent, proportions, vocabulary
from agglearn.collective.results import Iterate
from agglearn.encoding import CategoricalEncoder, FeatureMap, FrameEncoder
from agglearn.errors import DataError, GridEdge
from agglearn.estimator import choose_best
from agglearn.maxent import skyline
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums, Records
from agglearn.proportions import alternating, base, cardinality, means
from agglearn.vocabulary import OptimalQuantizer, cluster_training, on_clusters

RNG = np.random.default_rng(0)
X = np.concatenate(
    [np.arange(160.0)[:, None] / 160, RNG.normal(size=(160, 2))], axis=1
)  # the first tells instances apart
LABELS = (X[:, 1] + RNG.normal(size=160) > 0).astype(int)
POSITIVES = np.add.reduceat(LABELS, np.arange(0, 160, 4))
BAGS = Bags(X, np.arange(0, 161, 4), POSITIVES)
CLOUDS = Bags(X, np.arange(0, 161, 4), target=X[::4, 1] + np.arange(40) / 1e4)
CLASSES = Bags(X, np.arange(0, 161, 4), target=(X[::4, 1] > 0).astype(int))
TARGET = X[:60, 1] + 0.3 * X[:60, 2] + np.arange(60) / 1e6
FRAME = pd.DataFrame(
    {"who": [f"r{i:03d}" for i in range(160)], "a": RNG.choice(list("uvw"), 160), "b": RNG.choice(list("xyz"), 160)}
)
Y = (RNG.random(160) < np.where(FRAME["a"] == "u", 0.8, 0.3)).astype(np.int8)
PLAIN = FRAME[["a", "b"]]


def records(frame=FRAME, y=Y) -> Records:
    return Records(FrameEncoder(tuple(CategoricalEncoder.fit(frame[c]) for c in frame)), frame, y)


def tables(frame=PLAIN, y=Y) -> ContingencyTables:
    return ContingencyTables.from_records(frame.assign(y=y), "y")


@dataclass
class Try:
    """One value on trial: on which units it was fitted, and by which it was judged."""

    value: float
    fitted: tuple
    judged: tuple = ()


class Choice:
    """A class that chooses.

    `choose(patch, planted)` fits it with the score planted (value → score, larger is better; None: the true one) and fills
    `tries`; `fixed(value)` fits it, or the model inside it, with a given value; `chosen(model)` is the value, and
    `numbers(model)` is what tells models apart.
    """

    grid: tuple = ()
    units: tuple = ()  # names of all units that there are to learn from; empty where nothing is held out
    close = 1e-9
    edges = False  # whether a value at an end of its grid is stated
    anew = False  # whether `fixed` is about the last model that chose
    alike = False  # whether another row has the same code but for the fits

    def __init__(self):
        self.tries: list[Try] = []

    def __str__(self):
        return type(self).__name__

    def choose(self, patch, planted=None):
        raise NotImplementedError

    def fixed(self, value):
        raise NotImplementedError

    def chosen(self, model):
        raise NotImplementedError

    def numbers(self, model) -> np.ndarray:
        raise NotImplementedError


# -- λ of learners from bags ------------------------------------------------------------------------------------------


class OfBags(Choice):
    """λ by held-out bags; a bag goes by the first covariate of its first instance."""

    grid = (100.0, 1.0, 0.01)
    units = tuple(np.float32(X[::4, 0]).tolist())
    kind, module, more, path = proportions.MeanMapClassifier, means, MappingProxyType({}), (base, "PATH")

    def model(self, l2="held_out"):
        return self.kind(l2=l2, random_state=3, **self.more)

    def names(self, bags):
        return tuple(np.float32(bags.X[bags.offsets[:-1], 0]).tolist())

    def choose(self, patch, planted=None):
        right = base.choose_l2

        def spied(l2, bags, fitter, score, *more):
            def fit(part):
                solve = fitter(part)
                return lambda value, last: self.tries.append(Try(value, self.names(part))) or solve(value, last)

            def judged(held, theta):
                self.tries[-1].judged = self.names(held)
                return score(held, theta) if planted is None else planted(self.tries[-1].value)

            return right(l2, bags, fit, judged, *more)

        patch.setattr(*self.path, self.grid)
        patch.setattr(base, "FOLDS", 2)
        patch.setattr(self.module, "choose_l2", spied)
        return self.model().fit(BAGS)

    def fixed(self, value):
        return self.model(value).fit(BAGS)

    def chosen(self, model):
        return float(np.ravel(model.l2_)[0])

    def numbers(self, model):
        return np.append(model.coef_, model.intercept_)


class MeanMap(OfBags):
    pass


class MeanEmbedding(OfBags):
    kind, grid, path = proportions.MeanEmbeddingClassifier, (1.0, 0.01, 0.0001), (means, "PATH_OF_MEANS")
    units = tuple(np.float32(np.add.reduceat(X[:, 0], np.arange(0, 160, 4)) / 4).tolist())  # of a bag's mean


class MeanEmbeddings(MeanEmbedding):
    alike = True
    more = MappingProxyType({"multiclass": "ovr"})


class AlternatingMeanMap(OfBags):
    kind, module = proportions.AlternatingMeanMapClassifier, alternating


class Scoring(OfBags):
    kind, module, close = proportions.CardinalityClassifier, cardinality, 0.02
    more = MappingProxyType({"tol": 1e-9})


class EM(Scoring):
    grid, more, alike = (100.0, 10.0), MappingProxyType({"solver": "em", "tol": 1e-6}), True


class Normal(Scoring):
    kind, alike = proportions.NormalApproximationClassifier, True


# -- strengths of regressors of vectors -------------------------------------------------------------------------------


def plant_losses(patch, rows: list):
    """The next regressions have these losses, one row for each."""
    left = iter(rows)
    patch.setattr(distribution.ridge._Factors, "left_out", lambda self, penalties: next(left))


class Ridge(Choice):
    """λ by leave-one-out; what each strength's score is, is tested beside scikit-learn's."""

    grid, edges = (0.01, 1.0, 100.0), True

    def choose(self, patch, planted=None):
        if planted:
            plant_losses(patch, [[-planted(v) for v in self.grid]])
        return distribution.LinearRidge(list(self.grid)).fit(X[:60], TARGET)

    def fixed(self, value):
        return distribution.LinearRidge([value]).fit(X[:60], TARGET)

    def chosen(self, model):
        assert model.l2_ == pytest.approx(model.strength_ * np.var(X[:60], axis=0).sum())
        return model.strength_

    def numbers(self, model):
        return np.append(model.coef_, model.intercept_)


class Width(Choice):
    """The width of a kernel, by the best λ of each."""

    grid, edges = (0.5, 2.0, 8.0), True

    def choose(self, patch, planted=None):
        if planted:
            plant_losses(patch, [[-planted(v)] * 2 for v in self.grid])
        return distribution.KernelRidge(list(self.grid), strengths=[0.1, 1.0], random_state=0).fit(X[:60], TARGET)

    def fixed(self, value):
        return distribution.KernelRidge([value], strengths=[0.1], random_state=0).fit(X[:60], TARGET)

    def chosen(self, model):
        return model.multiple_

    def numbers(self, model):
        return model.predict(X[:60]).ravel()


class Multinomial(Choice):
    """λ by a fifth of the vectors, which the first column tells apart."""

    grid, edges, close = (10.0, 0.1, 0.001), True, 1e-2
    units = tuple(range(60))

    def choose(self, patch, planted=None):
        logistic = distribution.logistic
        problem, loss, model = logistic._problem, logistic._loss, distribution.MultinomialLogistic(list(self.grid))
        names = lambda z: tuple(np.round((z[:, 0] * model.scale_ + model.centre_[0]) * 160).astype(int).tolist())  # noqa: E731

        def fitted(z):
            self.last = names(z)
            return problem(z)

        def judged(theta, z, y):
            value = self.grid[len(self.tries)]
            self.tries.append(Try(value, self.last, names(z)))
            return loss(theta, z, y) if planted is None else -planted(value)

        patch.setattr(logistic, "_problem", fitted)
        patch.setattr(logistic, "_loss", judged)
        return model.set_params(random_state=1).fit(X[:60], LABELS[:60])

    def fixed(self, value):
        return distribution.MultinomialLogistic([value], random_state=1).fit(X[:60], LABELS[:60])

    def chosen(self, model):
        return model.l2_

    def numbers(self, model):
        return model.predict_proba(X[:60])[:, 1]


class Judge(BaseEstimator):
    """A regressor that tells what it was fitted to, with a score that is planted."""

    calls: ClassVar[list] = []
    score: ClassVar = None

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, Z, y, held=None):
        Judge.calls.append((tuple(y.tolist()), () if held is None else tuple(held[1].tolist())))
        self.classes_, self.mean_ = np.unique(y), Z.mean(axis=0)
        self.score_ = Judge.score(len(Judge.calls) - 1)
        return self

    def predict(self, Z):
        return Z.sum(axis=1)

    def predict_proba(self, Z):
        return np.column_stack([1 - Z.sum(axis=1), Z.sum(axis=1)])


class Embedded(Choice):
    """A parameter of the embedding, by the score of the regressor, on bags set apart."""

    grid, edges = (0.2, 1.0, 5.0), True
    kind, bags = distribution.EmbeddingRegressor, CLOUDS
    units = tuple(CLOUDS.target.tolist())

    def model(self, tune):
        embedding = distribution.RandomFourierEmbedding(6)
        return self.kind(embedding, Judge(), tune=tune, n_validation=12, random_state=2)

    def choose(self, patch, planted=None):
        patch.setattr(Judge, "calls", [])
        scores = [-(planted or (lambda v: -abs(v - 1)))(v) for v in self.grid]
        patch.setattr(Judge, "score", staticmethod(lambda k: [*scores, 0.0][k]))
        model = self.model({"scale": list(self.grid)}).fit(self.bags)
        self.tries = [Try(v, *call) for v, call in zip(self.grid, Judge.calls, strict=False)]
        assert Judge.calls[-1] == Judge.calls[0]  # the last fit is to the same bags, of which there are few
        return model

    def fixed(self, value):
        Judge.calls, Judge.score = [], staticmethod(lambda k: 0.0)
        return self.model({"scale": [value]}).fit(self.bags)

    def chosen(self, model):
        median = distribution.RandomFourierEmbedding(6).fit(self.bags.take(np.arange(12, 40))).bandwidth_
        assert model.embedding_.bandwidth_ == pytest.approx(median * model.tuned_["scale"])
        assert model.embedding_.scale == model.tuned_["scale"]
        return model.tuned_["scale"]

    def numbers(self, model):
        return np.append(model.predict(self.bags), model.regressor_.mean_)


class EmbeddedClasses(Embedded):
    kind, bags = distribution.EmbeddingClassifier, CLASSES
    units = ()  # classes do not tell bags apart

    def numbers(self, model):
        return model.predict_proba(self.bags)[:, 1]


# -- settings of learners from records --------------------------------------------------------------------------------


class ClusterClassifier(Choice):
    """λ of a logistic regression on clusters. What was tried predicts: the records that chose stay held out."""

    grid, units = (0.001, 0.1, 10.0), tuple(FRAME["who"])

    def model(self):
        return vocabulary.LogisticOnClusters(OptimalQuantizer(0.99), list(self.grid), random_state=4)

    def choose(self, patch, planted=None):
        learning, one = on_clusters, records()
        right, count = learning.log_likelihood, learning.ContingencyTables.from_codes
        seen = {}

        def counted(encoder, codes, y, **how):
            seen["fitted"] = tuple(FRAME["who"].iloc[codes[:, 0]])
            return count(encoder, codes, y, **how)

        def judged(y, p):
            held = [w for w in FRAME["who"] if w not in set(seen["fitted"])]
            assert y.tolist() == Y[FRAME["who"].isin(held)].tolist()
            value = self.grid[len(self.tries)]
            self.tries.append(Try(value, seen["fitted"], tuple(held)))
            return right(y, p) if planted is None else planted(value)

        kind = type(self.model())
        candidates = kind._candidates

        def tried(model, rows):
            assert rows.y.tolist() == Y[FRAME["who"].isin(seen["fitted"])].tolist()
            return candidates(model, rows)

        patch.setattr(kind, "_candidates", tried)
        patch.setattr(learning, "log_likelihood", judged)
        patch.setattr(learning.ContingencyTables, "from_codes", counted)
        return self.model().fit(one)

    def fixed(self, value):
        return vocabulary.LogisticOnClusters(OptimalQuantizer(0.99), [value], random_state=4).fit(records())

    def chosen(self, model):
        return self.grid[model.best_]

    def numbers(self, model):
        return model.predict_proba(FRAME)[:, 1]


class NetworkOnClusters(ClusterClassifier):
    """Settings that are drawn: numbered by their order."""

    grid, anew = (0, 1), True

    def model(self, trials=2):
        return vocabulary.NetworkOnClusters(OptimalQuantizer(0.99), trials, 1, 64, 2, random_state=4)

    def choose(self, patch, planted=None):
        small = lambda trial, rng: {"hidden": 4, "layers": 1, "rate": 0.01 * (1 + trial), "clip": 10.0, "l2": 0.0}  # noqa: E731
        patch.setattr(cluster_training, "draw_settings", small)
        model = super().choose(patch, planted)
        self.all = model
        return model

    def fixed(self, value):
        self.all.best_, kept = value, self.all.best_
        p = self.all.predict_proba(FRAME)[:, 1]
        self.all.best_ = kept
        return p

    def numbers(self, model):
        return model if isinstance(model, np.ndarray) else super().numbers(model)


class Path(Choice):
    """λ of a logistic regression on records: weaker ones until it gets worse, then stronger ones."""

    grid, units, close = (2.0**5, 2.0**7, 2.0**9), tuple(range(160)), 1e-3

    def model(self, l2="held_out"):
        return maxent.LogisticSkyline(False, l2, tol=1e-12, random_state=5)

    def choose(self, patch, planted=None):
        right, group, seen = skyline.log_likelihood, skyline.group_records, []

        def grouped(index, row_of, y, size):
            seen.append(tuple(row_of.tolist()))
            return group(index, row_of, y, size)

        def judged(y, p):
            k = len(self.tries)
            value = 2.0 ** (7 - k) if not self.risen else 2.0 ** (8 + k - self.risen)
            held = tuple(sorted(set(range(160)) - set(seen[0])))
            assert y.tolist() == Y[list(held)].tolist()
            self.tries.append(Try(value, seen[0], held))
            score = right(y, p) if planted is None else planted(value)
            if k and not self.risen and score < self.before:
                self.risen = k + 1
            self.before = score
            return score

        self.risen, self.before = 0, 0.0
        patch.setattr(skyline, "log_likelihood", judged)
        patch.setattr(skyline, "group_records", grouped)
        model = self.model().fit(records())
        assert sorted(seen[-1]) == list(range(160))
        return model

    def fixed(self, value):
        return self.model(value).fit(records())

    def chosen(self, model):
        return model.l2_

    def numbers(self, model):
        return model.predict_proba(FRAME)[:, 1]


class BestPair(Choice):
    """The pair of features of the best criterion; it is of the tables that are fitted, and nothing is held out."""

    grid = (0, 1, 2)
    frame = PLAIN.assign(c=RNG.choice(list("pq"), 160))

    def choose(self, patch, planted=None):
        right, module = maxent.best_pair.fit_pair, maxent.best_pair
        made = []

        def fitted(table, l2, max_iter):
            coefs, score = right(table, l2, max_iter)
            made.append(score if planted is None else planted(len(made)))
            return coefs, made[-1]

        patch.setattr(module, "fit_pair", fitted)
        return maxent.BestPairClassifier().fit(tables(self.frame))

    def fixed(self, value):
        pair = list(tables(self.frame).pairs)[value]
        names = [list(self.frame)[i] for i in pair]
        return maxent.BestPairClassifier().fit(
            ContingencyTables.from_records(self.frame.assign(y=Y), "y", pairs=[names])
        )

    def chosen(self, model):
        return model.best_

    def numbers(self, model):
        return model.predict_proba(self.frame)[:, 1]


# -- a parameter by aggregates ----------------------------------------------------------------------------------------


class ByAggregates(Choice):
    """One parameter by the second of two halves of a release, then the whole of it."""

    grid, parameter = (0.5, 20.0, 500.0), "smoothing"
    learner = maxent.NaiveBayesClassifier()

    def observation(self):
        first = np.arange(160) % 2 == 0
        encoder = FrameEncoder.fit(PLAIN)
        return Halves(*(ContingencyTables.from_codes(encoder, encoder.encode(PLAIN[p]), Y[p]) for p in (first, ~first)))

    def true(self, right, model, held):
        return -model.smoothing  # the score of tables needs a model of all features

    def whole(self, given):
        return given.combined

    def halves(self, given):
        return given.first.digest, given.second.digest

    def choose(self, patch, planted=None):
        kind, given = type(self.learner), self.observation()
        right, fit, fitted = getattr(kind, "held_out_score", None), kind._fit, []

        def spied(model, observation):
            fitted.append(observation)
            return fit(model, observation)

        def judged(model, held, seed):
            value = self.grid[len(self.tries)]
            self.tries.append(Try(value, (fitted[len(self.tries)].digest,), (held.digest,)))
            return self.true(right, model, held) if planted is None else planted(value)

        patch.setattr(kind, "_fit", spied)
        patch.setattr(kind, "held_out_score", judged, raising=False)
        model = labelsums.AggregateSearch(self.learner, self.parameter, list(self.grid), random_state=6).fit(given)
        assert fitted[-1].digest == self.whole(given).digest
        self.units = self.halves(given)
        return model

    def fixed(self, value):
        return type(self.learner)(**{self.parameter: value}).fit(self.whole(self.observation()))

    def chosen(self, model):
        return model.value_

    def numbers(self, model):
        return model.predict_proba(PLAIN)[:, 1]


class ByHalvesOfSums(ByAggregates):
    parameter, learner = "l2", labelsums.WALRClassifier()

    def true(self, right, model, held):
        return right(model, held)

    def observation(self):
        mapped = FeatureMap.fit("onehot", FrameEncoder.fit(PLAIN), PLAIN)
        parts = [np.flatnonzero(np.arange(160) % 2 == k) for k in (0, 1)]
        return Halves(*(LabelSums.from_map(mapped, PLAIN.iloc[p].reset_index(drop=True), Y[p]) for p in parts))


class ByThinning(ByAggregates):
    """Tables are thinned into two; the final fit is to the tables as they are."""

    def observation(self):
        return tables()

    def whole(self, given):
        return given

    def halves(self, given):
        return ()


class BagLearnerOnRecords(ByAggregates):
    """The same by records held out."""

    def halves(self, given):
        return tuple(range(160))

    def choose(self, patch, planted=None):
        selection, masks = labelsums.selection, []
        right, aggregate = selection.log_likelihood, labelsums.RecordSearch._aggregate

        def aggregated(model, given, rows):
            masks.append(rows)
            return aggregate(model, given, rows)

        def judged(y, p):
            value = self.grid[len(self.tries)]
            assert y.tolist() == Y[~masks[0]].tolist()
            self.tries.append(Try(value, tuple(np.flatnonzero(masks[0])), tuple(np.flatnonzero(~masks[0]))))
            return right(y, p) if planted is None else planted(value)

        patch.setattr(selection, "log_likelihood", judged)
        patch.setattr(labelsums.RecordSearch, "_aggregate", aggregated)
        model = labelsums.RecordSearch(self.learner, self.parameter, list(self.grid), random_state=6).fit(
            records(PLAIN)
        )
        assert masks[-1].all()
        self.units = self.halves(None)
        return model

    def fixed(self, value):
        return type(self.learner)(**{self.parameter: value}).fit(tables())


# -- early stopping, and the fastest option ---------------------------------------------------------------------------


class EarlyStopping(Choice):
    """The weights of one of the looks at held-out bags: looks go by their number."""

    grid, units, anew = (0, 3, 9), tuple(np.float32(X[::4, 0]).tolist()), True

    def choose(self, patch, planted=None):
        from agglearn.networks import training

        right, made, self.looks = training.loss_of, [], []
        batches, evaluate = distribution.DeepSetsRegressor._batches, distribution.DeepSetsRegressor._evaluate

        def named(model, bags):
            made.append(tuple(np.float32(bags.X[bags.offsets[:-1], 0]).tolist()))
            return batches(model, bags)

        def looked(model, network, weights, held):
            self.looks.append(np.concatenate([np.ravel(w) for w in weights.values()]))
            return evaluate(model, network, weights, held)

        def judged(name, outputs, y):
            if isinstance(outputs, np.ndarray):  # a look, not a step
                self.tries.append(Try(len(self.tries), made[0], made[1]))
                return right(name, outputs, y) if planted is None else -planted(len(self.tries) - 1)
            return right(name, outputs, y)

        patch.setattr(distribution.DeepSetsRegressor, "_batches", named)
        patch.setattr(distribution.DeepSetsRegressor, "_evaluate", looked)
        patch.setattr(training, "loss_of", judged)
        sizes = {"features": (4, 4), "regressor": (4,), "steps": 10, "batch_size": 8, "device": "cpu"}
        model = distribution.DeepSetsRegressor(**sizes, random_state=7).fit(CLOUDS)
        assert len(self.looks) == len(model.losses_) == 10
        return model

    def fixed(self, value):
        return self.looks[value]

    def chosen(self, model):
        return int(np.nanargmin(model.losses_))

    def numbers(self, model):
        if isinstance(model, np.ndarray):
            return model
        return np.concatenate([np.ravel(w) for w in model.weights_.values()])


class Fastest(Choice):
    """The option that is first at the lowest objective, on the very counts that are reconstructed."""

    grid = (1.0, 0.5, 0.25)
    counts = FlowCounts(
        node_counts=np.array([[10.0, 20], [20, 10], [5, 25]]), noise="gaussian", scale=2.0, population_size=30,
        context={"log_potentials": np.log([[[0.7, 0.3], [0.4, 0.6]]] * 2)},
    )  # fmt: skip

    def choose(self, patch, planted=None):
        right, made = collective.reconstruction.infer, []

        def timed(*problem, **options):
            found = right(*problem, **options)
            if planted:
                found.trace = [Iterate(0, -planted(options["damping"]), -5.0, 0.0)]
            made.append(options["damping"])
            return found

        patch.setattr(collective.reconstruction, "infer", timed)
        model = collective.TunedReconstruction("nlbp-feasible", "damping", self.grid, {"max_iter": 3}).fit(self.counts)
        assert tuple(made) == self.grid
        return model

    def fixed(self, value):
        return collective.FlowReconstruction("nlbp-feasible", {"max_iter": 3, "damping": value}).fit(self.counts)

    def chosen(self, model):
        return model.value_

    def numbers(self, model):
        return np.ravel(model.edge_tables_)


# -- all of them ------------------------------------------------------------------------------------------------------

CHOICES = {
    proportions.MeanMapClassifier: [MeanMap],
    proportions.MeanEmbeddingClassifier: [MeanEmbedding, MeanEmbeddings],
    proportions.AlternatingMeanMapClassifier: [AlternatingMeanMap],
    proportions.CardinalityClassifier: [Scoring, EM],
    proportions.NormalApproximationClassifier: [Normal],
    distribution.LinearRidge: [Ridge],
    distribution.KernelRidge: [Width],
    distribution.MultinomialLogistic: [Multinomial],
    distribution.EmbeddingRegressor: [Embedded],
    distribution.EmbeddingClassifier: [EmbeddedClasses],
    distribution.DeepSetsRegressor: [EarlyStopping],
    vocabulary.LogisticOnClusters: [ClusterClassifier],
    vocabulary.NetworkOnClusters: [NetworkOnClusters],
    maxent.LogisticSkyline: [Path],
    maxent.BestPairClassifier: [BestPair],
    labelsums.AggregateSearch: [ByAggregates, ByHalvesOfSums, ByThinning],
    labelsums.RecordSearch: [BagLearnerOnRecords],
    collective.TunedReconstruction: [Fastest],
}
REASONS = {  # why there is no row for a class that speaks of a choice
    distribution.DeepSetsClassifier: "trains as DeepSetsRegressor does",
    distribution.PointNetClassifier: "trains as DeepSetsRegressor does",
    labelsums.LabelledGradientDescent: "chooses nothing; a class beside it does",
    maxent.FeatureSubsets: "subsets are drawn, and all are reported",
    maxent.MaxEntClassifier: "an estimate by moments, no choice by a score",
    maxent.NoiseAwareMaxEntClassifier: "as MaxEntClassifier",
    maxent.ExactNoiseAwareMaxEntClassifier: "as MaxEntClassifier",
    vocabulary.Quantizer: "clusters are what is learned, not a setting",
    **{q: "clusters are what is learned, not a setting" for q in learners() if issubclass(q, vocabulary.Quantizer)},
    labelsums.WALRClassifier: "an estimate by moments, no choice by a score",
    collective.GibbsVersusMAP: "reports when one is as near as the other, and uses neither",
    proportions.InverseCalibrationClassifier: "takes its settings as they are",
    proportions.IndividualClassifier: "takes λ as it is",
    proportions.BagLearnerOnRecords: "its learner chooses",
}
SPEAKS = re.compile(r"\b(chosen?|chooses?|choosing|best|held[- ]out|tuned?|early stopping)\b")
ALL = [row for rows in CHOICES.values() for row in rows]


@pytest.mark.parametrize("kind", learners(), ids=lambda k: k.__name__)
def test_who_speaks_of_a_choice_has_a_row_or_a_reason(kind):
    text = " ".join(c.__doc__ or "" for c in kind.__mro__ if c.__module__.startswith("agglearn."))
    assert kind in CHOICES or kind in REASONS or not SPEAKS.search(text)


@pytest.fixture(params=ALL, ids=lambda row: row.__name__)
def case(request):
    warnings.simplefilter("ignore", GridEdge)
    return request.param()


@pytest.fixture(params=[row for row in ALL if not row.alike], ids=lambda row: row.__name__)
def distinct(request):
    warnings.simplefilter("ignore", GridEdge)
    return request.param()


@pytest.fixture(
    params=[row for row in ALL if not row.alike and (row.units or issubclass(row, ByAggregates))],
    ids=lambda row: row.__name__,
)
def judged(request):
    """Those that hold something out."""
    warnings.simplefilter("ignore", GridEdge)
    return request.param()


def apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.slow
def test_the_value_chosen_is_the_one_used(case):
    """Values of the grid are chosen in turn: the model is the one that has the value from the start, and no other."""
    given = {}
    for value in case.grid[1:]:  # the first one where all are equal, below
        case.tries = []
        with pytest.MonkeyPatch.context() as patch:
            model = case.choose(patch, lambda v, value=value: -abs(np.log2(v + 1) - np.log2(value + 1)))
        assert case.chosen(model) == pytest.approx(value)
        if case.anew or not given:
            given = {v: case.numbers(case.fixed(v)) for v in case.grid}
        gaps = [apart(case.numbers(model), given[v]) for v in case.grid]
        at = case.grid.index(value)
        assert gaps[at] <= case.close
        assert min(g for k, g in enumerate(gaps) if k != at) > max(10 * gaps[at], 1e-4)


def test_values_are_judged_by_units_that_they_were_not_fitted_to(judged):
    case = judged
    with pytest.MonkeyPatch.context() as patch:
        case.choose(patch)
    assert case.tries
    for one in case.tries:
        assert one.fitted
        assert one.judged
        assert not set(one.fitted) & set(one.judged)
        assert isinstance(case, ByThinning) or set(one.fitted) | set(one.judged) == set(case.units)
    by = {}
    for one in case.tries:
        by.setdefault(one.value, []).append(one.judged)
    assert len(by) >= 2
    assert len({tuple(v) for v in by.values()}) == 1  # all values by the same units


def test_of_equal_scores_the_first_is_taken_and_ends_are_stated(distinct):
    case = distinct
    with pytest.MonkeyPatch.context() as patch:
        model = case.choose(patch, lambda v: 0.0)
    first = 2.0**skyline.FIRST if isinstance(case, Path) else case.grid[0]
    assert case.chosen(model) == first
    if case.edges:
        assert model.edges_
        with pytest.MonkeyPatch.context() as patch:
            middle = type(case)().choose(patch, lambda v: -abs(np.log2(v / case.grid[1])))
        own = {"Ridge": "strength", "Multinomial": "l2", "Width": "width"}.get(str(case), "scale")
        assert own in model.edges_
        assert own not in middle.edges_


DIVERGES = [
    MeanMap,
    Ridge,
    Multinomial,
    Embedded,
    ClusterClassifier,
    BestPair,
    ByAggregates,
    BagLearnerOnRecords,
    EarlyStopping,
]


@pytest.mark.parametrize("row", DIVERGES, ids=lambda row: row.__name__)
def test_a_value_that_diverged_is_never_chosen(row):
    case = row()
    with pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", GridEdge)
        model = case.choose(patch, lambda v: np.nan if v == case.grid[0] else -float(v))
    assert case.chosen(model) != case.grid[0]


def test_the_best_of_scores():
    assert choose_best([1.0, 3.0, 2.0]) == 1
    assert choose_best([3.0, 3.0, 2.0]) == 0
    assert choose_best([np.nan, -np.inf, 2.0]) == 2
    assert choose_best([np.nan, -np.inf]) == 1
    with pytest.raises(DataError, match="try others"):
        choose_best([np.nan, np.nan])


# -- details that belong to one class ---------------------------------------------------------------------------------


def test_scores_of_bags_count_by_the_size_of_their_part():
    """41 bags fall into a part of 9 and four of 8: 9 bags of 1 are more than 32 of 0.26, and one part is less than four."""
    bags = Bags(np.arange(82.0)[:, None], np.arange(0, 83, 2), np.ones(41, int))
    score = lambda held, l2: float(len(held) == 9) if l2 == 50 else 0.26 * (len(held) == 8)  # noqa: E731
    chosen, _ = base.choose_l2("held_out", bags, lambda part: lambda l2, last: l2, score, 0)
    assert chosen == 50


def test_a_path_of_penalties_starts_from_the_next_stronger_one():
    starts, bags = [], Bags(np.arange(20.0)[:, None], np.arange(0, 21, 2), np.ones(10, int))

    def fitter(part):
        return lambda l2, last: starts.append((l2, last)) or l2

    assert base.choose_l2(3.0, bags, fitter, None, 0) == (3.0, None)
    chosen, near = base.choose_l2("held_out", bags, fitter, lambda held, l2: -abs(l2 - 0.5), 0)
    assert (chosen, near) == (0.5, 0.5)
    assert starts[:3] == [(50.0, None), (5.0, 50.0), (0.5, 5.0)]
    assert starts[5:7] == [(50.0, 50.0), (5.0, 5.0)]  # in the next part from the solution of the last


def test_a_learner_of_counted_bags_hands_its_choice_on():
    one = records(PLAIN)
    counted = CountedBags.from_records(one.encoder, one.frame, one.y, 4, np.random.default_rng(0))
    model = proportions.BagLearnerOnRecords(proportions.MeanMapClassifier(l2=3.0)).fit(counted)
    assert model.learner_.l2_ == 3.0
    direct = proportions.MeanMapClassifier(l2=3.0).fit(counted.bags())
    np.testing.assert_array_equal(model.learner_.coef_, direct.coef_)


def test_the_penalty_of_the_strengths_that_were_not_chosen_is_not_used():
    """A regression whose two best parameters differ: the width's own λ goes with it."""
    with pytest.MonkeyPatch.context() as patch:
        plant_losses(patch, [[5.0, 4.0], [3.0, 9.0]])
        model = distribution.KernelRidge([0.5, 2.0], strengths=[0.1, 10.0], random_state=0).fit(X[:60], TARGET)
    assert (model.multiple_, model.ridge_.strength_, model.score_) == (2.0, 0.1, 3.0)
    given = distribution.KernelRidge([2.0], strengths=[0.1], random_state=0).fit(X[:60], TARGET)
    np.testing.assert_array_equal(model.predict(X[:60]), given.predict(X[:60]))


def test_leave_one_out_scores_and_those_of_held_out_vectors_by_refitting():
    z, y, held = X[:12], TARGET[:12], (X[12:20], TARGET[12:20])
    for strength in (0.01, 1.0):
        errors = []
        penalty = distribution.LinearRidge([strength]).fit(z, y).l2_
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            centred = z[rest] - z[rest].mean(axis=0)
            beta = np.linalg.solve(centred.T @ centred + penalty * np.eye(3), centred.T @ (y[rest] - y[rest].mean()))
            errors.append((y[i] - y[rest].mean() - (z[i] - z[rest].mean(axis=0)) @ beta) ** 2)
        assert distribution.LinearRidge([strength]).fit(z, y).score_ == pytest.approx(np.mean(errors))
        model = distribution.LinearRidge([strength]).fit(z, y, held)
        assert model.score_ == pytest.approx(np.mean((held[1] - model.predict(held[0])) ** 2))
