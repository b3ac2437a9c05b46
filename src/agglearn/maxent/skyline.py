"""Logistic regression on all records with the weights of the maximum-entropy model: the best that it could reach."""

from typing import Literal

import numpy as np
import pandas as pd
from sklearn.base import clone

from agglearn.estimator import RecordClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.linear.path import fit_path
from agglearn.linear.sparse_design import Cells, table_keys
from agglearn.linear.sparse_logistic import BLOCKS, WORTH_THREADS, SparseLogistic, predict
from agglearn.maxent.warming import TINY
from agglearn.observations import Records
from agglearn.saving import expect
from agglearn.seeds import draw_generator, split_validation
from agglearn.settings import Count, NonNegative, Part

FIRST, STRONGEST, WEAKEST = 7, 12, -6  # exponents of the path of λ


class LogisticSkyline(RecordClassifier):
    """P(Y=1|X=x) = σ(φ(x)·θ + b), fitted to individual records (Gilotte et al. 2022, sections 3.2, 5.2, appendix A).

    Parameters
    ----------
    quadratic, l2 : bool, float or str
        Whether pairs of modalities have weights. λ in λ‖θ‖², added to the negative log-likelihood of all records.
        `held_out` goes from 2⁷ down by factors of 2 (up if that is no better) until held-out records get less likely.
    max_iter, validation, tol, random_state : int, float, float, int or None
        L-BFGS iterations, fraction of records that chooses λ and its seed, fraction of the loss that ends a fit.

    Attributes
    ----------
    l2_, path_ : float, ndarray of shape (λs, 2)
        Each λ of the path and its mean log-likelihood of held-out records. It is empty for a given λ.
    coef_, cells_flat_, cells_bounds_ : ndarray of shape (m,), (m,), (tables + 1,)
        Weights of the cells, or buckets, that occur, their numbers within their tables, and each table's first cell.
    intercept_, cross_buckets_ : float, int or None
    """

    observes = Records
    quadratic: bool = True
    l2: Literal["held_out"] | NonNegative = "held_out"
    max_iter: Count = 200
    validation: Part = 0.2
    tol: NonNegative = 1e-8

    def _fit(self, observation: Records) -> None:
        codes, y = observation.codes, np.asarray(observation.y, dtype=float)
        self._set_encoder(observation.encoder)
        rows, row_of = np.unique(codes, axis=0, return_inverse=True)
        cells = Cells.from_codes(rows, observation.encoder.sizes, self.quadratic, observation.cross_buckets)
        self.cells_flat_, self.cells_bounds_, self.cross_buckets_ = cells.flat, cells.bounds, cells.cross_buckets
        index, row_of = cells.index(rows), row_of.ravel()
        start, self.path_ = None, np.empty((0, 2))
        if self.l2 == "held_out":
            start = self._choose(index, row_of, y, cells.size)
        else:
            self.l2_ = self.l2
        solution = group_records(index, row_of, y, cells.size).fit(self.l2_, start, self.max_iter, self.tol)
        self.coef_, self.intercept_ = solution[:-1], float(solution[-1])

    def warm_up(self) -> None:
        """Compile or load the kernels, so that the time of a fit is that of learning."""
        clone(self).set_params(l2=1.0).fit(*TINY)
        index = np.zeros((WORTH_THREADS // BLOCKS + 1, BLOCKS), np.int32)  # enough weights for the threaded kernel
        SparseLogistic(index, np.ones(BLOCKS), np.ones(BLOCKS), 1).objective(np.zeros(2), 1.0)

    def _choose(self, index: np.ndarray, row_of: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
        validation, training = split_validation(len(y), self.validation, draw_generator(self.random_state))
        problem = group_records(index, row_of[training], y[training], size)
        rows = index.take(row_of[validation], axis=1)

        def solve(l2: float, start: np.ndarray | None) -> np.ndarray:
            return problem.fit(l2, start, self.max_iter, tol=1e-5)

        def score(solution: np.ndarray) -> float:
            return log_likelihood(y[validation], predict(rows, solution[:-1], solution[-1]))

        fits = fit_path([2.0**k for k in range(FIRST, WEAKEST - 1, -1)], solve, score)
        if choose_best([fit.score for fit in fits]) == 0:
            fits += fit_path([2.0**k for k in range(FIRST + 1, STRONGEST + 1)], solve, score, fits[0])
        self.path_ = np.array([(fit.l2, fit.score) for fit in fits])
        self.l2_, _, solution = fits[choose_best(self.path_[:, 1])]
        return solution

    def _check_state(self) -> None:
        super()._check_state()
        tables = len(table_keys(len(self.encoder_.sizes), self.quadratic))
        expect(self, cells_flat_=("i", (None,)), cells_bounds_=("i", (tables + 1,)), intercept_=float)
        expect(self, coef_=("f", self.cells_flat_.shape))
        bounds = self.cells_bounds_
        if bounds[0] != 0 or bounds[-1] != len(self.coef_) or (np.diff(bounds) < 0).any():
            raise ValueError(f"LogisticSkyline.cells_bounds_: must ascend from 0 to {len(self.coef_)}")

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        sizes = self.encoder_.sizes
        keys = table_keys(len(sizes), self.quadratic)
        cells = Cells(sizes, keys, self.cells_flat_, self.cells_bounds_, self.cross_buckets_)
        return predict(cells.index(self.encoder_.encode(X)), self.coef_, self.intercept_)


def group_records(index: np.ndarray, row_of: np.ndarray, y: np.ndarray, size: int) -> SparseLogistic:
    counts = np.bincount(row_of, minlength=index.shape[1])
    positives, occurs = np.bincount(row_of, y, index.shape[1]), counts > 0
    index = index if occurs.all() else index.take(np.flatnonzero(occurs), axis=1)  # rows stay contiguous
    return SparseLogistic(index, counts[occurs].astype(float), positives[occurs], size)
