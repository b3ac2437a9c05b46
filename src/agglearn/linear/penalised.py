"""Intervals of penalised learners whose log-odds are linear: sandwich covariance, stated noise, and the penalty's bias.

A learner solves S̃ − E(θ) = Pθ, with observed statistics S̃, their expectations E under the model, and the gradient Pθ
of its penalty. Around the solution θ̂ − θ = H⁻¹(S̃ − E(θ) − Pθ) to first order, with H = ∂E/∂θ + P. S̃ varies by its
sampling and by the noise of the release. Pθ varies over worlds, by the variance 1/2λ that λ‖θ‖² takes coefficients to
have (Wahba 1983, Nychka 1988), or a larger one where the data show it.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, eigh, solve
from scipy.special import expit, logit, ndtri, softmax
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.evaluation.intervals import LEVEL

SURE = 1e-12  # of a probability, where its log-odds are cut
FACTORS = np.logspace(0, 3, 61)  # of the prior variance
UPPER = 0.88  # quantile of the factor's posterior where moments chose λ: a λ that is too large looks like no factor
FLAT = 100.0  # variance of a coefficient without a penalty, such as the intercept, where the factor is chosen


@dataclass(frozen=True)
class PenalisedSolution:
    """Where a learner came to rest, with k coefficients."""

    theta: np.ndarray  # (k,) θ̂
    slope: np.ndarray  # (k, k) ∂E/∂θ
    variance: np.ndarray  # (k, k) of S̃, with its noise
    penalty: np.ndarray  # (k,) diagonal of P
    prior: np.ndarray  # (k,) variance 1/2λ of coefficients, inf without a penalty
    scaled: np.ndarray  # (k,) bool, coefficients whose variances the data may raise by one factor
    upper: float | None = None  # quantile of the factor, where λ was chosen from the data

    def covariance(self) -> np.ndarray:
        """(k, k) E (θ̂ − θ)(θ̂ − θ)ᵀ = H⁻¹(variance + P·prior·P)H⁻ᵀ. DataError where H is singular."""
        pull = self.penalty**2 * np.minimum(self.prior, np.finfo(float).max)  # 0 without a penalty
        pull[self.scaled] *= self.prior_factor()
        h = self.slope + np.diag(self.penalty)
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            try:
                return solve(h, solve(h, self.variance + np.diag(pull)).T)
            except (LinAlgError, LinAlgWarning):
                advice = "fit with a larger penalty (l2)"
                raise DataError(f"intervals: the data do not determine all coefficients; {advice}") from None

    def prior_factor(self) -> float:
        """Of `FACTORS` the most likely, for u = Hθ̂ ~ N(0, variance + slope·prior·slopeᵀ).

        With `upper` it is this quantile of the posterior, of a prior uniform in its logarithm.
        """
        if not self.scaled.any():
            return 1.0
        u = self.slope @ self.theta + self.penalty * self.theta
        spread = self.slope * np.sqrt(np.minimum(self.prior, FLAT))
        unscaled = spread[:, ~self.scaled]
        values, vectors = eigh(self.variance + unscaled @ unscaled.T)
        varies = values > 1e-9 * values.max()
        white = (vectors[:, varies] / np.sqrt(values[varies])).T
        signal = white @ spread[:, self.scaled]
        gains, vectors = eigh(signal @ signal.T)
        total = 1 + np.outer(FACTORS, np.maximum(gains, 0))
        loss = (np.log(total) + (vectors.T @ (white @ u)) ** 2 / total).sum(axis=1) / 2
        chosen = loss.argmin() if self.upper is None else softmax(-loss).cumsum().searchsorted(self.upper)
        return float(FACTORS[chosen])


def check_level(level: float) -> float:
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise ConfigError(f"level: must be a number between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


class IntervalMixin:
    """`predict_interval` for a classifier of two classes. Subclasses write `_solution` and `_derivatives`.

    A fit sets `_evidence`, from which the solution is described, or a text that says why there is none.
    """

    _evidence: Any = "they need the aggregates of the fit, which a saved model does not hold; fit again"
    _covariance: tuple[Any, np.ndarray] | None = None

    def _solution(self) -> PenalisedSolution:
        raise NotImplementedError

    def _derivatives(self, X: Any) -> Any:
        """(n, k) derivatives of the log-odds of rows by the coefficients."""
        raise NotImplementedError

    def _coefficient_covariance(self) -> np.ndarray:
        """(k, k), computed once for each fit."""
        check_is_fitted(self)
        if isinstance(self._evidence, str):
            raise NotAvailable(f"this {type(self).__name__} has no intervals: {self._evidence}")
        if self._covariance is None or self._covariance[0] is not self._evidence:
            self._covariance = self._evidence, self._solution().covariance()
        return self._covariance[1]

    def predict_interval(self, X: Any, level: float = LEVEL) -> np.ndarray:
        """(n, 2) ends of intervals of P(Y=1|X) in worlds where the model is right.

        They hold the true probability with the frequency `level`, on average over rows, draws of labels and noise, and
        over worlds whose coefficients vary as λ says: independently, about 0, with variance 1/2λ. They are normal on the
        scale of log-odds, around the prediction. They are too narrow where λ is too large for the true coefficients,
        and too wide where it is too small and noise is strong. They do not show what the model cannot express.

        Parameters
        ----------
        X : DataFrame or ndarray
            As in `predict_proba`.
        level : float
            Between 0 and 1. ConfigError otherwise. NotAvailable for a model from a file, DataError for coefficients
            that neither the data nor the penalty determine.
        """
        quantile, covariance = ndtri((1 + check_level(level)) / 2), self._coefficient_covariance()
        rows = self._derivatives(X)
        variance = np.asarray((rows @ covariance * _dense(rows)).sum(axis=1)).ravel()
        z = logit(np.clip(self.predict_proba(X)[:, 1], SURE, 1 - SURE))  # type: ignore[attr-defined]
        half = quantile * np.sqrt(np.maximum(variance, 0))
        return expit(np.column_stack([z - half, z + half]))


class CoefficientIntervalMixin(IntervalMixin):
    """Intervals of a learner with `coef_`, whose coefficients come first in the covariance.

    `coef_interval_` (2, …) has the low and the high ends of 95 % intervals of `coef_`, as in `predict_interval`. It is
    computed when it is asked for. A property would be computed by `dir`, since scikit-learn tries what it lists.
    """

    coef_: np.ndarray
    coef_interval_: np.ndarray

    def __getattr__(self, name: str) -> Any:
        if name != "coef_interval_":
            return super().__getattr__(name)  # type: ignore[misc]  # of `Estimator`
        deviation = np.sqrt(np.diag(self._coefficient_covariance())[: self.coef_.size]).reshape(self.coef_.shape)
        half = ndtri((1 + LEVEL) / 2) * deviation
        return np.stack([self.coef_ - half, self.coef_ + half])


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if hasattr(rows, "toarray") else rows
