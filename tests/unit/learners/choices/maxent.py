"""λ of a logistic regression, and the best pair of features."""

from agglearn import maxent
from agglearn.maxent import skyline
from agglearn.observations import ContingencyTables
from choices.base import FRAME, PLAIN, RNG, Choice, Try, Y, records, tables


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
            coefs, score, records = right(table, l2, max_iter)
            made.append(score if planted is None else planted(len(made)))
            return coefs, made[-1], records

        patch.setattr(module, "fit_pair", fitted)
        return maxent.BestPairClassifier().fit(tables(self.frame))

    def fixed(self, value):
        pair = list(tables(self.frame).pairs)[value]
        names = [list(self.frame)[i] for i in pair]
        single = ContingencyTables.from_records(self.frame.assign(y=Y), "y", pairs=[names])
        return maxent.BestPairClassifier().fit(single)

    def chosen(self, model):
        return model.best_

    def numbers(self, model):
        return model.predict_proba(self.frame)[:, 1]
