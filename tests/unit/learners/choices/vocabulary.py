"""Settings of learners on clusters."""

import numpy as np

from agglearn import vocabulary
from agglearn.vocabulary import OptimalQuantizer, on_clusters
from choices.base import FRAME, Choice, Try, Y, records


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

        def tried(model, training, validation):
            assert training[1].tolist() == Y[FRAME["who"].isin(seen["fitted"])].tolist()
            return candidates(model, training, validation)

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
        patch.setattr(on_clusters, "draw_settings", small)
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
