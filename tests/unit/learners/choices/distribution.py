"""Strengths of regressors of vectors, parameters of embeddings, and early stopping."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from agglearn import distribution
from choices.base import CLASSES, CLOUDS, LABELS, TARGET, Choice, Try, X


def plant_losses(patch, rows: list):
    """The next regressions have these losses, one row for each."""
    left = iter(rows)
    patch.setattr(distribution.ridge.Factors, "left_out", lambda self, penalties: next(left))


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
        loss, model = logistic._loss, distribution.MultinomialLogistic(list(self.grid))
        solver = model._solver
        names = lambda z: tuple(np.round((z[:, 0] * model.scale_ + model.centre_[0]) * 160).astype(int).tolist())  # noqa: E731

        def fitted(z, y):
            self.last = names(z)
            return solver(z, y)

        def judged(theta, z, y):
            value = self.grid[len(self.tries)]
            self.tries.append(Try(value, self.last, names(z)))
            return loss(theta, z, y) if planted is None else -planted(value)

        patch.setattr(model, "_solver", fitted)
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
