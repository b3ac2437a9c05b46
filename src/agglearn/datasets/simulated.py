"""Populations of records with a known truth: pairwise models, independent features, and click logs, as of Criteo."""

import itertools
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd

from agglearn.datasets.base import Population, Simulated
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, Table
from agglearn.observations.counting import Key
from agglearn.seeds import derive_generator
from agglearn.settings import Count, NonNegative, Part, Positive, Range, Whole

MAX_STATES = 4_000_000
SMALLEST = 3  # values of the smallest vocabulary


class LogLinear(Simulated):
    """Records drawn exactly from a pairwise model π(x, y) ∝ exp(φ(x)·(μ + yθ)) (Gilotte et al. 2022, eq. 1).

    Parameters
    ----------
    n_features, n_modalities, strength, n, weights_seed : int, int, float, int, int
        D, M of each (all M^D states are enumerated), deviation of pair weights, records, seed of the weights only.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 20_000, "n_features": 6}

    n_features: Annotated[int, Range(2)] = 6
    n_modalities: Annotated[int, Range(2)] = 5
    strength: NonNegative = 0.8
    n: Count = 20_000
    weights_seed: Whole = 0

    def draw(self, seed: int) -> Population:
        d, m = self.n_features, self.n_modalities
        if m**d > MAX_STATES:
            raise DataError(f"loglinear: {m}^{d} states are too many to enumerate; at most {MAX_STATES:,}")
        model = {k: v for k, v in self.arguments.items() if k != "n"}
        mu, theta, intercept = weights(d, m, self.strength, derive_generator("loglinear", sorted(model.items())))
        mu_sum, theta_sum = interaction(mu, d, m), intercept + interaction(theta, d, m)
        log_mass = mu_sum + np.logaddexp(0, theta_sum)
        mass = np.exp(log_mass - log_mass.max())
        rng = derive_generator("loglinear-records", sorted(self.arguments.items()), seed)
        state = rng.choice(len(mass), self.n, p=mass / mass.sum())
        columns = {f"x{i + 1}": codes for i, codes in enumerate(np.unravel_index(state, (m,) * d))}
        return draw_labels(columns, "m", theta_sum[state], rng, theta=theta)


class Categorical(Simulated):
    """Independent features with power-law frequencies and a label that depends on each, of any shape.

    Parameters
    ----------
    n_features, n_modalities, n : int
        D, M of each feature with P(modality k) ∝ 1/(k+1), and records.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 20_000, "n_features": 10}

    n_features: Count = 10
    n_modalities: Count = 10
    n: Count = 20_000

    def draw(self, seed: int) -> Population:
        d, m, n = self.n_features, self.n_modalities, self.n
        rng = derive_generator("categorical", sorted(self.arguments.items()), seed)
        mass = 1 / np.arange(1, m + 1)
        codes = rng.choice(m, (n, d), p=mass / mass.sum())
        score = rng.normal(0, 1 / np.sqrt(d), (d, m))[np.arange(d), codes].sum(axis=1) - 1
        return draw_labels({f"x{i + 1}": codes[:, i] for i in range(d)}, "m", score, rng)


