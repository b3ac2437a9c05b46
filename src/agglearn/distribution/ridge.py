"""Ridge regression, linear and with a Gaussian kernel, with its strength chosen by exact leave-one-out or held-out bags.

No linear system is solved. One symmetric eigendecomposition in double precision gives the solutions for all strengths, with
errors of the order of ε·s_max/λ; strengths end at 1e-9 of the mean eigenvalue, so nothing is ill-conditioned. The thesis's
closed solution of (K + αI)⁻¹y drew warnings from its solver (section 4.3.1).
"""

import math
import numbers
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import eigh
from sklearn.base import RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError
from agglearn.estimator import Estimator, choose_best
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, NonNegative, Positive, check_parameters

STRENGTHS = 10.0 ** np.arange(-9, 3.01, 0.5)  # λ, as multiples of the mean eigenvalue
CHUNK = 4096  # rows turned to double precision at a time
NEGLIGIBLE = 1e-13  # eigenvalues below this share of the largest are rounding


class LinearRidge(RegressorMixin, Estimator):
    """min ‖y − Zβ − β₀‖² + λ‖β‖², any number of targets, λ on a grid of multiples of the mean eigenvalue of Z's covariance.

    Takes vectors, not bags.

    Parameters
    ----------
    strengths : multiples tried; None for 1e-9 to 1e3 in steps of half a decade.
    random_state : not used.

    Attributes
    ----------
    coef_ : (d, k). intercept_ : (k,). strength_ : multiple chosen. l2_ : λ. score_ : mean squared error by which it was chosen.
    edges_ : settings chosen at an end of their grid, by name.
    """

    def __init__(self, strengths: list[NonNegative] | None = None, random_state=None):
        self.strengths = strengths
        self.random_state = random_state

    def fit(self, Z, y, held=None):
        """Learn from vectors (n, d) and targets (n,) or (n, k); `held` = (vectors, targets) chooses λ, else leave-one-out."""
        check_parameters(self)
        y = _columns(y)
        if len(Z) != len(y):
            raise DataError(f"target: {len(y)} values for {len(Z)} bags")
        if len(Z) < 2:
            raise DataError("one bag only: there is nothing to learn from")
        strengths = STRENGTHS if self.strengths is None else np.asarray(self.strengths, float)
        self.centre_ = np.mean(Z, axis=0, dtype=float)
        factors = _Factors(Z, self.centre_, y - y.mean(axis=0))
        penalties = strengths * factors.mean_eigenvalue
        scores = factors.left_out(penalties) if held is None else factors.held_out(penalties, held, y.mean(axis=0))
        best = choose_best(-np.array(scores))
        self.strength_, self.l2_, self.score_ = float(strengths[best]), float(penalties[best]), float(scores[best])
        self.edges_ = at_edge({"strength": (self.strength_, strengths)})
        self.coef_ = factors.coefficients(penalties[[best]])[0]
        self.intercept_ = y.mean(axis=0) - self.centre_ @ self.coef_
        return self

    @property
    def n_features_in_(self) -> int:
        """d, the length of the vectors."""
        return len(self.coef_)

    def predict(self, Z) -> np.ndarray:
        """(n, k) predictions."""
        check_is_fitted(self)
        return np.asarray(Z, float) @ self.coef_ + self.intercept_


class _Factors:
    """Zc = U √s Vᵀ of centred vectors by the eigenvalues of the smaller of ZcᵀZc and ZcZcᵀ; those that are rounding are left out.

    Attributes
    ----------
    s : (r,). u : (n, r). projected : (r, k) Uᵀy. mean_eigenvalue : trace / n, the scale of the penalties.
    """

    def __init__(self, z, centre, y):
        self.z, self.centre, self.y = z, centre, y
        n, d = z.shape
        gram = self._outer() if n <= d else self._inner()
        s, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")  # the fastest for all of them
        self.mean_eigenvalue = max(float(s.sum()) / n, 1e-300)
        kept = s > NEGLIGIBLE * max(s[-1], 1e-300)
        self.s, vectors = s[kept], vectors[:, kept]
        self.u = vectors if n <= d else np.concatenate([rows @ vectors for rows, _ in self._parts()]) / np.sqrt(self.s)
        self.projected = self.u.T @ y

    def _parts(self):
        """(centred rows in double precision, their place) in chunks, so that a large Z is never copied whole."""
        for start in range(0, len(self.z), CHUNK):
            part = slice(start, start + CHUNK)
            yield np.asarray(self.z[part], float) - self.centre, part

    def _inner(self) -> np.ndarray:
        return sum(rows.T @ rows for rows, _ in self._parts())

    def _outer(self) -> np.ndarray:
        z = np.asarray(self.z, float) - self.centre
        return z @ z.T

    def coefficients(self, penalties: np.ndarray) -> np.ndarray:
        """(L, d, k) solutions for L penalties."""
        dual = np.einsum(
            "nr,lrk->nlk", self.u, self.projected / (self.s + penalties[:, None])[:, :, None], optimize=True
        )
        flat = dual.reshape(len(dual), -1)
        found = sum(rows.T @ flat[part] for rows, part in self._parts())
        return found.reshape(len(found), *dual.shape[1:]).transpose(1, 0, 2)

    def left_out(self, penalties: np.ndarray) -> list[float]:
        """Mean squared error of every row predicted from the others, without fitting again: residual / (1 − leverage)."""
        return [self._left_out(p) for p in penalties]

    def _left_out(self, penalty: float) -> float:
        shrunk = self.s / (self.s + penalty)
        residual = self.y - self.u @ (self.projected * shrunk[:, None])
        leverage = 1 / len(self.u) + (self.u**2) @ shrunk
        return float(np.mean((residual / np.maximum(1 - leverage, 1e-9)[:, None]) ** 2))

    def held_out(self, penalties: np.ndarray, held, mean: np.ndarray) -> list[float]:
        """Mean squared error on held-out (vectors, targets)."""
        z, target = np.asarray(held[0], float) - self.centre, _columns(held[1]) - mean
        return [float(np.mean((target - z @ c) ** 2)) for c in self.coefficients(penalties)]


