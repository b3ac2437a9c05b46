"""What a release of tables has spent, in numbers that add up."""

import datetime
import math

from agglearn.observations.base import NoiseSpec
from agglearn.observations.table import TableSet
from agglearn.privacy.budget import CHANGES
from agglearn.privacy.spending import Spending, attacker_advantage


def release_rho(noisy: TableSet, choice: float = 0.0) -> float:
    """ρ of the zCDP of tables with noise. Gaussian noise, discrete or not, has Δ²/2σ² per table, a pure ε has ε²/2.

    Bun and Steinke 2016, propositions 1.4 and 1.6; Canonne et al. 2020, theorem 4. `choice` is the ε that chose the
    rows of a unit.
    """
    spec = _noise(noisy)
    if spec.mechanism.endswith("laplace"):
        return spec.epsilon**2 / 2
    scales = [spec.scale] * (len(noisy.tables) + 1) if spec.scales is None else list(spec.scales.values())
    change = CHANGES[spec.adjacency][1] * spec.unit.max_rows**2
    return sum(change / (2 * scale**2) for scale in scales) + choice**2 / 2


def release_advantage(noisy: TableSet, choice: float = 0.0) -> float:
    """What an attacker gains by tables with noise, see `attacker_advantage`. That of a choice of rows adds up."""
    spec = _noise(noisy)
    if spec.mechanism.endswith("laplace"):
        return attacker_advantage(spec.epsilon)
    return attacker_advantage(0.0, release_rho(noisy)) + math.tanh(choice / 2)


def spending_of(noisy: TableSet, source: str, choice: float = 0.0) -> Spending:
    """The row of a ledger for tables with noise that are released now. `source` says of what."""
    spec, now = _noise(noisy), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    protected = f"{spec.adjacency} {spec.unit.column}".strip()
    rho = release_rho(noisy, choice)
    return Spending(now, source, protected, spec.mechanism, spec.epsilon, spec.delta, rho)


def _noise(noisy: TableSet) -> NoiseSpec:
    assert noisy.noise is not None
    return noisy.noise
