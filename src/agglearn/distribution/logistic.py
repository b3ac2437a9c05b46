"""Multinomial logistic regression of classes on vectors, its penalty chosen by validation vectors."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from agglearn.distribution.ridge import Labelled, at_edge
from agglearn.errors import DataError
from agglearn.estimator import Estimator, choose_best
from agglearn.linear.softmax import CHUNK, Logistic, as_single, scores, softmax
from agglearn.seeds import RandomState, derive_generator, draw_seed
from agglearn.settings import NonNegative, check_parameters

STRENGTHS = tuple(10.0**k for k in (1, 0, -1, -2, -3, -4))  # λ, on vectors of mean variance 1
VALIDATION = 0.2  # fraction of the vectors that chooses λ where none are given for it


class MultinomialLogistic(ClassifierMixin, Estimator):
    """Minimises cross-entropy + ½λ‖θ‖²/n on centred vectors, scaled by one number to a mean variance of 1.

    λ goes from strong to weak, until the likelihood of the validation vectors falls. Each solution starts from the
    last. Takes vectors, not bags.

    Parameters
    ----------
    strengths : sequence of float or None
        Values of λ. None: 10 to 1e-4 in steps of a decade.
    random_state : int, RandomState, Generator or None
        Seed of the choice of validation vectors.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Classes in sorted order.
    coef_ : ndarray of shape (C − 1, d + 1)
        Weights against the first class, intercepts last.
    centre_ : ndarray of shape (d,)
        Mean of the vectors.
    scale_ : float
        Root of their mean variance.
    strength_ : float
        λ chosen.
    edges_ : list of str
        ['strength'] where that is an end of the grid.
    score_ : float
        Mean negative log-likelihood of the validation vectors there.
    """

    def __init__(self, strengths: list[NonNegative] | None = None, random_state: RandomState = None):
        self.strengths = strengths
        self.random_state = random_state

    def fit(  # type: ignore[override]  # vectors with their targets are no observation
        self, Z: ArrayLike, y: ArrayLike, validation: Labelled | None = None
    ) -> Self:
        """Learn from vectors and classes.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Vectors.
        y : array-like of shape (n,)
            Their classes.
        validation : (vectors, classes) or None
            They choose λ. None: a fifth of the vectors does.
        """
        check_parameters(self)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError("bags of one class only; two classes are needed")
        self.centre_ = np.asarray(Z, float).mean(axis=0)
        self.scale_ = float(np.sqrt(np.mean(np.var(np.asarray(Z, float), axis=0)))) or 1.0
        z = self._scale(Z)
        if validation is None:
            order = derive_generator("held", draw_seed(self.random_state)).permutation(len(z))
            n = max(1, round(VALIDATION * len(z)))
            scored, rest = (z[order[:n]], codes[order[:n]]), order[n:]
        else:
            scored = self._scale(validation[0]), np.searchsorted(self.classes_, validation[1])
            rest = np.arange(len(z))
        strengths = STRENGTHS if self.strengths is None else self.strengths
        self.score_, self.strength_, start = self._choose(strengths, z[rest], codes[rest], *scored)
        self.edges_ = at_edge({"strength": (self.strength_, strengths)})
        problem = _problem(z, self.strength_)
        self.coef_ = problem.fit(problem.moments(np.eye(len(self.classes_))[codes]), start)
        return self

    def _choose(
        self, strengths: Sequence[float], z: np.ndarray, y: np.ndarray, scored_z: np.ndarray, scored_y: np.ndarray
    ) -> tuple[float, float, np.ndarray]:
        """(validation loss, strength, solution) of the strength of least loss."""
        problem, theta = _problem(z), None
        candidates: list[tuple[float, float, np.ndarray]] = []
        moments = problem.moments(np.eye(len(self.classes_))[y])
        for strength in strengths:
            theta = problem.with_l2(strength).fit(moments, theta)
            candidates.append((_loss(theta, scored_z, scored_y), strength, theta))
            if len(candidates) > 1 and candidates[-1][0] > candidates[-2][0]:
                break
        return candidates[choose_best([-loss for loss, *_ in candidates])]

    def _scale(self, z: ArrayLike) -> np.ndarray:
        return as_single((np.asarray(z, float) - self.centre_) / self.scale_)

    @property
    def n_features_in_(self) -> int:
        """d, the length of the vectors."""
        return len(self.centre_)

    def predict_proba(self, Z: ArrayLike) -> np.ndarray:
        """Probabilities (n, C) of the classes.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Vectors.
        """
        return softmax(scores(self._scale(Z), self.coef_))[0]

    def predict(self, Z: ArrayLike) -> np.ndarray:
        """Most probable classes (n,).

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Vectors.
        """
        return self.classes_[self.predict_proba(Z).argmax(axis=1)]


def _problem(z: np.ndarray, l2: float = 1.0) -> Logistic:
    """The fitting problem with its bound in double precision: vectors are nearly collinear, and penalties small."""
    x = np.column_stack([z.astype(float), np.ones(len(z))])
    offsets = np.append(np.arange(0, len(z), CHUNK), len(z))
    return Logistic(z, offsets, l2=l2, gram=x.T @ x)


def _loss(theta: np.ndarray, z: np.ndarray, y: np.ndarray) -> float:
    p = softmax(scores(z, theta))[0]
    return float(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], 1e-300))))
