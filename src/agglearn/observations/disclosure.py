"""What an observation shows of records beside noisy numbers, and the only place that calls a release private."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder
from agglearn.encoding.columns import as_frame, present
from agglearn.errors import ConfigError, DataError, PrivacyWarning
from agglearn.observations.base import NoiseSpec
from agglearn.observations.units import SINGLE, STATE
from agglearn.privacy.budget import check_delta
from agglearn.privacy.mechanisms import Draw, draw_private

LARGEST_EPSILON = 20  # e^20 is half a billion
LARGE_EPSILON = 10


def certify(
    spec: NoiseSpec, observation: Any, draw: Draw, records: float, accept: bool, allow_large_epsilon: bool,
    advice: str,
) -> NoiseSpec:  # fmt: skip
    """The noise of a release, `private` where OpenDP draws it and nothing else tells of records.

    `exact_facts` of an observation are facts on records that no noise hides, in words, empty where all else is public.
    """
    if draw is not draw_private:
        return spec
    if spec.epsilon > LARGEST_EPSILON and not allow_large_epsilon:
        raise ConfigError(
            f"epsilon: {spec.epsilon:g} is above {LARGEST_EPSILON}, which protects nobody; choose a smaller one, or accept it "
            "by allow_large_epsilon (--allow-large-epsilon)"
        )
    if spec.epsilon > LARGE_EPSILON:
        weak = f"epsilon {spec.epsilon:g} is above {LARGE_EPSILON}: that protects little"
        warnings.warn(weak, PrivacyWarning, stacklevel=2)
    check_delta(spec.delta, records)
    if spec.adjacency != "label" and getattr(observation, "seeded_coins", False):
        raise ConfigError(
            "random_state: the halves were drawn by coins of a known seed, so that one record more moves others from half to "
            "half; make them anew, and leave random_state out"
        )
    # Public features were cut to named ones (`public_features`), and the sensitivity was checked against them.
    if not (facts := observation.exact_facts):
        if getattr(observation, "unit", SINGLE) is None:
            raise ConfigError(f"unit: nobody stated whose the records are, one person's or several of one; {STATE}")
        return replace(spec, private=True)
    if not accept:
        raise ConfigError(
            f"{facts}, and stand beside the noisy numbers as they are; {advice}: nothing is then called private"
        )
    return replace(spec, unprotected=f"{facts} and stand here as they are, while noise protects the numbers alone")


def describe_learned(encoder: FrameEncoder | None, features_public: bool = False) -> str:
    """What an encoder tells of the records that it was fitted to. `features_public`: the observation has these."""
    if encoder is None or encoder.schema == "declared" or (features_public and not encoder.from_labels):
        return ""
    if encoder.from_labels:
        return "target encodings were learned from labels of records"
    return "bins, categories and which features have missing values were learned from the records"


def public_features(frame: pd.DataFrame | np.ndarray, names: Sequence[str], label: object = None) -> pd.DataFrame:
    """The columns of these names, and nothing else of a frame. DataError where one is absent, or is the label."""
    if label is not None and str(label) in names:
        raise DataError(f"features: {label!r} is the label; leave it out")
    frame = as_frame(frame, names)
    if list(frame.columns) != list(names):
        frame = frame[present(names, frame.columns)]
    if categories := list(frame.select_dtypes("category")):  # they may hold values of rows that are not here
        frame = frame.assign(**{name: frame[name].cat.remove_unused_categories() for name in categories})
    if frame.attrs:
        frame = frame.copy(deep=False)
        frame.attrs = {}  # pandas writes them into Parquet files
    return frame
