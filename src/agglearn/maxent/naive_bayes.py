"""Naive Bayes from the contingency tables of single features, in the three kinds that the paper describes."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError, NotAvailable
from agglearn.estimator import StagedClassifier
from agglearn.linear.sparse_logistic import log_odds
from agglearn.maxent.model import MaxEntClassifier
from agglearn.maxent.warming import TINY
from agglearn.maxent.weight_index import positions
from agglearn.observations import ContingencyTables
from agglearn.saving import expect
from agglearn.settings import Count, NonNegative, Positive, Share, Whole

L2_GRID = tuple(2.0**e for e in range(12, -7, -1))
LARGEST = 50.0  # log-odds of a modality that never occurs with one label, without smoothing


class NaiveBayesClassifier(StagedClassifier):
    """P(Y=1|X=x) = σ(b + Σ_i θ_i(x_i)), each θ_i learned from the table of feature i alone. Pair tables are ignored.

    Kinds (Gilotte et al. 2022, section 4.1, appendix A): `generative`, θ_i = log P(x_i|Y=1) − log P(x_i|Y=0), the
    maximum-entropy model of these tables. `pcd`, the same trained like `MaxEntClassifier`, which the paper did,
    stopping early. `logistic`, one L2-regularised logistic regression per feature, whose log-odds − b are added up.

    Parameters
    ----------
    kind, smoothing, l2 : str, float, float
        See above, records added to every modality of each label (`generative`), λ of all regressions (`logistic`).
    n_chains, l2_mu, l2_theta, max_iter, step_mu, step_theta, average, trace_every, random_state
        See `MaxEntClassifier` (`pcd`), as for the attributes `intercept_`, `n_iter_` and `trace_`.

    Attributes
    ----------
    theta_, l2_grid_, theta_grid_ : ndarray of shape (K,), (G,), (G, K)
        Weights in the encoder's order. λs of a log2 grid, strong to weak, and the weights at these (`logistic`).
    """

    observes = ContingencyTables
    kind: Literal["generative", "pcd", "logistic"] = "generative"
    smoothing: NonNegative = 1.0
    l2: NonNegative = 1.0
    n_chains: Count = 10_000
    l2_mu: NonNegative = 1.0
    l2_theta: NonNegative = 16.0
    max_iter: Count = 200
    step_mu: Positive | None = None
    step_theta: Positive | None = None
    average: Share = 0.0
    trace_every: Whole = 1

    def warm_up(self) -> None:
        """Compile or load the kernels, so that the time of a fit is that of learning."""
        clone(self).set_params(n_chains=8, max_iter=2).fit(*TINY)

    def _fit(self, observation: ContingencyTables) -> None:
        if absent := [name for i, name in enumerate(observation.names) if (i,) not in observation.tables]:
            raise DataError(f"naive Bayes needs the table of every feature; {absent[0]!r} has none")
        self._set_encoder(observation.encoder)
        self.intercept_ = log_odds(observation.positives, observation.total)
        tables = [observation.dense(i) for i in range(len(observation.names))]
        if self.kind == "generative":
            self.theta_ = np.concatenate([generative(d, c, self.smoothing) for d, c in tables])
        elif self.kind == "logistic":
            self._fit_logistic(tables)
        else:
            self._fit_pcd(replace(observation, tables={k: t for k, t in observation.tables.items() if len(k) == 1}))

    def _fit_logistic(self, tables: list[tuple[np.ndarray, np.ndarray]]) -> None:
        started, self._seconds = time.perf_counter(), []
        self.l2_grid_, grid = np.array(L2_GRID), []
        for l2 in L2_GRID:
            grid.append(np.concatenate([discriminative(d, c, l2) for d, c in tables]) - self.intercept_)
            self._seconds.append(time.perf_counter() - started)
        self.theta_grid_ = np.array(grid)
        self.theta_ = np.concatenate([discriminative(d, c, self.l2) for d, c in tables]) - self.intercept_

    def _fit_pcd(self, tables: ContingencyTables) -> None:
        shared = self.get_params().keys() & MaxEntClassifier().get_params().keys()
        model = MaxEntClassifier(**{name: getattr(self, name) for name in shared}, momentum=0.0, tol=0.0).fit(tables)
        self.theta_, self.n_iter_ = np.diag(model.theta_).copy(), model.n_iter_
        self.trace_ = model.trace_

    def _check_state(self) -> None:
        super()._check_state()
        k = int(self.encoder_.sizes.sum())
        expect(self, theta_=("f", (k,)), intercept_=float)

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self._label_probability(positions(self.encoder_, X), self.theta_)

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        check_is_fitted(self)
        stages = getattr(self, "trace_", [])
        if self.kind == "logistic":
            seconds = getattr(self, "_seconds", [float("nan")] * len(self.l2_grid_))
            stages = list(zip(range(len(self.l2_grid_)), seconds, self.theta_grid_, strict=True))
        if not stages:
            raise NotAvailable(f"a naive Bayes of kind {self.kind!r} has no stages, or none that were saved")
        rows = positions(self.encoder_, X)
        for step, elapsed, theta in stages:
            yield step, elapsed, self._label_probability(rows, theta)

    def _label_probability(self, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return expit(self.intercept_ + np.append(theta, 0.0)[rows].sum(axis=1))  # −1 reads the appended 0


def generative(d: np.ndarray, c: np.ndarray, smoothing: float) -> np.ndarray:
    """Return (M,) log P(x|1) − log P(x|0) with `smoothing` added to each count of either label, 0 for empty ones."""
    ones, zeros = np.maximum(c, 0) + smoothing, np.maximum(d - c, 0) + smoothing
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(ones / ones.sum()) - np.log(zeros / zeros.sum())
    return np.nan_to_num(ratio, nan=0.0, posinf=LARGEST, neginf=-LARGEST)


def discriminative(d: np.ndarray, c: np.ndarray, l2: float) -> np.ndarray:
    """Return (M,) log-odds of the logistic regression on one feature, by Newton's method with halved steps."""
    d, c = np.maximum(d, 0.0), np.clip(c, 0.0, np.maximum(d, 0.0))
    w, b = np.zeros(len(d)), log_odds(c.sum(), max(d.sum(), 1.0))

    def loss(w: np.ndarray, b: float) -> float:
        return np.sum(d * np.logaddexp(0, w + b) - c * (w + b)) + l2 * (w @ w)

    value = loss(w, b)
    for _ in range(100):
        p = expit(w + b)
        h, residual = d * p * (1 - p), d * p - c
        gradient, diagonal = residual + 2 * l2 * w, h + 2 * l2 + 1e-12
        move_b = (residual.sum() - np.sum(h * gradient / diagonal)) / (np.sum(h * (1 - h / diagonal)) + 1e-12)
        move_w, step = (gradient - h * move_b) / diagonal, 1.0
        while loss(w - step * move_w, b - step * move_b) > value and step > 1e-9:
            step /= 2
        w, b, before = w - step * move_w, b - step * move_b, value
        value = loss(w, b)
        if before - value <= 1e-14 * abs(before):
            break
    return w + b
