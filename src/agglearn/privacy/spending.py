"""What an attacker gains by a release, and a plain file that adds up what the releases of one data set have spent."""

import datetime
import math
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.special import ndtr

from agglearn.errors import DataError
from agglearn.privacy.budget import CHANGES
from agglearn.privacy.calibration import analytic_gaussian_scale, approximate_epsilon

__all__ = ["add_up", "append_ledger", "attacker_advantage", "gaussian_rho", "read_ledger"]

NUMBERS = ["epsilon", "delta", "rho"]
COLUMNS = ["time", "source", "protected", "mechanism", *NUMBERS]


def read_ledger(path: str | Path) -> pd.DataFrame:
    """The releases that a file holds, none where it is new. DataError for another file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame
        Columns time, source, protected (`record`, `label`, `unit user_id`), mechanism, epsilon, delta, rho.
    """
    if not Path(path).exists():
        return pd.DataFrame(columns=COLUMNS)
    try:
        ledger = pd.read_csv(path)[COLUMNS].astype(dict.fromkeys(NUMBERS, float))
        if (ledger[NUMBERS] >= 0).all(axis=None):
            return ledger
        raise ValueError(path)
    except (KeyError, ValueError):
        raise DataError(f"{path}: is no ledger of `agglearn private`; mend it, or name another file") from None


def append_ledger(path: str | Path, rows: pd.DataFrame) -> pd.DataFrame:
    """Write releases as the last rows of a file, and return all of its rows. A new file gets a header.

    Parameters
    ----------
    path, rows : str or Path, DataFrame
        Rows with the columns of `read_ledger`, whose error stops before anything is written.
    """
    read_ledger(path)
    rows.to_csv(path, mode="a", header=not Path(path).exists(), index=False)
    return read_ledger(path)


def add_up(rows: pd.DataFrame) -> tuple[float, float, float]:
    """(ρ, ε, δ) of several releases of one data set. δ is the sum of theirs, ε the smaller of their sum and what ρ gives.

    Parameters
    ----------
    rows : DataFrame
        Of `read_ledger`, all with the same neighbours.
    """
    epsilon, delta, rho = rows[NUMBERS].astype(float).sum()
    return rho, min(epsilon, approximate_epsilon(rho, delta)) if delta else epsilon, delta


def gaussian_rho(epsilon: float, delta: float) -> float:
    """The ρ of Gaussian noise with the least σ that keeps (ε, δ).

    Parameters
    ----------
    epsilon, delta : float
    """
    return 1 / (2 * analytic_gaussian_scale(1.0, epsilon, delta) ** 2)


def attacker_advantage(epsilon: float, rho: float | None = None) -> float:
    """By how much more often than by chance an attacker tells two neighbours apart: 2·P(right) − 1, from 0 to 1.

    The attacker knows all but which of two neighbours was released, either of which is as likely.

    Parameters
    ----------
    epsilon : float
        Of a release without δ: tanh(ε/2), which no attacker exceeds.
    rho : float or None
        μ²/2 of Gaussian noise, in place of ε: 2Φ(μ/2) − 1, which the best attacker reaches (Dong, Roth, Su 2022).
    """
    return math.tanh(epsilon / 2) if rho is None else 2 * float(ndtr(math.sqrt(rho / 2))) - 1


def describe_attacker(advantage: float, protected: str) -> str:
    """The advantage in words. `protected` is `record`, `label` or `unit`."""
    question = (
        "which of two labels a record has" if protected == "label" else f"whether a {protected} is among the data"
    )
    guesses = f"{50 * (1 + min(advantage, 1.0)):.3g} of 100 guesses"
    return f"An attacker who knows everything else and guesses {question} is right in at most {guesses}, where chance gives 50."


def spending_of(noisy: Any, source: str, choice: float = 0.0) -> tuple[pd.DataFrame, float]:
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
