"""Populations with a known truth."""

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from agglearn.datasets.base import Population, Simulated, draw_labels
from agglearn.errors import DataError
from agglearn.seeds import derive_generator
from agglearn.settings import Count, NonNegative, Range, Whole

MAX_STATES = 4_000_000


@dataclass(eq=False, repr=False)
class LogLinear(Simulated):
    """Records drawn exactly from a pairwise model π(x, y) ∝ exp(φ(x)·(μ + yθ)) (Gilotte et al. 2022, eq. 1).

    The weights belong to the data set, only the records change with the seed.

    Parameters
    ----------
    n_features, n_modalities : int
        D, and M of each feature. All M^D states are enumerated, so the sample is exact.
    strength : float
        Standard deviation of the pair weights of μ and θ.
    n, weights_seed : int
        Records, and the seed of the weights.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 20_000, "n_features": 6}

    n_features: Annotated[int, Range(2)] = 6
    n_modalities: Annotated[int, Range(2)] = 5
    strength: NonNegative = 0.8
    n: Count = 20_000
    weights_seed: Whole = 0

    def draw(self, seed: int, **params: Any) -> Population:
        p = self.overlay(params)
        d, m = p["n_features"], p["n_modalities"]
        if m**d > MAX_STATES:
            raise DataError(f"loglinear: {m}^{d} states are too many to enumerate; at most {MAX_STATES:,}")
        model = {k: v for k, v in p.items() if k != "n"}
        mu, theta, intercept = weights(d, m, p["strength"], derive_generator("loglinear", sorted(model.items())))
        mu_sum, theta_sum = interaction(mu, d, m), intercept + interaction(theta, d, m)
        log_mass = mu_sum + np.logaddexp(0, theta_sum)
        mass = np.exp(log_mass - log_mass.max())
        rng = derive_generator("loglinear-records", sorted(p.items()), seed)
        state = rng.choice(len(mass), p["n"], p=mass / mass.sum())
        columns = {f"x{i + 1}": codes for i, codes in enumerate(np.unravel_index(state, (m,) * d))}
        return draw_labels(columns, "m", theta_sum[state], rng, theta=theta)


@dataclass(eq=False, repr=False)
class Categorical(Simulated):
    """Independent features with power-law frequencies and a label that depends on each, of any shape, without enumeration.

    Parameters
    ----------
    n_features, n_modalities, n : int
        D, M of each feature with P(modality k) ∝ 1/(k+1), and records.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 20_000, "n_features": 10}

    n_features: Count = 10
    n_modalities: Count = 10
    n: Count = 20_000

    def draw(self, seed: int, **params: Any) -> Population:
        p = self.overlay(params)
        d, m, n = p["n_features"], p["n_modalities"], p["n"]
        rng = derive_generator("categorical", sorted(p.items()), seed)
        mass = 1 / np.arange(1, m + 1)
        codes = rng.choice(m, (n, d), p=mass / mass.sum())
        score = rng.normal(0, 1 / np.sqrt(d), (d, m))[np.arange(d), codes].sum(axis=1) - 1
        return draw_labels({f"x{i + 1}": codes[:, i] for i in range(d)}, "m", score, rng)


@dataclass(eq=False, repr=False)
class Xor(Simulated):
    """X3 = X1 xor X2, P(Y=1) = 0.25 + 0.5·X3: pairs do not predict what all three predict (Gilotte et al. 2022, section 4.2).

    Parameters
    ----------
    n : int
        Records. Each of the eight combinations of X1, X2 and Y has its exact frequency, so n must be a multiple of 16.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 16_000, "features": 3}

    n: Annotated[int, Range(16)] = 16_000

    def draw(self, seed: int, **params: Any) -> Population:
        n = self.overlay(params)["n"]
        if n % 16:
            raise DataError(f"xor: takes n, a multiple of 16; got {params}")
        one, two, label = np.repeat([(a, b, k) for a in (0, 1) for b in (0, 1) for k in range(4)], n // 16, axis=0).T
        three = one ^ two
        y = (label < 1 + 2 * three).astype(np.int8)
        order = derive_generator("xor", seed).permutation(n)
        frame = pd.DataFrame({"x1": one, "x2": two, "x3": three}).astype(str).iloc[order].reset_index(drop=True)
        return Population(frame, y[order], (0.25 + 0.5 * three)[order])


def weights(d: int, m: int, strength: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Random pair weights as symmetric (d·m, d·m) matrices μ and θ (diagonal: single weights), and the intercept."""
    mu, theta = np.zeros((2, d * m, d * m))
    for i, j in itertools.combinations(range(d), 2):
        for matrix in (mu, theta):
            block = rng.normal(0, strength / np.sqrt(d - 1), (m, m))
            matrix[i * m : (i + 1) * m, j * m : (j + 1) * m] = block
            matrix[j * m : (j + 1) * m, i * m : (i + 1) * m] = block.T
    for matrix in (mu, theta):
        np.fill_diagonal(matrix, rng.normal(0, strength / 2, d * m))
    return mu, theta, -1.0


def interaction(w: np.ndarray, d: int, m: int) -> np.ndarray:
    """φ(x)·w for every state x in C order, (m^d,)."""
    total = np.zeros((m,) * d)
    for i in range(d):
        shape = [m if k == i else 1 for k in range(d)]
        total += np.diagonal(w)[i * m : (i + 1) * m].reshape(shape)
        for j in range(i + 1, d):
            shape = [m if k in (i, j) else 1 for k in range(d)]
            total += w[i * m : (i + 1) * m, j * m : (j + 1) * m].reshape(shape)
    return total.ravel()
