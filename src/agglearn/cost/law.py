"""What a release would be worth, from a law that was fitted to runs on many data sets (`benchmarks/cost_law.py`).

A release keeps the share 1/(1 + (c·r)^a) of what it is worth without noise, where r is noise over signal. c, a, and what the
release is worth without noise beside all records, are fitted.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import log_expit, logit, ndtri

from agglearn.errors import ConfigError
from agglearn.evaluation import entropy
from agglearn.privacy.budget import check_delta
from agglearn.privacy.calibration import analytic_gaussian_scale, check_promise

__all__ = ["predict_cost"]

LAW: dict[str, Any] = json.loads(Path(__file__).with_name("law.json").read_text())
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS /= WEIGHTS.sum()
LARGE = 10_000  # rows: below them predictions are less certain
LIMITS = {"rows": (9, 1e12), "features": (0, 1e6), "values": (1, 1e9), "base_rate": (0, 1), "auc": (0.5, 0.999)}


def predict_cost(
    rows: int, features: int, values: float, base_rate: float, epsilons: Iterable[float], *,
    auc: float | None = None, delta: float | None = None,
) -> pd.DataFrame:  # fmt: skip
    """NLLH and AUC of models that learn from each release at each budget, by the law.

    ConfigError for numbers that describe no data set.

    Parameters
    ----------
    rows, features, values, base_rate : int, int, float, float
        Records to learn from, features, values of each on average, and the share of label 1.
    epsilons, auc, delta : Iterable[float], float or None, float or None
        Budgets, and the AUC of a logistic regression on all records: by default that of the middle data set of the law,
        and the prediction is far less certain. δ is by default 1/(10 n) for n records.

    Returns
    -------
    DataFrame
        Columns release (with what it protects), epsilon (infinite without noise), nllh, auc, and the errors of both
        (`…_error`) that nine of ten predictions for data sets without part in the law keep.
    """
    stated, auc = "nothing" if auc is None else "auc", LAW["auc"] if auc is None else auc
    for (name, (low, high)), value in zip(LIMITS.items(), (rows, features, values, base_rate, auc), strict=True):
        if not low < value < high:
            raise ConfigError(f"{name}: must be above {low:g} and below {high:g}, got {value:g}")
    best, delta, size = nllh_of_auc(auc, base_rate), delta or 1 / (10 * rows), "small" if rows < LARGE else "large"
    check_delta(delta, rows)
    costs, epsilons = [], [*epsilons, math.inf]
    for release, fitted in LAW["releases"].items():
        for epsilon in epsilons:
            ratio = noise_ratio(release, rows, features, values, base_rate, best, epsilon, delta)
            expected = float(expect(best, ratio, *fitted["coefficients"]))
            costs.append(
                [release, epsilon, expected, auc_of_nllh(expected, base_rate), *fitted["errors"][size][stated]]
            )
    return pd.DataFrame(costs, columns=["release", "epsilon", "nllh", "auc", "nllh_error", "auc_error"])


def expect(best: Any, ratio: Any, factor: float, c: float, a: float) -> Any:
    """NLLH of a release by its coefficients, of numbers or arrays of the same shape."""
    return best * factor / (1 + (c * ratio) ** a)


def noise_ratio(
    release: str, rows: int, features: int, values: float, base_rate: float, best: float, epsilon: float, delta: float
) -> float:
    """Noise over signal: r = V·σ²/(N² · best · H(p)), with noise of variance σ² on each label sum.

    A value has N/V records on average. A logistic regression on all records explains `best` · H(p) of the log-likelihood
    of each.
    """
    if epsilon == math.inf:
        return 0.0
    check_promise(epsilon, delta, "gaussian")
    pairs = (features - 1) / 2 if release.startswith("tables of pairs") else 0  # for each feature
    change = 1 if release.endswith("label protected") else 2  # squared, of one table
    variance = change * (features * (1 + pairs) + 1) * analytic_gaussian_scale(1.0, epsilon, delta) ** 2
    variance /= 1 + 2 * pairs / values  # each label sum is also that of V cells of every pair
    return values * variance / (rows**2 * best * entropy(base_rate))


def nllh_of_auc(auc: float, base_rate: float) -> float:
    """NLLH of calibrated predictions whose log-odds are normal with one variance for either label (binormal ROC)."""
    d = math.sqrt(2) * float(ndtri(auc))
    gain = sum(p * float(WEIGHTS @ log_expit(logit(p) + d**2 / 2 + d * NODES)) for p in (base_rate, 1 - base_rate))
    return 1 + gain / entropy(base_rate)


def auc_of_nllh(nllh: float, base_rate: float) -> float:
    """The inverse of `nllh_of_auc`, .5 for an NLLH of 0 or less."""
    nllh = min(nllh, 0.99)
    return 0.5 if nllh <= 0 else brentq(lambda auc: nllh_of_auc(auc, base_rate) - nllh, 0.5, 1 - 1e-9)
