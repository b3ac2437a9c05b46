"""Multinomial logistic regression of classes on vectors, its penalty chosen by validation vectors."""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from agglearn.distribution.ridge import Labelled, at_edge
from agglearn.errors import DataError
from agglearn.estimator import Classifier, choose_best
from agglearn.linear.path import fit_path
from agglearn.linear.softmax import CHUNK, LogisticProblem, as_single, scores, softmax
from agglearn.saving import check_classes, expect
from agglearn.seeds import derive_generator, draw_seed, split_validation
from agglearn.settings import NonNegative, check_parameters

PATH = tuple(0.5 * 10.0**k for k in (1, 0, -1, -2, -3, -4))  # values of λ, from strong to weak
VALIDATION = 0.2  # fraction of the vectors that chooses λ where none are given for it


class MultinomialLogistic(Classifier):
    """Minimises the sum of cross-entropies + λ‖θ‖² on centred vectors, scaled by one number to a mean variance of 1.

    Takes vectors, not bags. λ goes from strong to weak, until the likelihood of the validation vectors falls.

    Parameters
    ----------
    l2, random_state : sequence of float or None, int, RandomState, Generator or None
        Values of λ to choose from (None: 5 to 5e-5 in steps of a decade), and seed of the choice of validation vectors.

    Attributes
    ----------
    classes_, coef_ : ndarray of shape (C,), (C − 1, d + 1)
        Classes in sorted order, and weights against the first one, intercepts last.
    n_features_in_, centre_, scale_ : int, ndarray of shape (d,), float
        Length d of the vectors, their mean, and root of their mean variance.
    l2_, score_, edges_ : float, float, list of str
        λ chosen, mean negative log-likelihood of the validation vectors, and ['l2'] where λ is an end of the grid.
    """

    l2: list[NonNegative] | None = None

    def fit(self, Z: ArrayLike, y: ArrayLike, validation: Labelled | None = None) -> Self:  # type: ignore[override]
        """Learn classes of vectors.

        Parameters
        ----------
        Z, y, validation : array-like of shape (n, d), array-like of shape (n,), tuple or None
            Vectors, their classes, and (vectors, classes) that choose λ in the place of some of these.
        """
        check_parameters(self)
        x, y = validate_data(self, Z, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError("bags of one class only; two classes are needed")
        self.centre_ = x.mean(axis=0)
        self.scale_ = float(np.sqrt(np.mean(np.var(x, axis=0)))) or 1.0
        z = self._scale(x)
        if validation is None:
            rng = derive_generator("held", draw_seed(self.random_state))
            chosen, training = split_validation(len(z), VALIDATION, rng)
            scored = z[chosen], codes[chosen]
        else:
            scored = self._scale(validation[0]), np.searchsorted(self.classes_, validation[1])
            training = np.arange(len(z))
        path = PATH if self.l2 is None else self.l2
        solve = self._solver(z[training], codes[training])
        fits = fit_path(path, solve, lambda theta: -_loss(theta, *scored))
        self.l2_, score, start = fits[choose_best([fit.score for fit in fits])]
        self.score_, self.edges_ = -score, at_edge({"l2": (self.l2_, path)})
        self.coef_ = self._solver(z, codes)(self.l2_, start)
        return self

    def _solver(self, z: np.ndarray, y: np.ndarray) -> Callable[[float, np.ndarray | None], np.ndarray]:
        x = np.column_stack([z.astype(float), np.ones(len(z))])
        offsets = np.append(np.arange(0, len(z), CHUNK), len(z))
        # doubles: vectors are nearly collinear, and penalties small
        problem = LogisticProblem(z, offsets, gram=x.T @ x)
        moments = problem.moments(np.eye(len(self.classes_))[y])
        return lambda l2, start: problem.with_l2(l2).minimise(moments, start)[0]

    def _check_state(self) -> None:
        check_classes(self)
        expect(self, coef_=("f", (len(self.classes_) - 1, None)))

    def _scale(self, z: ArrayLike) -> np.ndarray:
        return as_single((np.asarray(z, float) - self.centre_) / self.scale_)

    def predict_proba(self, Z: ArrayLike) -> np.ndarray:
        """Probabilities (n, C) of the classes.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        """
        check_is_fitted(self)
        x = validate_data(self, Z, dtype=np.float64, reset=False)
        return softmax(scores(self._scale(x), self.coef_))


def _loss(theta: np.ndarray, z: np.ndarray, y: np.ndarray) -> float:
    p = softmax(scores(z, theta))
    return float(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], 1e-300))))
