"""Noise of the cells of released tables, and how far posterior means of the true counts follow noisy ones."""

from typing import NamedTuple

import numpy as np

from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import noise_variances

LEAST = 1e-9  # records expected in a cell


class Gains(NamedTuple):
    """(m,) how far posterior means follow observed numbers: d* = d̂ + dd·(d̃ − d̂) + dc·(c̃ − ĉ), and c* likewise."""

    dd: np.ndarray
    dc: np.ndarray
    cd: np.ndarray
    cc: np.ndarray


def gains(d_hat: np.ndarray, c_hat: np.ndarray, var_d: np.ndarray, var_c: np.ndarray) -> Gains:
    """Return Kalman gains for expectations (m,) and noise variances (m,). Without noise they are 1, 0, 0, 1."""
    a = np.maximum(c_hat, LEAST)  # variance of the records with label 1, of a Poisson number
    b = np.maximum(d_hat - c_hat, LEAST)
    det = a * b + var_c * (a + b) + var_d * (a + var_c)
    return Gains((a * b + var_c * (a + b)) / det, a * var_d / det, a * var_c / det, a * (b + var_d) / det)


def variances(tables: ContingencyTables) -> tuple[np.ndarray, np.ndarray]:
    """Return (m,) noise variances of counts and of label sums, in the order of `WeightIndex`."""
    by_table = noise_variances(tables)
    each = np.concatenate([np.full(int(np.prod(t.shape)), by_table[k]) for k, t in tables.tables.items()])
    public = tables.noise is not None and tables.noise.adjacency == "label"
    return (np.zeros_like(each) if public else each), each
