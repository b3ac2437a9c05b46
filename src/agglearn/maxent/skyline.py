"""Logistic regression on all records with the weights that the maximum-entropy model has: what it could reach at best."""

from typing import Literal

import numpy as np
from sklearn.base import clone

from agglearn.estimator import RecordClassifier
from agglearn.evaluation.metrics import log_likelihood
from agglearn.linear.sparse_design import Cells, table_keys
from agglearn.linear.sparse_logistic import BLOCKS, WORTH_THREADS, SparseLogistic, predict
from agglearn.maxent.warming import tiny_records
from agglearn.observations import Records
from agglearn.persistence import expect
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Part

FIRST, STRONGEST, WEAKEST = 7, 12, -6  # exponents of the λ path


class LogisticSkyline(RecordClassifier):
    """P(Y=1|X=x) = σ(φ(x)·θ + b), fitted to individual records (Gilotte et al. 2022, sections 3.2, 5.2, appendix A).

    Parameters
    ----------
    quadratic : one weight per modality and per pair of modalities; False for modalities only.
    l2 : λ in λ‖θ‖², added to the negative log-likelihood of all records; `path` to choose it: from λ = 2⁷ to weaker ones
        (where these are worse, to stronger ones) on a log2 grid, each fit started from the last, until the rows held
        out say that it got worse.
    max_iter : L-BFGS iterations per fit.
    validation : share of the records held out to choose λ; the model is then fitted to all of them.
    tol : L-BFGS stops when an iteration gains less than this share of the loss.
    random_state : seed of the choice of held-out rows, or None for a fresh one.

    Attributes
    ----------
    l2_ : λ used. path_ : (λs, 2) each λ tried and its mean log-likelihood of held-out rows; empty for a given λ.
    coef_ : (m,) weights of the cells that occur, or of the buckets where the records say that pairs are hashed.
    cells_flat_, cells_bounds_ : (m,) the cells that occur, by number within their table, and where each table begins.
    cross_buckets_ : as the records had it. intercept_ : b. encoder_, classes_.
    """

    observes = Records

    def __init__(
        self,
        quadratic: bool = True,
        l2: Literal["path"] | NonNegative = "path",
        max_iter: Count = 200,
        validation: Part = 0.2,
        tol: NonNegative = 1e-8,
        random_state=None,
    ):
        self.quadratic = quadratic
        self.l2 = l2
        self.max_iter = max_iter
        self.validation = validation
        self.tol = tol
        self.random_state = random_state

    def _fit(self, observation):
        codes, y = observation.codes, np.asarray(observation.y, dtype=float)
        self.classes_, self.encoder_ = np.array([0, 1]), observation.encoder
        rows, row_of = np.unique(codes, axis=0, return_inverse=True)
        cells = Cells.from_codes(rows, observation.encoder.sizes, self.quadratic, observation.cross_buckets)
        self.cells_flat_, self.cells_bounds_, self.cross_buckets_ = cells.flat, cells.bounds, cells.cross_buckets
        index, row_of = cells.index(rows), row_of.ravel()
        start, self.path_, self.l2_ = None, np.empty((0, 2)), self.l2
        if self.l2 == "path":
            start = self._choose(index, row_of, y, cells.size)
        solution = grouped(index, row_of, y, cells.size).fit(self.l2_, start, self.max_iter, self.tol)
        self.coef_, self.intercept_ = solution[:-1], float(solution[-1])

    def warm_up(self) -> None:
        """Compile the kernels, or load them, so that the first fit of a process is not charged for it."""
        clone(self).set_params(l2=1.0).fit(tiny_records())
        whole = SparseLogistic(np.zeros((WORTH_THREADS // BLOCKS + 1, BLOCKS), np.int32), *np.ones((2, BLOCKS)), 1)
        whole.objective(np.zeros(2), 1.0)  # enough active weights for the threaded kernel

    def _choose(self, index, row_of, y, size):
        """Set `l2_` and `path_`; returns the solution at the λ chosen."""
        rng = draw_generator(self.random_state)
        held = np.zeros(len(y), bool)
        held[rng.permutation(len(y))[: max(1, round(self.validation * len(y)))]] = True
        problem, index_held = grouped(index, row_of[~held], y[~held], size), index.take(row_of[held], axis=1)
        tried, best = [], (-np.inf, None, None)
        weaker, stronger = range(FIRST, WEAKEST - 1, -1), range(FIRST + 1, STRONGEST + 1)
        for exponents in (weaker, stronger):
            for exponent in exponents:
                solution = problem.fit(2.0**exponent, best[2], self.max_iter, tol=1e-5)
                score = log_likelihood(y[held], predict(index_held, solution[:-1], solution[-1]))
                tried.append((2.0**exponent, score))
                if score < best[0]:
                    break
                best = score, 2.0**exponent, solution
            if best[1] < 2.0**FIRST:
                break
        self.path_, self.l2_ = np.array(tried), best[1]
        return best[2]

    def _check_state(self):
        tables = len(table_keys(len(self.encoder_.sizes), self.quadratic))
        expect(self, cells_flat_=("i", (None,)), cells_bounds_=("i", (tables + 1,)), intercept_=float)
        expect(self, coef_=("f", self.cells_flat_.shape))
        if (
            self.cells_bounds_[0] != 0
            or self.cells_bounds_[-1] != len(self.coef_)
            or (np.diff(self.cells_bounds_) < 0).any()
        ):
            raise ValueError(f"LogisticSkyline.cells_bounds_: must ascend from 0 to {len(self.coef_)}")

    def predict_proba(self, frame) -> np.ndarray:
        """(n, 2) probabilities of both labels for raw columns, matched by name; cells never seen add nothing."""
        sizes = self.encoder_.sizes
        keys = table_keys(len(sizes), self.quadratic)
        cells = Cells(sizes, keys, self.cells_flat_, self.cells_bounds_, self.cross_buckets_)
        p = predict(cells.index(self.encoder_.encode(frame)), self.coef_, self.intercept_)
        return np.column_stack([1 - p, p])


def grouped(index: np.ndarray, row_of: np.ndarray, y: np.ndarray, size: int) -> SparseLogistic:
    """The fitting problem of some records. index : (P, rows) of all distinct rows; row_of : which of them each record is."""
    counts = np.bincount(row_of, minlength=index.shape[1])
    positives, there = np.bincount(row_of, y, index.shape[1]), counts > 0
    index = index if there.all() else index.take(np.flatnonzero(there), axis=1)  # rows stay contiguous
    return SparseLogistic(index, counts[there].astype(float), positives[there], size)
