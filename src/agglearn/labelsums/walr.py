"""Weighted aggregate logistic regression: from features and one vector, exact or noisy.

Source: the note on WALR (full-batch and "hybrid" mini-batch descent); second-order solvers and the penalty from the
noise are ours.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy.special import expit

from agglearn.encoding.design import FeatureMap
from agglearn.errors import ConfigError, NotAvailable
from agglearn.estimator import RecordClassifier
from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import Objective, penalties, prior_variance
from agglearn.observations import LabelSums
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Positive, Whole


class LinearModel(RecordClassifier):
    """Prediction of a logistic model over a feature map.

    Attributes
    ----------
    coef_ : (k,) θ without the intercept. intercept_ : 0 where there is none. coef_names_ : names of the coordinates.
    map_ : state of the `FeatureMap`. classes_.
    trace_ : list of (step, seconds, θ, error of the gradient), not saved.
    gradient_errors_ : (T, 2) step, root mean square error of the gradient there; empty where no trace was asked for.
    """

    def _keep(self, mapped: FeatureMap, theta: np.ndarray, trace=()) -> None:
        self.classes_, self.map_ = np.array([0, 1]), mapped.state()
        k = len(theta) - mapped.intercept
        self.coef_, self.intercept_ = theta[:k], float(theta[k]) if mapped.intercept else 0.0
        self.coef_names_ = mapped.names[:k]
        self.trace_ = list(trace)
        self.gradient_errors_ = np.array([(t, error) for t, _, _, error in trace]).reshape(-1, 2)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the columns that the coordinates are made of, in order."""
        return np.array(FeatureMap.of(self.map_).inputs, dtype=object)

    def _matrix(self, X):
        return FeatureMap.of(self.map_).matrix(X)

    def _theta(self) -> np.ndarray:
        return np.append(self.coef_, self.intercept_) if self.map_["intercept"] else self.coef_

    def held_out_score(self, held: LabelSums, seed: int | None = None) -> float:
        """Mean log-likelihood of the labels behind held-out sums: s·θ − Σ ln(1 + e^{X·θ}), for exact sums exactly. Nothing is
        drawn: `seed` is not used."""
        theta = self._theta()
        z = held.matrix @ theta
        return float((held.sums @ theta - np.logaddexp(0, z).sum()) / len(z))

    def predict_proba(self, X) -> np.ndarray:
        """(n, 2) probabilities of both labels; columns are matched by name, an array's by position."""
        p = expit(self._matrix(X) @ self._theta())
        return np.column_stack([1 - p, p])

    def staged_predict_proba(self, X) -> Iterator[tuple[float, float, np.ndarray]]:
        """(step, seconds, (n,) P(Y=1)) of every step that was traced; NotAvailable where none was."""
        if not self.trace_:
            raise NotAvailable("no steps were traced; set traced")
        x = self._matrix(X)
        for step, seconds, theta, _ in self.trace_:
            yield step, seconds, expit(x @ theta)


class WALRClassifier(LinearModel):
    """P(Y=1|X) = σ(X·θ + b) at the minimum of Σ w ln(1 + e^{Xθ}) − s·θ + λ‖θ‖², which needs no labels but s.

    Parameters
    ----------
    solver : `lbfgs`, `newton` (trust region), `full_batch` or `hybrid` (the note's mini-batch on the left side only).
    l2 : λ; the intercept is not penalised. 0 for none: with noise F then has no minimum in general (`LabelSums.outside`).
        `moments` for 1/2τ², τ² estimated from the sums as they are, noise and all (`prior_variance`).
    noise_aware : λ_j = λ(1 + σ²/h_j) from the noise's known variance and the features, see `penalties`; False for λ.
    max_iter : iterations, steps. tol : of the gradient, scaled; `lbfgs` and `newton` only.
    batch_size : of `hybrid`. rate : learning rate of the descents; None for safe ones, see `Descent`.
    traced : how many steps to keep for curves, descents only.
    random_state : of the mini-batches.

    Attributes
    ----------
    coef_, intercept_, coef_names_, classes_ : see `LinearModel`. penalty_ : (k,) λ_j. n_iter_.
    l2_ : λ used. gradient_errors_ : (T, 2) step, root mean square error of the gradient there.
    """

    observes = LabelSums

    def __init__(
        self,
        solver: Literal["lbfgs", "newton", "full_batch", "hybrid"] = "lbfgs",
        l2: Literal["moments"] | NonNegative = 0.5,
        noise_aware: bool = True,
        max_iter: Count = 500,
        tol: NonNegative = 1e-6,
        batch_size: Count = 256,
        rate: Positive | None = None,
        traced: Whole = 0,
        random_state=None,
    ):
        self.solver = solver
        self.l2 = l2
        self.noise_aware = noise_aware
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.rate = rate
        self.traced = traced
        self.random_state = random_state

    @property
    def accounts_for_noise(self) -> bool:
        """Whether the penalty is made from the noise."""
        return bool(self.noise_aware)

    def _fit(self, observation):
        x = observation.matrix
        weights = np.ones(x.shape[0]) if observation.weights is None else np.asarray(observation.weights, float)
        noise = observation.noise_scale
        aware = noise if self.noise_aware else 0.0
        self.l2_ = self.l2
        if self.l2 == "moments":
            if not observation.map.intercept or observation.weights is not None:
                raise ConfigError("l2: moments needs sums with an intercept, over records without weights")
            self.l2_ = 1 / (2 * prior_variance(x, observation.sums, noise))
        self.penalty_ = penalties(self.l2_, x, weights, aware, observation.map.intercept)
        if self.solver in ("lbfgs", "newton"):
            problem = Objective(x, weights, observation.sums, self.penalty_)
            theta, self.n_iter_ = problem.minimum(self.solver, self.max_iter, self.tol)
            return self._keep(observation.map, theta)
        right = observation.sums / x.shape[0]
        batch = self.batch_size if self.solver == "hybrid" else None
        descent = Descent(
            x, weights, self.penalty_, lambda t, rows: right, batch, self.rate, self.max_iter, self.traced,
            noise_variance=noise**2,
        )  # fmt: skip
        theta, trace = descent.run(draw_generator(self.random_state))
        self.n_iter_ = self.max_iter
        return self._keep(observation.map, theta, trace)
