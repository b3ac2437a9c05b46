"""What WALR is held against: learners that see all labels."""

import math
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression

from agglearn.encoding.design import FeatureMap, Features, Ranges
from agglearn.labelsums.walr import LinearModel
from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import penalties
from agglearn.observations import Records
from agglearn.privacy.calibration import analytic_gaussian_scale, checked
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Part, Positive, Whole


class SklearnLogistic(LinearModel):
    """scikit-learn's logistic regression over the same coordinates and the same λ‖θ‖² as WALR.

    Parameters
    ----------
    features : `onehot`, `quadratic` or `scaled`; ranges : of `scaled`, see `FeatureMap.fit`.
    l2 : λ > 0. max_iter, tol : of its Newton-CG. random_state : not used; the solution is unique.
    """

    observes = Records

    def __init__(
        self,
        features: Features = "onehot",
        ranges: Ranges = None,
        l2: Positive = 0.5,
        max_iter: Count = 200,
        tol: NonNegative = 1e-8,
        random_state=None,
    ):
        self.features = features
        self.ranges = ranges
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, observation):
        mapped = FeatureMap.fit(self.features, observation.encoder, observation.frame, self.ranges, intercept=True)
        x = mapped.matrix(observation.frame)[:, :-1]
        model = LogisticRegression(C=1 / (2 * self.l2), solver="newton-cg", max_iter=self.max_iter, tol=self.tol)
        model.fit(x, observation.y)
        self._keep(mapped, np.append(model.coef_[0], model.intercept_[0]))


class LabelledGradientDescent(LinearModel):
    """Gradient descent that reads labels at every step: the traditional mini-batch, or noise drawn anew at every step.

    Parameters
    ----------
    solver : `minibatch`, both sides of the gradient from one mini-batch (not private); `noise_per_step`, all records, and
        fresh Gaussian noise on the right side at every step, of a size that all steps together promise (ε, δ) for one
        label: their sum is one Gaussian release of √T times the sensitivity. Seeded, hence not private either.
    epsilon, delta : of `noise_per_step`. delta : None for 1/(10 N).
    features, ranges : see `SklearnLogistic`. l2, max_iter, batch_size, rate, traced, random_state : see `WALRClassifier`.
    noise_aware : as in `WALRClassifier`, with the variance of one release that promises the same.
    """

    observes = Records

    def __init__(
        self,
        solver: Literal["minibatch", "noise_per_step"] = "minibatch",
        epsilon: Positive | None = None,
        delta: Part | None = None,
        features: Features = "onehot",
        ranges: Ranges = None,
        l2: NonNegative = 0.5,
        noise_aware: bool = True,
        max_iter: Count = 500,
        batch_size: Count = 256,
        rate: Positive | None = None,
        traced: Whole = 0,
        random_state=None,
    ):
        self.solver = solver
        self.epsilon = epsilon
        self.delta = delta
        self.features = features
        self.ranges = ranges
        self.l2 = l2
        self.noise_aware = noise_aware
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.rate = rate
        self.traced = traced
        self.random_state = random_state

    def _fit(self, observation):
        mapped = FeatureMap.fit(self.features, observation.encoder, observation.frame, self.ranges)
        x, y = mapped.matrix(observation.frame), np.asarray(observation.y, float)
        n, rng, once = len(y), draw_generator(self.random_state), 0.0
        if self.solver == "noise_per_step":
            epsilon, delta = checked(self.epsilon, self.delta or 1 / (10 * n), "gaussian")
            once = analytic_gaussian_scale(math.sqrt(mapped.largest(2)), epsilon, delta)
        exact, every = x.T @ y, once * math.sqrt(self.max_iter)

        def right(t, rows):
            if rows is None:
                return (exact + rng.normal(0, every, len(exact))) / n
            return x[rows].T @ y[rows] / len(rows)

        penalty = penalties(self.l2, x, np.ones(n), once if self.noise_aware else 0.0, mapped.intercept)
        small = self.solver == "minibatch"
        descent = Descent(
            x, np.ones(n), penalty, right, self.batch_size if small else None, self.rate, self.max_iter, self.traced,
            y if small else None, every**2,
        )  # fmt: skip
        self._keep(mapped, *descent.run(rng))