class Xor(Simulated):
    """X3 = X1 xor X2, P(Y=1) = 0.25 + 0.5·X3: pairs do not predict it (Gilotte et al. 2022, section 4.2).

    Parameters
    ----------
    n : int
        Records. Each of the eight combinations of X1, X2 and Y has its exact frequency, so n must be a multiple of 16.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 16_000, "features": 3}

    n: Annotated[int, Range(16)] = 16_000

    def draw(self, seed: int) -> Population:
        n = self.n
        if n % 16:
            raise DataError(f"xor: takes n, a multiple of 16; got {n}")
        x1, x2, label = np.repeat([(a, b, k) for a in (0, 1) for b in (0, 1) for k in range(4)], n // 16, axis=0).T
        x3 = x1 ^ x2
        y = (label < 1 + 2 * x3).astype(np.int8)
        order = derive_generator("xor", seed).permutation(n)
        frame = pd.DataFrame({"x1": x1, "x2": x2, "x3": x3}).astype(str).iloc[order].reset_index(drop=True)
        return Population(frame, y[order], (0.25 + 0.5 * x3)[order])


class SoftmaxLabels(Simulated):
    """Records of normal covariates for bags of one size, P(Y = c | x) ∝ exp(x·θ_c) with normal θ (Sun 2019, 3.4.3.1).

    Parameters
    ----------
    n_classes, n_features, bags : int, int, int
        C, d, and instances per bag. Twice as many records are drawn, of which the training rows fill one bag.
    """

    PEAK: ClassVar = {"bytes": 50, "bags": 1000, "n_features": 5}

    n_classes: Annotated[int, Range(2)] = 2
    n_features: Count = 5
    bags: Count = 1000

    def draw(self, seed: int) -> Population:
        d, n = self.n_features, 2 * self.bags
        rng = derive_generator("softmax labels", sorted(self.arguments.items()), seed)
        x = rng.normal(size=(n, d))
        score = x @ rng.normal(size=(d, self.n_classes))
        y = (score + rng.gumbel(size=score.shape)).argmax(axis=1).astype(np.int8)
        probabilities = np.exp(score - np.logaddexp.reduce(score, axis=1, keepdims=True))
        return Population(pd.DataFrame(x, columns=[f"x{i + 1}" for i in range(d)]), y, probabilities[:, 1])


@dataclass(frozen=True)
class TablePopulation:
    """Tables of single features of training and of held-out records, drawn without rows, under the same codes.

    Parameters
    ----------
    train, test : ContingencyTables
    """

    train: ContingencyTables
    test: ContingencyTables


class ClickTables(Simulated):
    """Tables of a click log of any size, drawn directly. Rates of values belong to the data set, records to the seed.

    Training records are each value once, and for the rest the power law P(value k) ∝ 1/(k + 1)^exponent, as held-out
    ones are. Label sums are binomial with the values' rates, conditioned on the total, which all features share.

    Parameters
    ----------
    n_features, n_values, n, n_test, exponent, rate, strength : int, int, int, int, float, float, float
        Features, values of all together, training and held-out records, exponent, mean of Beta(a, b), and a + b.
    """

    n_features: Count = 26
    n_values: Count = 300_000
    n: Count = 400_000
    n_test: Count = 50_000
    exponent: NonNegative = 1.05
    rate: Part = 0.25
    strength: Positive = 20.0

    def draw(self, seed: int) -> TablePopulation:
        sizes = vocabularies(self.n_features, self.n_values)
        if sizes[-1] > self.n:
            raise DataError(f"click tables: a feature has {sizes[-1]} values, more than the {self.n} records")
        encoder = FrameEncoder(tuple(CodedEncoder(f"c{i + 1}", size) for i, size in enumerate(sizes)))
        a, b = self.rate * self.strength, (1 - self.rate) * self.strength
        train, test = dict[Key, Table](), dict[Key, Table]()
        for i, size in enumerate(sizes):
            rates = derive_generator("click rates", a, b, i, size).beta(a, b, size)
            rng = derive_generator("click tables", sorted(self.arguments.items()), seed, i)
            train[i,], test[i,] = self._draw_feature(rates, rng)
        subsets = (self.n, train), (self.n_test, test)
        return TablePopulation(*(ContingencyTables(encoder, "click", n, round(self.rate * n), t) for n, t in subsets))

    def _draw_feature(self, rates: np.ndarray, rng: np.random.Generator) -> list[Table]:
        mass, size = _power_law(len(rates), self.exponent), len(rates)
        counts = 1 + rng.multinomial(self.n - size, mass)
        held_out = rng.multinomial(self.n_test, (mass * (self.n - size) + 1) / self.n)
        return [feature_table(n, _label_sums(n, rates, round(self.rate * n.sum()), rng)) for n in (counts, held_out)]


class ClickLog(Simulated):
    """Rows of a click log: independent features, P(click) from the sum of the values' planted effects on the log-odds.

    Parameters
    ----------
    n_features, n_values, n, exponent, rate, strength : int, int, int, float, float, float
        Features, values of all together, of which rare ones may not occur, records, exponent of the power law, fraction
        of clicks, about, and standard deviation of all effects together.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 50_000, "n_features": 12}

    n_features: Count = 12
    n_values: Count = 20_000
    n: Count = 50_000
    exponent: NonNegative = 1.05
    rate: Part = 0.25
    strength: NonNegative = 1.5

    def draw(self, seed: int) -> Population:
        rng = derive_generator("click log", sorted(self.arguments.items()), seed)
        score, columns = np.full(self.n, np.log(self.rate / (1 - self.rate))), {}
        for i, size in enumerate(vocabularies(self.n_features, self.n_values)):
            codes = np.searchsorted(np.cumsum(_power_law(size, self.exponent)), rng.random(self.n)).clip(max=size - 1)
            score += rng.normal(0, self.strength / np.sqrt(self.n_features), size)[codes]
            columns[f"c{i + 1}"] = codes
        return draw_labels(columns, "v", score, rng)


def draw_labels(
    columns: dict[str, np.ndarray], prefix: str, log_odds: np.ndarray, rng: np.random.Generator, **truth: np.ndarray
) -> Population:
    probability = 1 / (1 + np.exp(-log_odds))
    y = (rng.random(len(probability)) < probability).astype(np.int8)
    return Population(pd.DataFrame({c: _value_names(prefix, k) for c, k in columns.items()}), y, probability, truth)


def _value_names(prefix: str, codes: np.ndarray) -> np.ndarray:
    return np.array([f"{prefix}{k}" for k in range(codes.max(initial=-1) + 1)], dtype=object)[codes]


def weights(d: int, m: int, strength: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Symmetric (d·m, d·m) matrices μ and θ (diagonal: single weights), and the intercept."""
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


def vocabularies(n_features: int, n_values: int) -> list[int]:
    """Sizes of the vocabularies, in geometric progression from 3 up, that add up to `n_values`."""
    if n_values < SMALLEST * n_features:
        raise DataError(f"{n_values} values are too few for {n_features} features; at least {SMALLEST} each")
    low, high = 1.0, float(n_values)
    for _ in range(200):
        ratio = (low * high) ** 0.5
        total = sum(SMALLEST * ratio**i for i in range(n_features)) if ratio < 1e6 else np.inf
        low, high = (ratio, high) if total < n_values else (low, ratio)
    sizes = [round(SMALLEST * low**i) for i in range(n_features)]
    sizes[-1] += n_values - sum(sizes)
    return sizes


def _power_law(size: int, exponent: float) -> np.ndarray:
    mass = np.arange(1, size + 1) ** -float(exponent)
    return mass / mass.sum()


def feature_table(counts: np.ndarray, label_sums: np.ndarray) -> Table:
    cells = np.flatnonzero(counts)
    return Table((len(counts),), cells, counts[cells], label_sums[cells])


def _label_sums(counts: np.ndarray, rates: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Binomial label sums, with as many labels flipped at random as it takes to have `total` of them."""
    sums = rng.binomial(counts, rates)
    excess = int(sums.sum()) - total
    free = sums if excess > 0 else counts - sums
    flipped = rng.multivariate_hypergeometric(free, abs(excess), method="marginals")
    return sums - flipped if excess > 0 else sums + flipped
