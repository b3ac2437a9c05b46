"""B2f: the best logistic regression on two features and their interaction (Gilotte et al. 2022, section 5.2)."""

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import entr, expit

from agglearn.errors import DataError
from agglearn.estimator import StagedClassifier, choose_best
from agglearn.linear.sparse_logistic import SparseLogistic
from agglearn.observations import ContingencyTables, Table
from agglearn.progress import track
from agglearn.settings import Count, NonNegative

Coefficients = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]


class BestPairClassifier(StagedClassifier):
    """One logistic regression per pair table, on both features and their interaction, exactly from the table.

    The tables alone choose the pair for prediction: largest log-likelihood minus effective number of weights (Akaike's
    criterion), Σ h/(h + 2λ/3) over cells with h = d·p·(1−p), as if each cell had three weights of its own. Records that
    noise or a threshold took from a table count as if only the rate of positives were known. A table without records
    is left out. The paper took the pair that is best on test data, for which `staged_predict_proba` serves.

    Parameters
    ----------
    l2, max_iter, random_state : float, int, any
        λ in λ‖θ‖², added to the negative log-likelihood of a table's records. L-BFGS iterations per pair. Not used.

    Attributes
    ----------
    pairs_, scores_, best_, coefs_ : list, ndarray of shape (P,), int, list
        Names of each pair, its criterion, index of the choice. Weights of the first feature, of the second, occupied
        cells, their weights, and the intercept.
    """

    observes = ContingencyTables
    l2: NonNegative = 4.0
    max_iter: Count = 200

    def _fit(self, observation: ContingencyTables) -> None:
        if not observation.pairs:
            raise DataError("there are no tables of pairs; the best pair needs at least one")
        observation.refuse_hashed_pairs("the best pair")
        pairs = [key for key in observation.pairs if (observation.tables[key].counts > 0).any()]
        if not pairs:
            raise DataError("no table of a pair has a record; the best pair needs at least one")
        self._set_encoder(observation.encoder)
        self.pairs_ = [tuple(observation.names[i] for i in key) for key in pairs]
        self.coefs_, scores, self._seconds, started = [], [], [], time.perf_counter()
        rate = observation.positives / observation.total
        for key in track(pairs, "pairs"):
            coefs, score, records = fit_pair(observation.tables[key], self.l2, self.max_iter)
            self.coefs_.append(coefs)
            scores.append(score - max(observation.total - records, 0.0) * (entr(rate) + entr(1.0 - rate)))
            self._seconds.append(time.perf_counter() - started)
        self.scores_, self.best_ = np.array(scores), choose_best(scores)

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self._label_probability(self.encoder_.encode(X), self.best_)

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        # a stage is an index in `pairs_`
        codes = self.encoder_.encode(X)
        seconds = getattr(self, "_seconds", [float("nan")] * len(self.pairs_))
        for stage in range(len(self.pairs_)):
            yield stage, seconds[stage], self._label_probability(codes, stage)

    def _label_probability(self, codes: np.ndarray, stage: int) -> np.ndarray:
        names = self.encoder_.names
        a, b = (codes[:, names.index(name)].astype(np.int64) for name in self.pairs_[stage])
        first, second, cells, weights, intercept = self.coefs_[stage]
        flat = np.where((a >= 0) & (b >= 0), a * len(second) + b, -1)
        position = np.minimum(np.searchsorted(cells, flat), len(cells) - 1)
        interaction = np.where(cells[position] == flat, weights[position], 0.0)
        return expit(intercept + np.append(first, 0.0)[a] + np.append(second, 0.0)[b] + interaction)


def fit_pair(table: Table, l2: float, max_iter: int) -> tuple[Coefficients, float, float]:
    counts = np.maximum(table.counts, 0.0).astype(float)
    positives = np.clip(table.label_sums, 0.0, counts)
    cells, counts, positives = table.cells[counts > 0], counts[counts > 0], positives[counts > 0]
    m, n = table.shape
    index = np.stack([cells // n, m + cells % n, m + n + np.arange(len(cells))]).astype(np.int32)
    problem = SparseLogistic(index, counts, positives, m + n + len(cells))
    solution = problem.fit(l2, max_iter=max_iter, tol=1e-10)
    p = problem.probabilities(solution)
    h = counts * p * (1 - p)
    weights, intercept = solution[:-1], float(solution[-1])
    likelihood = l2 * (weights @ weights) - problem.objective(solution, l2)[0]
    criterion = likelihood - np.sum(h / (h + 2 * l2 / 3 + 1e-12))
    return (weights[:m], weights[m : m + n], cells, weights[m + n :], intercept), float(criterion), float(counts.sum())
