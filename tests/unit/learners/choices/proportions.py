"""λ of learners from bags."""

from types import MappingProxyType

import numpy as np

from agglearn import proportions
from agglearn.proportions import base, means
from choices.base import BAGS, Choice, Try, X


class OfBags(Choice):
    """λ by held-out bags; a bag goes by the first covariate of its first instance."""

    grid = (100.0, 1.0, 0.01)
    units = tuple(np.float32(X[::4, 0]).tolist())
    kind, more, path = proportions.MeanMapClassifier, MappingProxyType({}), (base, "PATH")

    def model(self, l2="held_out"):
        return self.kind(l2=l2, random_state=3, **self.more)

    def names(self, bags):
        return tuple(np.float32(bags.X[bags.offsets[:-1], 0]).tolist())

    def choose(self, patch, planted=None):
        right = base.BagClassifier._choose_l2

        def spied(model, bags, fitter, score=None, *more):
            def fit(part):
                solve = fitter(part)
                return lambda value, last: self.tries.append(Try(value, self.names(part))) or solve(value, last)

            def judged(held, theta):
                self.tries[-1].judged = self.names(held)
                true = score or base.validation_likelihood
                return true(held, theta) if planted is None else planted(self.tries[-1].value)

            return right(model, bags, fit, judged, *more)

        patch.setattr(*self.path, self.grid)
        patch.setattr(base, "FOLDS", 2)
        patch.setattr(base.BagClassifier, "_choose_l2", spied)
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
    kind = proportions.AlternatingMeanMapClassifier


class Scoring(OfBags):
    kind, close = proportions.CardinalityClassifier, 0.02
    more = MappingProxyType({"tol": 1e-9})


class EM(Scoring):
    grid, more, alike = (100.0, 10.0), MappingProxyType({"solver": "em", "tol": 1e-6}), True


class Normal(Scoring):
    kind, alike = proportions.NormalApproximationClassifier, True
