"""Facts on records that an observation shows beside noisy numbers."""

from agglearn.encoding import FrameEncoder
from agglearn.errors import ConfigError


def describe_unprotected(encoder: FrameEncoder | None, accept: bool, features_public: bool = False) -> str:
    """The facts on records that an encoder shows without noise, in words. Empty where all of them are public.

    Parameters
    ----------
    encoder : FrameEncoder or None
        Of the observation, or None.
    accept : bool
        Whether the caller accepts such facts, so that the release is not called private.
    features_public : bool
        Whether the observation holds the features themselves, which are then public.

    Raises
    ------
    ConfigError
        There are such facts, and they are not accepted.
    """
    if encoder is None or encoder.schema == "declared" or (features_public and not encoder.from_labels):
        return ""
    if encoder.from_labels:
        facts = "target encodings were learned from labels of records"
    else:
        facts = "bins, categories and which features have missing values were learned from the records"
    if not accept:
        raise ConfigError(
            f"schema: {facts}, and stand beside the noisy numbers as they are; aggregate by a declared schema (schema=, "
            "--schema), or accept it by accept_learned_schema (--accept-learned-schema): nothing is then called private"
        )
    return f"{facts} and stand here as they are, while noise protects the numbers alone"
