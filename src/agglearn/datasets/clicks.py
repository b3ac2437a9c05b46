"""Simulated click logs: categorical features of power-law vocabularies, each value with a planted click rate.

A few features have almost all values, as in the Criteo display advertising log (26 features, 28M values).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from agglearn.datasets.base import Population, Simulated, draw_labels
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, Table
from agglearn.observations.counting import Key
from agglearn.seeds import derive_generator
from agglearn.settings import Count, NonNegative, Part, Positive

SMALLEST = 3  # values of the smallest vocabulary


@dataclass(frozen=True)
class TablePopulation:
    """Tables of single features, drawn without rows, under the same codes.

    Parameters
    ----------
    train, test : ContingencyTables
        Of training and of held-out records.
    """

    train: ContingencyTables
    test: ContingencyTables


@dataclass(eq=False, repr=False)
class ClickTables(Simulated):
    """Tables of a click log of any size, drawn directly.

    Every value occurs in the training records: n records are each value once, and for the rest the power law
    P(value k) ∝ 1/(k + 1)^exponent. Label sums are binomial with the values' rates, conditioned on the total, which all
    features share. Rates are Beta with the mean `rate` and belong to the data set. The seed draws records. Held-out records
    follow the same distribution.

    Parameters
    ----------
    n_features, n_values : int
        Numbers of features, and of values of all features together.
    n, n_test : int
        Training and held-out records.
    exponent : float
        Of the power law.
    rate, strength : float
        Mean of Beta(a, b), and a + b.
    """

    n_features: Count = 26
    n_values: Count = 300_000
    n: Count = 400_000
    n_test: Count = 50_000
    exponent: NonNegative = 1.05
    rate: Part = 0.25
    strength: Positive = 20.0

    def draw(self, seed: int, **params: Any) -> TablePopulation:
        p = self.overlay(params)
        sizes = vocabularies(p["n_features"], p["n_values"])
        if sizes[-1] > p["n"]:
            raise DataError(f"click tables: a feature has {sizes[-1]} values, more than the {p['n']} records")
        encoder = FrameEncoder(tuple(CodedEncoder(f"c{i + 1}", size) for i, size in enumerate(sizes)))
        a, b = p["rate"] * p["strength"], (1 - p["rate"]) * p["strength"]
        train, test = dict[Key, Table](), dict[Key, Table]()
        for i, size in enumerate(sizes):
            rates = derive_generator("click rates", a, b, i, size).beta(a, b, size)
            rng = derive_generator("click tables", sorted(p.items()), seed, i)
            train[i,], test[i,] = _draw_feature(rates, p, rng)
        parts = (p["n"], train), (p["n_test"], test)
        return TablePopulation(*(ContingencyTables(encoder, "click", n, round(p["rate"] * n), t) for n, t in parts))


@dataclass(eq=False, repr=False)
class ClickLog(Simulated):
    """Rows of a click log: independent features, P(click) from the sum of the values' planted effects on the log-odds.

    Parameters
    ----------
    n_features, n_values : int
        Numbers of features, and of values of all features together. Rare values may not occur.
    n : int
        Records.
    exponent : float
        Of the power law.
    rate, strength : float
        Fraction of clicks, about, and standard deviation of all effects together.
    """

    PEAK: ClassVar = {"bytes": 100, "n": 50_000, "n_features": 12}

    n_features: Count = 12
    n_values: Count = 20_000
    n: Count = 50_000
    exponent: NonNegative = 1.05
    rate: Part = 0.25
    strength: NonNegative = 1.5

    def draw(self, seed: int, **params: Any) -> Population:
        p = self.overlay(params)
        rng = derive_generator("click log", sorted(p.items()), seed)
        score, columns = np.full(p["n"], np.log(p["rate"] / (1 - p["rate"]))), {}
        for i, size in enumerate(vocabularies(p["n_features"], p["n_values"])):
            codes = np.searchsorted(np.cumsum(_power_law(size, p["exponent"])), rng.random(p["n"])).clip(max=size - 1)
            score += rng.normal(0, p["strength"] / np.sqrt(p["n_features"]), size)[codes]
            columns[f"c{i + 1}"] = codes
        return draw_labels(columns, "v", score, rng)


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
    """The table of one feature from the counts and label sums of all its values."""
    cells = np.flatnonzero(counts)
    return Table((len(counts),), cells, counts[cells], label_sums[cells])


def _draw_feature(rates: np.ndarray, p: dict, rng: np.random.Generator) -> list[Table]:
    """Tables of training and of held-out records of one feature, from its values' click rates."""
    mass, size = _power_law(len(rates), p["exponent"]), len(rates)
    counts = 1 + rng.multinomial(p["n"] - size, mass)
    held_out = rng.multinomial(p["n_test"], (mass * (p["n"] - size) + 1) / p["n"])
    return [feature_table(n, _label_sums(n, rates, round(p["rate"] * n.sum()), rng)) for n in (counts, held_out)]


def _label_sums(counts: np.ndarray, rates: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Binomial label sums, with as many labels flipped at random as it takes to have `total` of them."""
    sums = rng.binomial(counts, rates)
    excess = int(sums.sum()) - total
    free = sums if excess > 0 else counts - sums
    flipped = rng.multivariate_hypergeometric(free, abs(excess), method="marginals")
    return sums - flipped if excess > 0 else sums + flipped
