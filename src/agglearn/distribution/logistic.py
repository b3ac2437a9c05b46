"""Multinomial logistic regression of classes on vectors, its strength chosen by held-out vectors."""

import numpy as np
from sklearn.base import ClassifierMixin

from agglearn.distribution.ridge import at_edge
from agglearn.errors import DataError
from agglearn.estimator import Estimator, choose_best
from agglearn.linear.softmax import CHUNK, Logistic, as_single, scores, softmax
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import NonNegative, check_parameters

STRENGTHS = tuple(10.0**k for k in (1, 0, -1, -2, -3, -4))  # λ, on vectors of mean variance 1
HELD_OUT = 0.2


class MultinomialLogistic(ClassifierMixin, Estimator):
    """Minimises cross-entropy + ½λ‖θ‖²/n on centred vectors, scaled by one number to a mean variance of 1.

    λ goes from strong to weak, each solution started from the last, until the held-out vectors get worse. Takes vectors, not
    bags.

    Parameters
    ----------
    strengths : λ tried; None for 10 to 1e-4 in steps of a decade. random_state : seed of the held-out fifth.

    Attributes
    ----------
    classes_ : in sorted order. coef_ : (C − 1, d + 1) weights against the first class, intercepts last.
    centre_, scale_ : of vectors. strength_ : λ chosen. edges_ : [strength] where that is an end of the grid. score_ : mean log-likelihood of held-out vectors there, negated.
    """

    def __init__(self, strengths: list[NonNegative] | None = None, random_state=None):
        self.strengths = strengths
        self.random_state = random_state

    def fit(self, Z, y, held=None):
        """Learn from vectors (n, d) and classes (n,); `held` = (vectors, classes) chooses λ, else a fifth does."""
        check_parameters(self)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError("bags of one class only: there is nothing to learn")
        self.centre_ = np.asarray(Z, float).mean(axis=0)
        self.scale_ = float(np.sqrt(np.mean(np.var(np.asarray(Z, float), axis=0)))) or 1.0
        z, known = self._scaled(Z), y
        if held is None:
            order = derive_generator("held", draw_seed(self.random_state)).permutation(len(y))
            n = max(1, round(HELD_OUT * len(y)))
            held, rest = (z[order[:n]], y[order[:n]]), order[n:]
        else:
            held, rest = (self._scaled(held[0]), np.searchsorted(self.classes_, held[1])), slice(None)
        strengths = STRENGTHS if self.strengths is None else self.strengths
        self.score_, self.strength_, start = self._chosen(strengths, z[rest], known[rest], held)
        self.edges_ = at_edge({"strength": (self.strength_, strengths)})
        problem = _problem(z, self.strength_)
        self.coef_ = problem.fit(problem.moments(np.eye(len(self.classes_))[known]), start)
        return self

    def _chosen(self, strengths, z, y, held) -> tuple[float, float, np.ndarray]:
        """Held-out loss of the strength chosen, the strength, and the solution there."""
        problem, theta, tried = _problem(z), None, []
        moments = problem.moments(np.eye(len(self.classes_))[y])
        for strength in strengths:
            theta = problem.with_l2(strength).fit(moments, theta)
            tried.append((_loss(theta, *held), strength, theta))
            if len(tried) > 1 and tried[-1][0] > tried[-2][0]:
                break
        return tried[choose_best([-loss for loss, *_ in tried])]

    def _scaled(self, z) -> np.ndarray:
        return as_single((np.asarray(z, float) - self.centre_) / self.scale_)

    @property
    def n_features_in_(self) -> int:
        """d, the length of the vectors."""
        return len(self.centre_)

    def predict_proba(self, Z) -> np.ndarray:
        """(n, C) probabilities of the classes."""
        return softmax(scores(self._scaled(Z), self.coef_))[0]

    def predict(self, Z) -> np.ndarray:
        """(n,) most probable classes."""
        return self.classes_[self.predict_proba(Z).argmax(axis=1)]


def _problem(z: np.ndarray, l2: float = 1.0) -> Logistic:
    """The fitting problem with its bound in double precision: vectors are nearly collinear, and penalties small."""
    x = np.column_stack([z.astype(float), np.ones(len(z))])
    offsets = np.append(np.arange(0, len(z), CHUNK), len(z))
    return Logistic(z, offsets, l2=l2, gram=x.T @ x)


def _loss(theta, z, y) -> float:
    p = softmax(scores(z, theta))[0]
    return float(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], 1e-300))))
