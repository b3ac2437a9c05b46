"""Encodings of raw columns as modalities: bins and vocabularies, fitted on training rows only."""

from agglearn.encoding.binned import BinnedEncoder, Binning, EqualWidth, Quantiles, binning
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.coded import CodedEncoder
from agglearn.encoding.design import FeatureMap
from agglearn.encoding.frame import FrameEncoder, with_target_encodings
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.levels import UNSEEN
from agglearn.encoding.schema import Schema
from agglearn.encoding.target import TargetEncoder

__all__ = [
    "UNSEEN",
    "BinnedEncoder",
    "Binning",
    "CategoricalEncoder",
    "CodedEncoder",
    "EqualWidth",
    "FeatureMap",
    "FrameEncoder",
    "HashedEncoder",
    "Quantiles",
    "Schema",
    "TargetEncoder",
    "binning",
    "with_target_encodings",
]
