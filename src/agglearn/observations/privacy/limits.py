"""Which promises are worth the name: bounds on ε and δ of a private release, and what lies beside the numbers."""

import warnings

from agglearn.encoding import FrameEncoder
from agglearn.errors import ConfigError, PrivacyWarning

LARGEST_EPSILON = 20  # e^20 is half a billion
LARGE_EPSILON = 10


def check_epsilon(epsilon: float, allow_large_epsilon: bool) -> None:
    """Warn of ε above 10; ConfigError for ε above 20 unless `allow_large_epsilon`."""
    if epsilon > LARGEST_EPSILON and not allow_large_epsilon:
        raise ConfigError(
            f"epsilon: {epsilon:g} is above {LARGEST_EPSILON}, which protects nobody; choose a smaller one, or accept it "
            "by allow_large_epsilon (--allow-large-epsilon)"
        )
    if epsilon > LARGE_EPSILON:
        warnings.warn(
            f"epsilon {epsilon:g} is above {LARGE_EPSILON}: that protects little", PrivacyWarning, stacklevel=3
        )


def unprotected(encoder: FrameEncoder | None, accept: bool, features_public: bool = False) -> str:
    """What an encoder tells of the records beside noisy numbers, in words; empty where it tells nothing protected.

    Parameters
    ----------
    features_public : whether the observation holds the features themselves, as given to everybody.
    accept : whether the caller accepts that it tells something, so that nothing may be called private.

    Raises
    ------
    ConfigError : it tells something, and that is not accepted.
    """
    if encoder is None or encoder.schema == "declared" or (features_public and not encoder.from_labels):
        return ""
    if encoder.from_labels:
        told = "target encodings were learned from labels of records"
    else:
        told = "bins, categories and which features have missing values were learned from the records"
    if not accept:
        raise ConfigError(
            f"schema: {told}, and stand beside the noisy numbers as they are; aggregate by a declared schema (schema=, "
            "--schema), or accept it by accept_learned_schema (--accept-learned-schema): nothing is then called private"
        )
    return f"{told} and stand here as they are, while noise protects the numbers alone"


def check_delta(delta: float | None, records: float) -> None:
    """ConfigError for δ from 1/N on: whoever publishes one record in N, drawn at random, keeps such a promise.

    Parameters
    ----------
    records : N where it is public; where it is protected, what the release itself tells of it.
    """
    if delta and delta * records >= 1:
        raise ConfigError(
            f"delta: {delta:g} is not below one over the number of records; choose one far below, for example 1/N²"
        )
