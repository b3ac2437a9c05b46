"""A parameter of a learner by aggregates, and by records held out."""

import numpy as np

from agglearn import labelsums, maxent
from agglearn.encoding import FrameEncoder
from agglearn.observations import ContingencyTables, Halves
from choices.base import PLAIN, Choice, Try, Y, records, tables


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

        def judged(model, held, seed, n_chains=0):
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
        search = labelsums.RecordSearch(self.learner, self.parameter, list(self.grid), random_state=6)
        model = search.fit(records(PLAIN))
        assert masks[-1].all()
        self.units = self.halves(None)
        return model

    def fixed(self, value):
        return type(self.learner)(**{self.parameter: value}).fit(tables())
