"""One budget over all tables. Inside a table records compose in parallel: a record is in one cell. Over tables, and
the totals as one more, ε adds up (Laplace), or Δ²/σ² does (Gaussian: Balle and Wang 2018).
"""

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from agglearn.errors import ConfigError
from agglearn.privacy.calibration import analytic_gaussian_scale, check_promise, discrete_gaussian_scales
from agglearn.privacy.mechanisms import Mechanism
from agglearn.settings import check_choice

Key = TypeVar("Key", bound=Hashable)

TOTALS = "totals"
SPLITS = ("uniform", "cells")
# Change of counts and label sums of one table by one record more or less, or by one label exchanged: L1, squared L2.
# That of a unit's records is this many times larger, all of them in one cell at worst.
CHANGES = {"record": (2, 2), "unit": (2, 2), "label": (1, 1)}


def budget_shares(cells: Mapping[Key, int], split: str = "uniform") -> dict[Key | str, float]:
    """{table, …, TOTALS: fraction of the budget}, adding up to 1."""
    check_choice("split", split, SPLITS)
    each = 1 / (len(cells) + 1)
    if split == "uniform":
        return dict.fromkeys([*cells, TOTALS], each)
    return {**{k: (1 - each) * n / sum(cells.values()) for k, n in cells.items()}, TOTALS: each}


def mechanisms(
    cells: Mapping[Key, int], mechanism: str, epsilon: float, delta: float | None, split: str = "uniform",
    adjacency: str = "record", max_rows: int = 1,
) -> dict[Key | str, Mechanism]:  # fmt: skip
    """{table, …, TOTALS: mechanism} of a release of all tables that guarantees (ε, δ) as a whole.

    `max_rows` records, or labels, are those of one neighbour.
    """
    epsilon, delta = check_promise(epsilon, delta, mechanism)
    check_choice("adjacency", adjacency, CHANGES)
    (l1, l2_squared), fractions = CHANGES[adjacency], budget_shares(cells, split)
    if mechanism.endswith("laplace"):
        return {k: Mechanism(mechanism, max_rows * l1 / (epsilon * fraction)) for k, fraction in fractions.items()}
    ratios = 1 / np.sqrt(list(fractions.values()))
    if mechanism == "gaussian":
        scales = max_rows * math.sqrt(l2_squared) * analytic_gaussian_scale(1, epsilon, delta) * ratios
    else:  # of each table so many numbers change, by `max_rows` each
        repeated = np.repeat(ratios, l2_squared)
        scales = discrete_gaussian_scales(repeated, np.full(len(repeated), max_rows), epsilon, delta)[::l2_squared]
    return {k: Mechanism(mechanism, float(scale)) for k, scale in zip(fractions, scales, strict=True)}


def check_delta(delta: float | None, records: float) -> None:
    """Raise ConfigError for δ from 1/N on: the publication of one record in N, drawn at random, would satisfy it."""
    if delta and delta * records >= 1:
        advice = "choose one far below, for example 1/N²"
        raise ConfigError(f"delta: {delta:g} is not below one over the number of records; {advice}")
