"""Bounds on ε and δ of a private release."""

import warnings

from agglearn.errors import ConfigError, PrivacyWarning

LARGEST_EPSILON = 20  # e^20 is half a billion
LARGE_EPSILON = 10


def check_epsilon(epsilon: float, allow_large_epsilon: bool) -> None:
    """Warn of ε above 10, and raise ConfigError for ε above 20 unless `allow_large_epsilon`."""
    if epsilon > LARGEST_EPSILON and not allow_large_epsilon:
        raise ConfigError(
            f"epsilon: {epsilon:g} is above {LARGEST_EPSILON}, which protects nobody; choose a smaller one, or accept it "
            "by allow_large_epsilon (--allow-large-epsilon)"
        )
    if epsilon > LARGE_EPSILON:
        weak = f"epsilon {epsilon:g} is above {LARGE_EPSILON}: that protects little"
        warnings.warn(weak, PrivacyWarning, stacklevel=3)


def check_delta(delta: float | None, records: float) -> None:
    """Raise ConfigError for δ from 1/N on: the publication of one record in N, drawn at random, would satisfy it."""
    if delta and delta * records >= 1:
        advice = "choose one far below, for example 1/N²"
        raise ConfigError(f"delta: {delta:g} is not below one over the number of records; {advice}")
