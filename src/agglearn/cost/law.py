"""What a release would be worth, from a law that was fitted to runs on many data sets (`benchmarks/cost_law.py`).

A release keeps the share 1/(1 + (c·r)^a) of what it is worth without noise. r is the variance of the noise on the weights of
a logistic regression over what these weights explain. c, a, and what the release is worth beside all records, are fitted.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from agglearn.errors import ConfigError
from agglearn.evaluation import entropy
from agglearn.privacy.calibration import analytic_gaussian_scale, check_promise
from agglearn.privacy.limits import check_delta

__all__ = ["predict_cost"]

LAW: dict[str, Any] = json.loads(Path(__file__).with_name("law.json").read_text())
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS /= WEIGHTS.sum()
LARGEST_AUC = 0.999


def predict_cost(
    rows: int, features: int, values: float, base_rate: float, epsilons: Iterable[float], *,
    auc: float | None = None, nllh: float | None = None, delta: float | None = None,
) -> pd.DataFrame:  # fmt: skip
    """NLLH and AUC of models that learn from each release at each budget, by the law.

    ConfigError for numbers that describe no data set.

    Parameters
    ----------
    rows, features, values, base_rate : int, int, float, float
        Records to learn from, features, values of each on average, and the share of label 1.
    epsilons, auc, nllh, delta : Iterable[float], float or None, float or None, float or None
        Budgets. AUC or NLLH of a logistic regression on all records. Without either, the AUC is that of the middle data
        set of the law, and the prediction far less certain. δ is by default 1/(10 n) for n records.

    Returns
    -------
    DataFrame
        Columns release, protected, epsilon (infinite without noise), nllh, auc, and the errors of both (`…_error`) that
        nine of ten predictions for data sets without part in the law keep.
    """
    _check(rows, features, values, base_rate, auc, nllh)
    known = "nothing" if auc is nllh is None else "auc" if nllh is None else "nllh"
    best, delta = nllh_of_auc(auc or LAW["auc"], base_rate) if nllh is None else nllh, delta or 1 / (10 * rows)
    check_delta(delta, rows)
    predicted = []
    for key, coefficients in LAW["releases"].items():
        release, protected = key.split(", ")
        for epsilon in [*epsilons, math.inf]:
            ratio = noise_ratio(release, protected, rows, features, values, base_rate, best, epsilon, delta)
            expected = float(expect(best, ratio, *coefficients))
            scores = expected, auc_of_nllh(expected, base_rate), *LAW["errors"][key][known]
            predicted.append([release, protected, epsilon, *scores])
    columns = ["release", "protected", "epsilon", "nllh", "auc", "nllh_error", "auc_error"]
    return pd.DataFrame(predicted, columns=columns)


def expect(best: Any, ratio: Any, factor: float, c: float, a: float) -> Any:
    """NLLH of a release by its coefficients, of numbers or arrays of the same shape."""
    return best * factor / (1 + (c * ratio) ** a)


def noise_ratio(
    release: str, protected: str, rows: int, features: int, values: float, base_rate: float, best: float,
    epsilon: float, delta: float,
) -> float:  # fmt: skip
    """Variance of the noise on the weights over what they explain, r = k·V·σ²/(2 N² p(1 − p) · best·H(p)).

    k = D·V weights of which each is 1 in N/V records. Their inverse information is V/(N p(1 − p)), so that noise of variance
    σ² on each label sum costs k·V·σ²/(2 N² p(1 − p)) in log-likelihood, of `best`·H(p).
    """
    if epsilon == math.inf:
        return 0.0
    check_promise(epsilon, delta, "gaussian")
    tables = features if release in ("single tables", "label sums") else features * (features + 1) / 2
    change = 1 if protected == "label" else 2  # squared, of one table
    variance = change * (tables + 1) * analytic_gaussian_scale(1.0, epsilon, delta) ** 2
    if release == "tables of pairs":  # each label sum is also that of V cells of every pair
        variance /= 1 + (features - 1) / values
    spread = base_rate * (1 - base_rate)
    return features * values**2 * variance / (2 * rows**2 * spread * best * entropy(base_rate))


def nllh_of_auc(auc: float, base_rate: float) -> float:
    """NLLH of calibrated predictions whose log-odds are normal with one variance for either label (binormal ROC)."""
    d = math.sqrt(2) * float(ndtri(auc))
    loss = 0.0
    for y, share in ((1, base_rate), (0, 1 - base_rate)):
        sign = 2 * y - 1
        log_odds = logit(base_rate) + sign * d**2 / 2 + d * NODES
        loss -= share * float(WEIGHTS @ np.log(expit(sign * log_odds)))
    return 1 - loss / entropy(base_rate)


def auc_of_nllh(nllh: float, base_rate: float) -> float:
    """The inverse of `nllh_of_auc`, .5 for an NLLH of 0 or less."""
    if nllh <= 0:
        return 0.5
    if nllh >= nllh_of_auc(LARGEST_AUC, base_rate):
        return LARGEST_AUC
    return brentq(lambda auc: nllh_of_auc(auc, base_rate) - nllh, 0.5, LARGEST_AUC)


def _check(rows: int, features: int, values: float, base_rate: float, auc: float | None, nllh: float | None) -> None:
    if None not in (auc, nllh):
        raise ConfigError("nllh: says the same as auc; give one of them")
    for name, value, low, high in (
        ("rows", rows, 9, math.inf), ("features", features, 0, math.inf), ("values", values, 1, math.inf),
        ("base_rate", base_rate, 0, 1), ("auc", auc, 0.5, LARGEST_AUC), ("nllh", nllh, 0, 1),
    ):  # fmt: skip
        if value is not None and not low < value < high:
            raise ConfigError(
                f"{name}: must be above {low}{f' and below {high}' if high < math.inf else ''}, got {value:g}"
            )
