"""What a release of tables has spent, as rows of a ledger."""

import datetime

import pandas as pd

from agglearn.observations.table import TableSet
from agglearn.privacy.budget import CHANGES
from agglearn.privacy.spending import COLUMNS, attacker_advantage


def spending_of(noisy: TableSet, source: str, choice: float = 0.0) -> tuple[pd.DataFrame, float]:
    """(rows of a ledger, gain of an attacker) of tables with noise that are released now. `source` says of what.

    ρ is Δ²/2σ² over all tables for Gaussian noise, discrete or not (Canonne et al. 2020, theorem 4), and ε²/2 for a pure ε
    (Bun and Steinke 2016, proposition 1.4). The ε that chose the rows of a unit (`choice`) has a row of its own.
    """
    spec = noisy.noise
    assert spec is not None
    epsilon, rho = spec.epsilon - choice, None
    if not spec.mechanism.endswith("laplace"):
        scales = [spec.scale] * (len(noisy.tables) + 1) if spec.scales is None else spec.scales.values()
        change = CHANGES[spec.adjacency][1] * spec.unit.max_rows**2
        rho = sum(change / (2 * scale**2) for scale in scales)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    start = [now, source, f"{spec.adjacency} {spec.unit.column}".strip()]
    rows = [[*start, spec.mechanism, epsilon, spec.delta, epsilon**2 / 2 if rho is None else rho]]
    if choice:
        rows.append([*start, "choice of rows", choice, 0.0, choice**2 / 2])
    return pd.DataFrame(rows, columns=COLUMNS), attacker_advantage(epsilon, rho) + attacker_advantage(choice)
