"""What an attacker gains by a release, and a plain file that adds up what the releases of one data set have spent."""

import math
from pathlib import Path

import pandas as pd
from scipy.special import ndtr

from agglearn.errors import DataError
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
