"""Encodings of raw columns as modalities: bins and vocabularies, fitted on training rows only."""

from agglearn.encoding.binning import Binning, EqualWidth, Quantiles, binning
from agglearn.encoding.coded import CodedEncoder
from agglearn.encoding.encoder import UNSEEN, BinnedEncoder, CategoricalEncoder, FrameEncoder
from agglearn.encoding.features import FeatureMap
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.schema import Schema
from agglearn.encoding.target import TargetEncoder, with_target_encodings

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