class KernelRidge(RegressorMixin, Estimator):
    """Ridge regression with the kernel exp(−‖z − z'‖²/2s²) of vectors, s a multiple of their median distance.

    The vectors' coordinates in the span of `landmarks` of them (Nyström) go to `LinearRidge`; with no more vectors than
    landmarks that is kernel ridge regression with a free intercept, exactly.

    Parameters
    ----------
    widths : multiples of the median distance tried. landmarks : most vectors that span the solution.
    strengths : as in `LinearRidge`.
    random_state : seed of the landmarks.

    Attributes
    ----------
    ridge_ : the fitted `LinearRidge`. landmarks_ : (m, d). whitening_ : (m, r). width_ : s. multiple_ : chosen.
    edges_ : settings chosen at an end of their grid, by name.
    """

    def __init__(
        self,
        widths: list[Positive] = (0.5, 1.0, 2.0, 4.0),
        landmarks: Count = 1000,
        strengths: list[NonNegative] | None = None,
        random_state=None,
    ):
        self.widths = widths
        self.landmarks = landmarks
        self.strengths = strengths
        self.random_state = random_state

    def fit(self, Z, y, held=None):
        """As in `LinearRidge`; the width is chosen together with λ."""
        check_parameters(self)
        z = np.asarray(Z, float)
        if len(z) < 2:
            raise DataError("one bag only: there is nothing to learn from")
        order = derive_generator("landmarks", draw_seed(self.random_state)).permutation(len(z))
        chosen = np.sort(order[: self.landmarks])
        self.landmarks_ = z[chosen]
        squares = euclidean_distances(z, self.landmarks_, squared=True)
        among = squares[chosen]
        median = math.sqrt(np.median(among[np.triu_indices(len(among), 1)])) or 1.0
        squares_held = None if held is None else euclidean_distances(held[0], self.landmarks_, squared=True)
        best = None
        for multiple in self.widths:
            width = median * multiple
            whitening = _whitening(_gaussian(among, width))
            mapped, ridge = _gaussian(squares, width) @ whitening, LinearRidge(self.strengths)
            ridge.fit(mapped, y, None if held is None else (_gaussian(squares_held, width) @ whitening, held[1]))
            if best is None or ridge.score_ < best[0]:
                best = (ridge.score_, multiple, width, whitening, ridge)
        self.score_, self.multiple_, self.width_, self.whitening_, self.ridge_ = best
        self.edges_ = at_edge({"width": (self.multiple_, self.widths)}) + self.ridge_.edges_
        return self

    @property
    def n_features_in_(self) -> int:
        """d, the length of the vectors."""
        return self.landmarks_.shape[1]

    def predict(self, Z) -> np.ndarray:
        """(n, k) predictions."""
        check_is_fitted(self)
        squares = euclidean_distances(np.asarray(Z, float), self.landmarks_, squared=True)
        return self.ridge_.predict(_gaussian(squares, self.width_) @ self.whitening_)


def at_edge(choices: Mapping[str, tuple[float, Sequence[float]]]) -> list[str]:
    """Names of the settings, name → (value chosen, values tried), whose value is the least or the largest of three or more
    numbers."""
    ordered = {n: (v, tried) for n, (v, tried) in choices.items() if all(isinstance(t, numbers.Real) for t in tried)}
    return [name for name, (value, tried) in ordered.items() if len(tried) > 2 and value in (min(tried), max(tried))]


def _gaussian(squares: np.ndarray, width: float) -> np.ndarray:
    """Kernel of squared distances."""
    return np.exp(squares / (-2 * width**2))


def _whitening(kernel: np.ndarray) -> np.ndarray:
    """(m, r) T with K T Tᵀ K = K: the landmarks' kernel to the power −½, directions that are rounding left out."""
    s, u = eigh(kernel, check_finite=False, driver="evd")
    kept = s > 1e-12 * s[-1]
    return u[:, kept] / np.sqrt(s[kept])


def _columns(y) -> np.ndarray:
    y = np.asarray(y, float)
    return y[:, None] if y.ndim == 1 else y
