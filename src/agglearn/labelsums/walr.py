"""Weighted aggregate logistic regression (the note on WALR), with second-order solvers and a penalty from the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit

from agglearn.encoding.design import FeatureMap
from agglearn.errors import ConfigError, NotAvailable
from agglearn.estimator import StagedClassifier
from agglearn.linear.descent import Descent, Iterate
from agglearn.linear.penalised import UPPER, CoefficientIntervalMixin, PenalisedSolution
from agglearn.linear.sum_logistic import (
    Objective,
    curvature,
    curvature_at_rate,
    model_term_variance,
    penalties,
    prior_variance,
)
from agglearn.observations import LabelSums
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Positive, Whole

OF_VARIANCE = 0.3  # of the prior variance by moments: few coefficients have most of it (six data sets, docs/ladder.md)
LEAST_VARIANCE = 1e-6  # of a label: noise may put the intercept where no label varies


class LinearModel(StagedClassifier):
    def _set_solution(self, mapped: FeatureMap, theta: np.ndarray, trace: Sequence[Iterate] = ()) -> None:
        self.classes_, self.map_ = np.array([0, 1]), mapped
        k = len(theta) - mapped.intercept
        self.coef_, self.intercept_ = theta[:k], float(theta[k]) if mapped.intercept else 0.0
        self.coef_names_ = mapped.names[:k]
        self.trace_ = list(trace)
        self.gradient_errors_ = np.array([(t, error) for t, _, _, error in trace]).reshape(-1, 2)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the columns of which the coordinates are made, in order."""
        return np.array(self.map_.inputs, dtype=object)

    def _theta(self) -> np.ndarray:
        return np.append(self.coef_, self.intercept_) if self.map_.intercept else self.coef_

    def held_out_score(self, held_out: LabelSums, seed: int | None = None) -> float:
        """Return the mean log-likelihood of the labels behind held-out sums: (s·θ − Σ w ln(1 + e^{X·θ}))/Σ w."""
        theta = self._theta()
        z, weights = held_out.matrix @ theta, held_out.row_weights
        return float((held_out.sums @ theta - (weights * np.logaddexp(0, z)).sum()) / weights.sum())

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return expit(self.map_.matrix(X) @ self._theta())

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[float, float, np.ndarray]]:
        if not self.trace_:
            raise NotAvailable("no steps were recorded; set traced")
        x = self.map_.matrix(X)
        for step, seconds, theta, _ in self.trace_:
            yield step, seconds, expit(x @ theta)


class DescentModel(LinearModel):
    _: KW_ONLY
    noise_aware: bool = True
    max_iter: Count = 500
    batch_size: Count = 256
    rate: Positive | None = None
    traced: Whole = 0

    def _descend(self, mapped: FeatureMap, *problem: Any, rng: np.random.Generator, **options: Any) -> None:
        descent = Descent(*problem, rate=self.rate, steps=self.max_iter, traced=self.traced, **options)  # type: ignore[misc]
        self._set_solution(mapped, *descent.run(rng))


