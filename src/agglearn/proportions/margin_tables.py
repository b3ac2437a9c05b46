"""Tables inside units of which only the margins are known: balanced tables, exact means, bounds, penalised fits."""

import numpy as np

from agglearn.errors import DataError

FLAT = 10.0  # prior variance of what all groups have in common in an option: nearly nothing is known of it
TINY = 1e-9  # votes added to an expected count, so that an option without votes has a logarithm


def balance(tables: np.ndarray, rows: np.ndarray, columns: np.ndarray, n_iter: int = 60) -> np.ndarray:
    """(…, R, C) tables scaled by row and by column until they have the margins (…, R) and (…, C).

    Among all tables with these margins it is the nearest in relative entropy. It is the saddle-point approximation of
    the mean table, see `exact_mean`.
    """
    tables = tables + TINY
    by_column = np.ones_like(tables[..., 0, :])
    for _ in range(n_iter):
        by_row = rows / (tables @ by_column[..., None])[..., 0]
        sums = (by_row[..., None, :] @ tables)[..., 0, :]
        by_column = columns / np.maximum(sums, 1e-300)
    return tables * by_row[..., :, None] * by_column[..., None, :]


def exact_mean(groups: np.ndarray, votes: np.ndarray, probabilities: np.ndarray) -> tuple[float, np.ndarray]:
    """(log P(votes | groups), mean (R, C) table given both margins) of people who vote by (R, C) probabilities.

    P(votes | groups) is the coefficient of Π_c x_c^votes_c in Π_r (Σ_c p_rc x_c)^groups_r. With one person of group r
    less, who voted for c, it gives the mean of cell (r, c). Counts are whole numbers.
    """
    n, p, exponents = (
        groups.astype(int),
        probabilities,
        votes[:-1].astype(int),
    )  # the last exponent follows from the others
    product, mean = _product(n, p, tuple(exponents + 1)), np.zeros_like(p)
    for r in np.flatnonzero(n):
        fewer = n.copy()
        fewer[r] -= 1
        without = _product(fewer, p, tuple(exponents + 1))
        for k in np.flatnonzero(votes):
            mean[r, k] = (
                n[r]
                * p[r, k]
                * without[tuple(exponents - (np.arange(len(exponents)) == k))]
                / product[tuple(exponents)]
            )
    return float(np.log(product[tuple(exponents)])), mean


def _product(n: np.ndarray, p: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Coefficients of Π_r (Σ_c p_rc x_c)^n_r up to the exponents of `shape`, with x = 1 for the last option."""
    product = np.zeros(shape)
    product[(0,) * len(shape)] = 1.0
    for r, count in enumerate(n):
        for _ in range(count):
            grown = p[r, -1] * product
            for k in range(len(shape)):
                ahead, behind = [slice(None)] * len(shape), [slice(None)] * len(shape)
                ahead[k], behind[k] = slice(1, None), slice(None, -1)
                grown[tuple(ahead)] += p[r, k] * product[tuple(behind)]
            product = grown
    return product


def exact_size(groups: np.ndarray, votes: np.ndarray) -> float:
    """About how many operations `exact_mean` needs for units (U, R) and (U, C)."""
    states = np.prod(votes[:, :-1] + 1, axis=1)
    return float((states * groups.sum(axis=1) * (groups > 0).sum(axis=1) * votes.shape[1]).sum())


def duncan_davis(groups: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest (R, C) sums of cells that the margins (U, R) and (U, C) of the units allow."""
    n, m, total = groups[:, :, None], votes[:, None, :], groups.sum(axis=1)[:, None, None]
    return np.maximum(0, n + m - total).sum(axis=0), np.minimum(n, m).sum(axis=0)


def softmax(theta: np.ndarray) -> np.ndarray:
    p = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


class MarginFit:
    """Maximum a posteriori probabilities of (R, C) log odds θ from the margins of units.

    Log likelihood Σ_u w_u log P(votes_u | groups_u, softmax θ). With `exact` it is the one of `exact_mean`, else
    Σ_c votes_uc log Σ_r groups_ur p_rc: each voter is drawn from the unit's people. Both grow with expected tables.
    Prior: θ_rc = β_c + e_rc with e_rc ~ N(0, spread²) and β_c ~ N(0, 10).
    """

    def __init__(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray, spread: float, exact: bool):
        self.groups, self.votes, self.weights, self.exact = groups, votes, weights, exact
        n_rows, self.n_options = groups.shape[1], votes.shape[1]
        within = np.eye(n_rows) / spread**2
        shared = within.sum(axis=1)
        within -= np.outer(shared, shared) / (1 / FLAT + shared.sum())
        self.precision = np.kron(within, np.eye(self.n_options))

    def _likelihood(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """(log likelihood, (R, C) its gradient in log p): the expected table, by weighted units."""
        p = softmax(theta)
        if self.exact:
            posteriors = [exact_mean(n, m, p) for n, m in zip(self.groups, self.votes, strict=True)]
            tables = np.array([table for _, table in posteriors])
            return float(self.weights @ [value for value, _ in posteriors]), np.tensordot(self.weights, tables, 1)
        expected = self.groups @ p + TINY
        value = self.weights @ (self.votes * np.log(expected)).sum(axis=1)
        return float(value), p * (self.groups.T @ (self.weights[:, None] * self.votes / expected))

    def _information(self, theta: np.ndarray) -> np.ndarray:
        p = softmax(theta)
        slopes = p[:, :, None] * np.eye(self.n_options) - p[:, :, None] * p[:, None, :]  # of p_rc in θ_rk
        expected = self.groups @ p + TINY
        jacobian = np.einsum("ur,rck->ucrk", self.groups, slopes).reshape(expected.size, -1)
        jacobian *= np.sqrt(self.weights[:, None] / expected).reshape(-1, 1)
        return jacobian.T @ jacobian + self.precision

    def solve(self, theta: np.ndarray, n_iter: int = 30, tol: float = 1e-7) -> tuple[np.ndarray, np.ndarray]:
        """(R, C) θ at the maximum and the (RC, RC) inverse covariance there, by Fisher scoring from a start."""

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, table = self._likelihood(theta)
            pull = (self.precision @ theta.ravel()).reshape(theta.shape)
            gradient = table - softmax(theta) * table.sum(axis=1, keepdims=True) - pull
            return value - 0.5 * float(theta.ravel() @ pull.ravel()), gradient

        value, gradient = objective(theta)
        if not np.isfinite(value):
            raise DataError("votes: the likelihood of the margins is no number; units are too large for method exact")
        for _ in range(n_iter):
            information = self._information(theta)
            step = np.linalg.solve(information, gradient.ravel()).reshape(theta.shape)
            gain = float(step.ravel() @ gradient.ravel())
            length = 1.0
            while (ahead := objective(theta + length * step))[0] < value and length > 1e-6:
                length /= 2
            if ahead[0] >= value:
                theta, (value, gradient) = theta + length * step, ahead
            if gain < tol * max(1.0, abs(value)) or length <= 1e-6:
                break
        return theta, self._information(theta)
