"""What an attacker gains by a release, and a plain file that adds up what the releases of one data set have spent."""

import csv
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from agglearn.errors import DataError
from agglearn.privacy.calibration import analytic_gaussian_scale

__all__ = ["Spending", "add_up", "attacker_advantage", "describe_attacker", "gaussian_rho", "zcdp_epsilon"]

TEXTS, NUMBERS = ("time", "source", "protected", "mechanism"), ("epsilon", "delta", "rho")
ORDERS = 1 + np.logspace(-6, 6, 2000)  # of Rényi divergences that are tried: each gives a valid ε


@dataclass(frozen=True)
class Spending:
    """One release of a data set, a row of a ledger.

    Parameters
    ----------
    time, source, protected, mechanism : str
        When, of what, whom neighbours differ in (`record`, `label`, `unit user_id, 3 rows`), and the mechanism.
    epsilon, delta, rho : float
        Parameters of its guarantee, and ρ of zero-concentrated differential privacy, which adds up over releases.
    """

    time: str
    source: str
    protected: str
    mechanism: str
    epsilon: float
    delta: float
    rho: float

    def append(self, path: str | Path) -> None:
        """Write the release as the last row of a file, which gets a header where it is new.

        Parameters
        ----------
        path : str or Path
        """
        with open(path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(asdict(self)))
            if not file.tell():
                writer.writeheader()
            writer.writerow(asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> list["Spending"]:
        """The releases in a file, none where there is no file. DataError for a row that is no release.

        Parameters
        ----------
        path : str or Path
        """
        if not Path(path).exists():
            return []
        with open(path, newline="", encoding="utf-8") as file:
            return [cls._parse(path, number, row) for number, row in enumerate(csv.DictReader(file), 2)]

    @classmethod
    def _parse(cls, path: str | Path, number: int, row: dict) -> "Spending":
        try:
            values: dict[str, Any] = {name: row[name] for name in TEXTS} | {name: float(row[name]) for name in NUMBERS}
            spending = cls(**values)
        except (KeyError, TypeError, ValueError):
            spending = None
        if spending is None or not (spending.rho > 0 and spending.epsilon > 0 and 0 <= spending.delta < 1):
            raise DataError(
                f"{path}: line {number} is no release of `agglearn private --ledger`; mend it, or take another file"
            )
        return spending


def add_up(spendings: Iterable[Spending]) -> tuple[float, float, float]:
    """(ρ, ε, δ) of several releases of one data set. δ is the sum of theirs, ε the smaller of their sum and what ρ gives.

    Parameters
    ----------
    spendings : Iterable[Spending]
        All with the same neighbours.
    """
    rho, epsilon, delta = np.sum([(s.rho, s.epsilon, s.delta) for s in spendings], axis=0).tolist()
    return rho, min(epsilon, zcdp_epsilon(rho, delta)), delta


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least ε at δ of ρ-zCDP over orders α: ρα + ln(1/αδ)/(α − 1) + ln(1 − 1/α) (Canonne et al. 2020, prop. 12).

    Parameters
    ----------
    rho, delta : float
        From 0 to below 1. With δ = 0 there is no ε.
    """
    if not delta:
        return math.inf
    a = ORDERS
    return max(0.0, float(np.min(rho * a - np.log(a * delta) / (a - 1) + np.log1p(-1 / a))))


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
    """The advantage in words.

    Parameters
    ----------
    advantage, protected : float, str
        `record`, `label` or `unit`.
    """
    question = (
        "which of two labels a record has" if protected == "label" else f"whether a {protected} is among the data"
    )
    guesses = f"{50 * (1 + min(advantage, 1.0)):.3g} of 100 guesses"
    return f"An attacker who knows everything else and guesses {question} is right in at most {guesses}, where chance gives 50."


def gaussian_rho(epsilon: float, delta: float) -> float:
    """The ρ of Gaussian noise with the least σ that keeps (ε, δ).

    Parameters
    ----------
    epsilon, delta : float
    """
    return 1 / (2 * analytic_gaussian_scale(1.0, epsilon, delta) ** 2)
