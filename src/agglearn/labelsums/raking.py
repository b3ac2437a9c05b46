"""Raking (calibration of a survey's weights, Deville and Särndal 1992) of a sample to noisy tables with the label."""

import math
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from agglearn.linear.sparse_logistic import minimise_scaled
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import noise_variances

MAX_ITER = 200


class Margins(NamedTuple):
    """K numbers of the sample whose weighted means the tables know."""

    x: sparse.csr_array  # (n, K)
    targets: np.ndarray  # (K,) means over the records of the tables
    variances: np.ndarray  # (K,) of the targets

    @classmethod
    def of(cls, tables: ContingencyTables, codes: np.ndarray, y: np.ndarray) -> Self:
        """Cells of the tables of single features, and those with label 1, for codes (n, D) and labels (n,).

        A target varies by the noise, and as a fraction of N records does. Hidden cells have none.
        """
        noise, targets, variances = noise_variances(tables), [np.empty(0)], [np.empty(0)]
        blocks = [sparse.csr_array((len(y), 0))]
        for key in (key for key in tables.tables if len(key) == 1):
            cells, table = codes[:, key[0]], tables.tables[key]
            rows = np.flatnonzero(cells >= 0)
            inside = sparse.csc_array((np.ones(len(rows)), (rows, cells[rows])), (len(y), table.shape[0]))
            visible = table.cells if tables.noise is not None and tables.noise.threshold else np.arange(table.shape[0])
            for x, numbers in zip((inside, inside * y[:, None]), table.dense(), strict=True):
                fraction = numbers[visible] / tables.total
                spread = np.clip(fraction, 1 / tables.total, 1 - 1 / tables.total)
                blocks.append(sparse.csc_array(x)[:, visible])
                targets.append(fraction)
                variances.append(noise[key] / tables.total**2 + spread * (1 - spread) / tables.total)
        return cls(sparse.hstack(blocks, format="csr"), np.concatenate(targets), np.concatenate(variances))

    def take(self, rows: np.ndarray) -> Self:
        return self._replace(x=self.x[rows])

    def weights(self, tol: float = 1e-4) -> np.ndarray:
        """(n,) weights w of mean 1 that minimise Σ w ln w + ½ Σ_j (mean of w·x_j − target_j)²/variance_j.

        With multipliers η (K,) w is proportional to exp(x·η), and η minimises the dual ln mean exp(x·η) − targets·η +
        ½ n Σ variance·η². `tol` is the largest gradient, in standard deviations of x_j. What no row has is left out.
        """
        n, occurs = self.x.shape[0], np.flatnonzero(abs(self.x).sum(axis=0))
        if not len(occurs):
            return np.ones(n)
        x, targets, variances = self.x[:, occurs], self.targets[occurs], n * self.variances[occurs]
        transposed = sparse.csr_array(x.T)

        def dual(eta: np.ndarray) -> tuple[float, np.ndarray]:
            z = x @ eta
            value = logsumexp(z) - math.log(n) - targets @ eta + variances @ eta**2 / 2
            return float(value), transposed @ softmax(z) - targets + variances * eta

        spread = (x * x).sum(axis=0) / n - (x.sum(axis=0) / n) ** 2
        scale = 1 / np.sqrt(np.maximum(spread + variances, 1e-12))
        options = {"maxiter": MAX_ITER, "maxfun": 2 * MAX_ITER, "gtol": tol, "ftol": 1e-15}
        return n * softmax(x @ minimise_scaled(dual, np.zeros(len(scale)), scale, options).x)
