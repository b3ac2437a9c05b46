"""Encodings of raw columns as modalities: bins and vocabularies, fitted on training rows only."""

from agglearn.encoding.binning import Binning, EqualWidth, Quantiles, binning
from agglearn.encoding.encoder import UNSEEN, BinnedEncoder, CategoricalEncoder, FrameEncoder

__all__ = [
    "UNSEEN",
    "BinnedEncoder",
    "Binning",
    "CategoricalEncoder",
    "EqualWidth",
    "FrameEncoder",
    "Quantiles",
    "binning",
]
