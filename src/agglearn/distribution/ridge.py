"""Ridge regression, linear and with a Gaussian kernel. Leave-one-out error or validation vectors choose λ."""

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from agglearn.estimator import Estimator, choose_best
from agglearn.progress import track
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, NonNegative, Positive, check_parameters

STRENGTHS = 10.0 ** np.arange(-9, 3.01, 0.5)  # λ, as multiples of the mean eigenvalue
CHUNK = 4096  # rows turned to double precision at a time
FLOATS = (np.float64, np.float32)  # single precision is turned to double a chunk at a time
NEGLIGIBLE = 1e-13  # eigenvalues below this fraction of the largest are rounding
Labelled = tuple[np.ndarray, ArrayLike]  # vectors (n, d), and targets or classes


class VectorRegressor(RegressorMixin, Estimator):
    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class LinearRidge(VectorRegressor):
    """Minimises ‖y − Zβ − β₀‖² + λ‖β‖² for any number of targets. Takes vectors, not bags.

    λ is a strength times the total variance of the vectors, so one grid serves vectors of all scales.

    Parameters
    ----------
    strengths, random_state : sequence of float or None, int or None
        Multiples to choose from, by default 1e-9 to 1e3 in steps of half a decade. The seed is not used.

    Attributes
    ----------
    coef_, intercept_, centre_, n_features_in_ : ndarray of shape (d,), float, ndarray of shape (d,), int
        Coefficients, (d, k) and (k,) where `y` has columns, mean of the vectors, and their length d.
    strength_, l2_, score_, edges_ : float, float, float, list of str
        Multiple chosen, λ, mean squared error by which it was chosen, and settings chosen at an end of their grid.
    """

    strengths: list[NonNegative] | None = None

    def fit(self, Z: ArrayLike, y: ArrayLike, validation: Labelled | None = None) -> Self:  # type: ignore[override]
        """Learn targets of vectors.

        Parameters
        ----------
        Z, y, validation : array-like of shape (n, d), array-like of shape (n,) or (n, k), tuple or None
            Vectors, their targets, and (vectors, targets) that choose settings in the place of these.
        """
        check_parameters(self)
        z, targets = validate_data(self, Z, y, dtype=FLOATS, multi_output=True, y_numeric=True, ensure_min_samples=2)
        target = columns_of(targets)
        strengths = STRENGTHS if self.strengths is None else np.asarray(self.strengths, float)
        mean = target.mean(axis=0)
        self.centre_ = np.mean(z, axis=0, dtype=float)
        factors = Factors(z, self.centre_, target - mean)
        penalties = strengths * factors.mean_eigenvalue
        scores = factors.left_out(penalties) if validation is None else factors.held_out(penalties, validation, mean)
        best = choose_best(-np.array(scores))
        self.strength_, self.l2_, self.score_ = float(strengths[best]), float(penalties[best]), float(scores[best])
        self.edges_ = at_edge({"strength": (self.strength_, strengths)})
        self.coef_ = factors.coefficients(penalties[[best]])[0]
        self.intercept_ = mean - self.centre_ @ self.coef_
        if targets.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[:, 0], float(self.intercept_[0])
        return self

    def predict(self, Z: ArrayLike) -> np.ndarray:
        """Predictions (n,) or (n, k), as the targets were.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        """
        check_is_fitted(self)
        return validate_data(self, Z, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_


class Factors:
    """Zc = U √s Vᵀ of centred vectors, by the eigenvalues of the smaller of ZcᵀZc and ZcZcᵀ, without rounding's."""

    def __init__(self, z: np.ndarray, centre: np.ndarray, y: np.ndarray):
        self.z, self.centre, self.y = z, centre, y
        n, d = z.shape
        if n <= d:
            centred = np.asarray(z, float) - centre
            gram = centred @ centred.T
            del centred  # which is as large as z
        else:
            gram = np.asarray(sum(rows.T @ rows for rows, _ in self._chunks()))
        s, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")  # the fastest for all of them
        self.mean_eigenvalue = max(float(s.sum()) / n, 1e-300)  # the scale of the penalties
        mask = s > NEGLIGIBLE * max(s[-1], 1e-300)
        self.s, vectors = s[mask], vectors[:, mask]
        self.u = vectors if n <= d else np.concatenate([rows @ vectors for rows, _ in self._chunks()]) / np.sqrt(self.s)
        self.projected = self.u.T @ y

    def _chunks(self) -> Iterator[tuple[np.ndarray, slice]]:
        """(centred rows in double precision, their positions) in chunks, so that a large Z is never copied whole."""
        for start in track(range(0, len(self.z), CHUNK), "rows"):
            rows = slice(start, start + CHUNK)
            yield np.asarray(self.z[rows], float) - self.centre, rows

    def coefficients(self, penalties: np.ndarray) -> np.ndarray:
        """(L, d, k) solutions for L penalties."""
        shrunk = self.projected / (self.s + penalties[:, None])[:, :, None]
        dual = np.einsum("nr,lrk->nlk", self.u, shrunk, optimize=True)
        flat = dual.reshape(len(dual), -1)
        solutions = np.asarray(sum(z.T @ flat[rows] for z, rows in self._chunks()))
        return solutions.reshape(len(solutions), *dual.shape[1:]).transpose(1, 0, 2)

    def left_out(self, penalties: np.ndarray) -> list[float]:
        """Mean squared error of every row predicted from the others: residual / (1 − leverage)."""
        scores = []
        for penalty in penalties:
            shrunk = self.s / (self.s + penalty)
            residual = self.y - self.u @ (self.projected * shrunk[:, None])
            leverage = 1 / len(self.u) + (self.u**2) @ shrunk
            scores.append(float(np.mean((residual / np.maximum(1 - leverage, 1e-9)[:, None]) ** 2)))
        return scores

    def held_out(self, penalties: np.ndarray, validation: Labelled, mean: np.ndarray) -> list[float]:
        """Mean squared error on validation (vectors, targets)."""
        z, target = np.asarray(validation[0], float) - self.centre, columns_of(validation[1]) - mean
        return [float(np.mean((target - z @ c) ** 2)) for c in self.coefficients(penalties)]


class KernelRidge(VectorRegressor):
    """Ridge regression with the kernel exp(−‖z − z'‖²/2s²) of vectors, s a multiple of their median distance.

    The vectors' coordinates in the span of `landmarks` of them (Nyström) go to `LinearRidge`. With no more vectors than
    landmarks that is kernel ridge regression with a free intercept, exactly.

    Parameters
    ----------
    widths, landmarks : sequence of float, int
        Multiples of the median distance to choose from, and the largest number of vectors that span the solution.
    strengths : see `LinearRidge`
    random_state : int, RandomState, Generator or None
        Seed of the landmarks.

    Attributes
    ----------
    n_features_in_, width_, multiple_ : int, float, float
        Length d of the vectors, s, and the multiple chosen.
    ridge_, landmarks_, whitening_ : LinearRidge, ndarray of shape (m, d), ndarray of shape (m, r)
        The fitted regression, on coordinates k(z, landmarks) `whitening_`.
    score_, edges_ : float, list of str
        Mean squared error by which it was chosen, and settings chosen at an end of their grid.
    """

    widths: tuple[Positive, ...] = (0.5, 1.0, 2.0, 4.0)
    landmarks: Count = 1000
    strengths: list[NonNegative] | None = None

    def fit(self, Z: ArrayLike, y: ArrayLike, validation: Labelled | None = None) -> Self:  # type: ignore[override]
        """Learn targets of vectors.

        Parameters
        ----------
        Z, y, validation : see `LinearRidge.fit`
        """
        check_parameters(self)
        z, y = validate_data(self, Z, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        order = derive_generator("landmarks", draw_seed(self.random_state)).permutation(len(z))
        chosen = np.sort(order[: self.landmarks])
        self.landmarks_ = z[chosen]
        squares = euclidean_distances(z, self.landmarks_, squared=True)
        among = squares[chosen]
        median = math.sqrt(np.median(among[np.triu_indices(len(among), 1)])) or 1.0
        candidates, mapped = [], None
        if validation is not None:
            validation_squares = euclidean_distances(validation[0], self.landmarks_, squared=True)
        for multiple in self.widths:
            width = median * multiple
            whitening = _whitening(_gaussian(among, width))
            if validation is not None:
                mapped = _gaussian(validation_squares, width) @ whitening, validation[1]
            ridge = LinearRidge(self.strengths).fit(_gaussian(squares, width) @ whitening, y, mapped)
            candidates.append((ridge.score_, multiple, width, whitening, ridge))
        best = min(candidates, key=lambda candidate: candidate[0])
        self.score_, self.multiple_, self.width_, self.whitening_, self.ridge_ = best
        self.edges_ = at_edge({"width": (self.multiple_, self.widths)}) + self.ridge_.edges_
        return self

    def predict(self, Z: ArrayLike) -> np.ndarray:
        """Predictions (n,) or (n, k), as the targets were.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        """
        check_is_fitted(self)
        z = validate_data(self, Z, dtype=np.float64, reset=False)
        squares = euclidean_distances(z, self.landmarks_, squared=True)
        return self.ridge_.predict(_gaussian(squares, self.width_) @ self.whitening_)


def at_edge(choices: Mapping[str, tuple[float, Sequence[float] | np.ndarray]]) -> list[str]:
    """Names of the settings whose value is the least or the largest of three or more numbers."""
    ordered = {n: (v, grid) for n, (v, grid) in choices.items() if all(isinstance(t, numbers.Real) for t in grid)}
    return [name for name, (value, grid) in ordered.items() if len(grid) > 2 and value in (min(grid), max(grid))]


def _gaussian(squares: np.ndarray, width: float) -> np.ndarray:
    return np.exp(squares / (-2 * width**2))


def _whitening(kernel: np.ndarray) -> np.ndarray:
    """(m, r) T with K T Tᵀ K = K: the landmarks' kernel to the power −½, without directions that are rounding."""
    s, u = eigh(kernel, check_finite=False, driver="evd")
    mask = s > 1e-12 * s[-1]
    return u[:, mask] / np.sqrt(s[mask])


def columns_of(y: ArrayLike) -> np.ndarray:
    y = np.asarray(y, float)
    return y[:, None] if y.ndim == 1 else y
