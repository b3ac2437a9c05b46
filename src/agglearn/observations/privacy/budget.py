"""One budget over all tables: which share of it each takes, and how much noise that means.

Inside a table records compose in parallel: a record is in one cell. Over tables they compose one after the other: ε adds
up (Laplace), or ρ does (Gaussian; zCDP, Bun and Steinke 2016, lemma 2.3). The two totals count as one more table.
"""

import math

from agglearn.errors import ConfigError
from agglearn.observations.privacy.calibration import checked, zcdp_budget
from agglearn.observations.privacy.mechanisms import Mechanism

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
    checked(epsilon, delta, mechanism)
    if adjacency not in CHANGES:
        raise ConfigError(f"adjacency: {adjacency!r} is not known; use {' or '.join(CHANGES)}")
    (l1, l2_squared), parts = CHANGES[adjacency], shares(tables, split)
    if mechanism.endswith("laplace"):
        return {k: Mechanism(mechanism, l1 / (epsilon * share)) for k, share in parts.items()}
    rho = zcdp_budget(epsilon, delta)
    return {k: Mechanism(mechanism, math.sqrt(l2_squared / (2 * rho * share))) for k, share in parts.items()}
