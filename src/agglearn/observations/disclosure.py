"""What an observation tells of its records beside noisy numbers."""

from agglearn.encoding import FrameEncoder
from agglearn.errors import ConfigError


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