class WALRClassifier(CoefficientIntervalMixin, DescentModel):
    """P(Y=1|X) = σ(X·θ + b) at the minimum of Σ w ln(1 + e^{Xθ}) − s·θ + λ‖θ‖², which needs s in place of labels.

    Parameters
    ----------
    solver : str
        `lbfgs`, `newton` (trust region), `full_batch`, or `hybrid` (the note's mini-batch in the model term only).
    l2 : float or str
        λ, not on the intercept. With 0 and noise there is no minimum in general (`LabelSums.infeasible_coordinates`).
        `moments` takes 1/2τ², with .3 of the variance that the sums show (`prior_variance`), and h_j at their rate.
    tol, random_state : float, int or None
        Tolerance of the scaled gradient (`lbfgs` and `newton`), and seed of the mini-batches.
    noise_aware, max_iter : bool, int
        Whether λ_j = λ(1 + σ²/h_j), from the stated variance and the features, see `penalties`. Steps at most. With
        features of a sample σ² counts the variance of the model term, too (`model_term_variance`).
    batch_size, rate, traced : int, float, int
        Rows of a mini-batch of `hybrid`, learning rate of descents (None: a safe one), steps that they record for
        curves.

    Attributes
    ----------
    coef_, intercept_, penalty_ : ndarray of shape (k,), float, ndarray of shape (k,)
    coef_interval_ : ndarray of shape (2, k)
        Ends of 95 % intervals of the coefficients, see `predict_interval`. Not saved.
    coef_names_, map_, l2_, n_iter_ : list, FeatureMap, float, int
        Names of the coordinates, and the map from raw columns to them.
    trace_, gradient_errors_ : list, ndarray of shape (T, 2)
        (step, seconds, θ, error of the gradient) of recorded steps, not saved. Step and root mean square error there.
    """

    observes = LabelSums
    solver: Literal["lbfgs", "newton", "full_batch", "hybrid"] = "lbfgs"
    l2: Literal["moments"] | NonNegative = 0.5
    tol: NonNegative = 1e-6

    @property
    def accounts_for_noise(self) -> bool:
        return bool(self.noise_aware)

    def _fit(self, observation: LabelSums) -> None:
        x, weights, n = observation.matrix, observation.row_weights, observation.n_records
        noise: float | np.ndarray = observation.noise_scale
        if n is not None:
            if not observation.map.intercept:
                raise ConfigError("intercept: features of a sample need sums with an intercept, which has the rate")
            noise = np.sqrt(noise**2 + model_term_variance(x, observation.sums, n))
        if self.l2 == "moments":
            if not observation.map.intercept or observation.weights is not None:
                raise ConfigError("l2: moments needs sums with an intercept, over records without weights")
            self.l2_ = 1 / (2 * OF_VARIANCE * prior_variance(x, observation.sums, noise, n=n))
            h = curvature_at_rate(x, observation.sums, n)
        else:
            self.l2_, h = self.l2, curvature(x, weights)
        self.penalty_ = penalties(self.l2_, h, noise if self.noise_aware else 0.0, observation.map.intercept)
        if self.solver in ("lbfgs", "newton"):
            objective = Objective(x, weights, observation.sums, self.penalty_)
            theta, self.n_iter_ = objective.minimum(self.solver, self.max_iter, self.tol)
            self._evidence = observation
            return self._set_solution(observation.map, theta)
        self._evidence = f"solver {self.solver} ends beside the optimum; take lbfgs or newton"
        label_term, self.n_iter_ = observation.sums / x.shape[0], self.max_iter
        batch, rng = self.batch_size if self.solver == "hybrid" else None, draw_generator(self.random_state)
        problem = x, weights, self.penalty_, lambda step, rows: label_term, batch
        return self._descend(observation.map, *problem, rng=rng, noise_variance=observation.noise_scale**2)

    def _solution(self) -> PenalisedSolution:
        sums: LabelSums = self._evidence
        x, theta, weights = sums.matrix, self._theta(), sums.row_weights
        p = expit(x @ theta)
        v = weights * np.maximum(p * (1 - p), LEAST_VARIANCE)
        slope = gram(x, v)
        variance = (slope if sums.weights is None else gram(x, weights * v)) + sums.noise_scale**2 * np.eye(len(theta))
        if (n := sums.n_records) is not None:  # of the model term, a mean over a sample
            m, mean = len(p), x.T @ p / len(p)
            variance += n * (n - m) / (m - 1) * (gram(x, p**2) / m - np.outer(mean, mean))
        penalised = self.penalty_ > 0
        prior = np.where(penalised, 1 / (2 * self.l2_) if self.l2_ else np.inf, np.inf)
        upper = UPPER if self.l2 == "moments" else None
        return PenalisedSolution(theta, slope, variance, 2 * self.penalty_, prior, penalised, upper)

    def _derivatives(self, X: pd.DataFrame | np.ndarray) -> sparse.csr_array:
        return self.map_.matrix(X)


def gram(x: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """(k, k) Σ_i w_i x_i x_iᵀ, dense."""
    return (x.T @ (x * weights[:, None])).toarray()
