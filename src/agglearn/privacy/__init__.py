"""Privacy noise: mechanisms, their accounting, and the split of a budget. `agglearn.observations.release` adds it."""

from agglearn.privacy.calibration import (
    analytic_gaussian_scale,
    approximate_epsilon,
    calibrate,
    classic_gaussian_scale,
    discrete_gaussian_delta,
    discrete_gaussian_scales,
    gaussian_delta,
    gaussian_epsilon,
    zcdp_budget,
)
from agglearn.privacy.mechanisms import MECHANISMS, Mechanism, draw_private, draw_seeded

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "analytic_gaussian_scale",
    "approximate_epsilon",
    "calibrate",
    "classic_gaussian_scale",
    "discrete_gaussian_delta",
    "discrete_gaussian_scales",
    "draw_private",
    "draw_seeded",
    "gaussian_delta",
    "gaussian_epsilon",
    "zcdp_budget",
]
