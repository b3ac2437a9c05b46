"""One budget over all tables: which share of it each takes, and how much noise that means.

Inside a table records compose in parallel: a record is in one cell. Over tables they compose one after the other: ε adds
up (Laplace), or Δ²/σ² does (Gaussian: independent normal numbers of any variances are one Gaussian mechanism, Balle and Wang
2018; whole ones are accounted for by `accounting`). The two totals count as one more table.
"""

import math

import numpy as np

from agglearn.errors import ConfigError
from agglearn.privacy.calibration import analytic_gaussian_scale, checked, discrete_gaussian_scales
from agglearn.privacy.mechanisms import Mechanism

TOTALS = "totals"
SPLITS = ("uniform", "cells")
# what one record more or less, or one label exchanged, does to counts and label sums of one table: L1, squared L2
CHANGES = {"record": (2, 2), "label": (1, 1)}


def shares(tables, split: str = "uniform") -> dict:
    """{table, …, TOTALS: share of the budget}, adding up to 1.

    `uniform` gives each the same; `cells` gives the totals their uniform share, and the rest to tables in proportion to
    their cells.
    """
    if split not in SPLITS:
        raise ConfigError(f"split: {split!r} is not known; use {' or '.join(SPLITS)}")
    each = 1 / (len(tables.tables) + 1)
    if split == "uniform":
        return dict.fromkeys([*tables.tables, TOTALS], each)
    cells = {k: math.prod(t.shape) for k, t in tables.tables.items()}
    return {k: (1 - each) * n / sum(cells.values()) for k, n in cells.items()} | {TOTALS: each}


def mechanisms(
    tables, mechanism: str, epsilon: float, delta: float | None, split: str = "uniform", adjacency: str = "record"
) -> dict:
    """{table, …, TOTALS: mechanism} of a release of all tables that promises (ε, δ) as a whole."""
    epsilon, delta = checked(epsilon, delta, mechanism)
    if adjacency not in CHANGES:
        raise ConfigError(f"adjacency: {adjacency!r} is not known; use {' or '.join(CHANGES)}")
    (l1, l2_squared), parts = CHANGES[adjacency], shares(tables, split)
    if mechanism.endswith("laplace"):
        return {k: Mechanism(mechanism, l1 / (epsilon * share)) for k, share in parts.items()}
    ratios = 1 / np.sqrt(list(parts.values()))
    if mechanism == "gaussian":
        scales = math.sqrt(l2_squared) * analytic_gaussian_scale(1, epsilon, delta) * ratios
    else:  # of each table so many numbers change, by 1 each
        each = np.repeat(ratios, l2_squared)
        scales = discrete_gaussian_scales(each, np.ones(len(each), int), epsilon, delta)[::l2_squared]
    return {k: Mechanism(mechanism, float(scale)) for k, scale in zip(parts, scales, strict=True)}
