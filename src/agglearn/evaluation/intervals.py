"""Intervals for means over seeds."""

import numpy as np
from scipy.special import stdtrit


def mean_interval(values, level: float = 0.95) -> tuple[float, float, float]:
    """Mean with its Student t interval, (mean, low, high); the bounds are NaN for a single value.

    Parameters
    ----------
    values : (n,) independent values, one per seed; NaN are left out.
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) == 1:
        return mean, float("nan"), float("nan")
    half = float(stdtrit(len(values) - 1, (1 + level) / 2) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half
