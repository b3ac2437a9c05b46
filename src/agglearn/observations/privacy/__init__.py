"""Privacy noise: mechanisms, what they promise, how a budget is split, and what may be done to a release afterwards."""

from agglearn.observations.privacy.accounting import discrete_gaussian_delta
from agglearn.observations.privacy.calibration import (
    analytic_gaussian_scale,
    approximate_epsilon,
    calibrated,
    classic_gaussian_scale,
    discrete_gaussian_scales,
    gaussian_delta,
    gaussian_epsilon,
    zcdp_budget,
)
from agglearn.observations.privacy.mechanisms import MECHANISMS, Mechanism, secret, seeded
from agglearn.observations.privacy.projection import clipped, projected
from agglearn.observations.privacy.release import release_bag_counts, release_flow_counts, release_tables

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "analytic_gaussian_scale",
    "approximate_epsilon",
    "calibrated",
    "classic_gaussian_scale",
    "clipped",
    "discrete_gaussian_delta",
    "discrete_gaussian_scales",
    "gaussian_delta",
    "gaussian_epsilon",
    "projected",
    "release_bag_counts",
    "release_flow_counts",
    "release_tables",
    "secret",
    "seeded",
    "zcdp_budget",
]
