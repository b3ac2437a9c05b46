"""Learners with all labels, to which WALR is compared."""

import math
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression

from agglearn.encoding.design import FeatureMap, Features, Ranges
from agglearn.labelsums.walr import DescentModel, LinearModel
from agglearn.linear.sum_logistic import curvature, penalties
from agglearn.observations import Records
from agglearn.privacy.calibration import analytic_gaussian_scale, check_promise
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Part, Positive


class SklearnLogistic(LinearModel):
    """Logistic regression of scikit-learn over the same coordinates and with the same λ‖θ‖² as WALR.

    Parameters
    ----------
    features, ranges, l2, max_iter, tol, random_state : str, dict, float, int, float, any
        `onehot`, `quadratic` or `scaled`, ranges of the last (`FeatureMap.fit`), λ, when Newton-CG ends, and no seed.

    Attributes
    ----------
    map_, coef_, intercept_, coef_names_ : FeatureMap, ndarray of shape (D − 1,), float, list of str
        Coordinates, their weights, the intercept, and names of the weights.
    trace_, gradient_errors_ : list, ndarray of shape (0, 2)
        Empty.
    """

    observes = Records
    features: Features = "onehot"
    ranges: Ranges = None
    l2: Positive = 0.5
    max_iter: Count = 200
    tol: NonNegative = 1e-8

    def _fit(self, observation: Records) -> None:
        mapped = FeatureMap.fit(self.features, observation.encoder, observation.frame, self.ranges, intercept=True)
        x = mapped.matrix(observation.frame)[:, :-1]
        model = LogisticRegression(C=1 / (2 * self.l2), solver="newton-cg", max_iter=self.max_iter, tol=self.tol)
        model.fit(x, observation.y)
        self._set_solution(mapped, np.append(model.coef_[0], model.intercept_[0]))


class LabelledGradientDescent(DescentModel):
    """Gradient descent that reads labels at every step: the traditional mini-batch, or fresh noise at every step.

    Parameters
    ----------
    solver, epsilon, delta : str, float or None, float or None
        `minibatch` takes the gradient from one mini-batch, which is not private. `noise_per_step` takes all records and
        adds Gaussian noise to the label term. All steps together satisfy (ε, δ) for one label (default δ: 1/(10 N)):
        their sum is one Gaussian release of √T times the sensitivity. The noise is seeded, hence not private either.
    features, ranges, l2 : see `SklearnLogistic`
    random_state : int, RandomState, Generator or None
        Seed of the mini-batches and the noise, or None for a fresh one.
    noise_aware, max_iter, batch_size, rate, traced
        As in `WALRClassifier`, with the variance of one release under the same budget.

    Attributes
    ----------
    map_, coef_, intercept_, coef_names_ : FeatureMap, ndarray of shape (D − 1,), float, list of str
        Coordinates, their weights, the intercept, and names of the weights.
    trace_, gradient_errors_ : list
        As in `WALRClassifier`.
    """

    observes = Records
    solver: Literal["minibatch", "noise_per_step"] = "minibatch"
    epsilon: Positive | None = None
    delta: Part | None = None
    features: Features = "onehot"
    ranges: Ranges = None
    l2: NonNegative = 0.5

    def _fit(self, observation: Records) -> None:
        mapped = FeatureMap.fit(self.features, observation.encoder, observation.frame, self.ranges)
        x, y = mapped.matrix(observation.frame), np.asarray(observation.y, float)
        n, rng, once = len(y), draw_generator(self.random_state), 0.0
        if self.solver == "noise_per_step":
            asked = self.epsilon, self.delta or 1 / (10 * n)
            epsilon, delta = check_promise(*asked, "gaussian")  # type: ignore[arg-type]  # it refuses None
            norm = math.sqrt(mapped.largest(2))  # type: ignore[arg-type]  # a fitted map has a bound
            once = analytic_gaussian_scale(norm, epsilon, delta)  # type: ignore[arg-type]  # Gaussian noise has a δ
        exact, every = x.T @ y, once * math.sqrt(self.max_iter)

        def label_term(step: int, rows: np.ndarray | None) -> np.ndarray:
            if rows is None:
                return (exact + rng.normal(0, every, len(exact))) / n
            return x[rows].T @ y[rows] / len(rows)

        penalty = penalties(self.l2, curvature(x, np.ones(n)), once if self.noise_aware else 0.0, mapped.intercept)
        batch, labels = (self.batch_size, y) if self.solver == "minibatch" else (None, None)
        problem = x, np.ones(n), penalty, label_term, batch
        self._descend(mapped, *problem, rng=rng, labels=labels, noise_variance=every**2)
