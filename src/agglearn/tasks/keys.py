"""Names and types of the keys that an experiment may set for a data set and for an observation."""

from typing import Literal, Required, TypedDict

from agglearn.encoding.design import Features, Ranges
from agglearn.settings import Count, NonNegative, Part, Positive, Share, Whole

Binning = Literal["deciles", "width"]
Columns = Literal["full", "shared"]
# of `agglearn.tasks.census_design.HIDDEN`
Hidden = Literal["DIS", "SEX", "HICOV", "COVERAGE", "SCHL", "WKL", "ANC", "RAC1P"]
Poll = tuple[Share, NonNegative]  # share of votes, and size of the group in per cent
Pairs = Literal["all", "none"] | list[tuple[str, str]]

# Keys of an observation that need one of some others, and keys that take the place of others.
RELEASE = ("delta", "mechanism", "split", "adjacency", "postprocessing", "calibration", "sensitivity")
BESIDE = dict.fromkeys(RELEASE, ("epsilon",)) | {"buckets": ("max_modalities",), "summed_as": ("evidence",)}
INSTEAD = {
    "encode_noisy": ("epsilon", "cross_buckets"),
    "gaussian_noise": ("noise_share", "epsilon"),
    "noise_share": ("epsilon",),
    "threshold": ("gaussian_noise", "noise_share", "epsilon"),
    "epsilon": ("scale",),
}


class NoKeys(TypedDict):
    """No keys."""


class RowKeys(TypedDict, total=False):
    rows: Count | None


class EncodedKeys(TypedDict, total=False):
    binning: Binning
    hashed: dict[str, Count]
    max_modalities: Count
    buckets: Whole


class RecordKeys(EncodedKeys, total=False):
    cross_buckets: Count
    sample: Count


class NoiseKeys(TypedDict, total=False):
    epsilon: Positive | None
    delta: Part
    mechanism: Literal["gaussian", "laplace", "discrete_gaussian", "discrete_laplace"]


class NoisyEncodingKeys(TypedDict):
    above: Count
    modalities: Count


class TableKeys(RecordKeys, NoiseKeys, total=False):
    pairs: Pairs
    gaussian_noise: NonNegative
    noise_share: NonNegative
    encode_noisy: NoisyEncodingKeys
    split: Literal["uniform", "cells"]
    adjacency: Literal["record", "unit", "label"]
    postprocessing: Literal["none", "clip", "project"]
    threshold: NonNegative
    hidden: Literal["censored", "half"]


class PublishedTableKeys(TypedDict, total=False):
    cross_buckets: Count


class UnitTableKeys(TableKeys, total=False):
    max_rows: Count | Literal["auto"]


class LabelSumKeys(EncodedKeys, NoiseKeys, total=False):
    features: Features
    ranges: Ranges
    calibration: Literal["analytic", "classic"]
    sensitivity: str | Positive


class SampledLabelSumKeys(LabelSumKeys, total=False):
    sample: Count


class CountedBagKeys(EncodedKeys, NoiseKeys, total=False):
    bag_size: Count


class TableHalvesKeys(TableKeys, total=False):
    of: Literal["tables"]


class LabelSumHalvesKeys(LabelSumKeys, total=False):
    of: Required[Literal["label_sums"]]


class BagKeys(RowKeys, total=False):
    bags: Count | str


class MarginKeys(TypedDict):
    group: str
    unit: str


class PersonKeys(TypedDict, total=False):
    columns: Columns
    components: Count


class HiddenKeys(PersonKeys, total=False):
    hidden: Required[Hidden]
    bag_size: Count
    n_test: Count


class PollKeys(TypedDict, total=False):
    sex: dict[Literal["male", "female"], Poll]
    race: dict[Literal["hispanic", "white", "black", "asian", "other"], Poll]
    education: dict[Literal["high school or less", "some college", "college graduate", "postgraduate"], Poll]


class ElectionKeys(PersonKeys, total=False):
    election: Required[Count]
    bag_size: Count
    holdout: Part
    attributes: Count
    polls: PollKeys


class VoterKeys(TypedDict, total=False):
    persons: Literal["sample", "all"]


class CloudKeys(TypedDict, total=False):
    points: Count
    n_clouds: Count | None


class RegionKeys(PersonKeys, total=False):
    elections: list[Count]
    bag_size: Count | None
    states: Literal["contiguous", "all"]


class RegionPersonKeys(TypedDict, total=False):
    persons: Literal["sample", "counties"]


class WeekKeys(TypedDict, total=False):
    weeks: Count


class FlowKeys(TypedDict, total=False):
    evidence: Literal["node", "edge", "node_sums"]
    noise: Literal["poisson", "laplace", "gaussian", "exact"]
    rate: Positive
    scale: Positive
    epsilon: Positive
    summed_as: Literal["laplace", "gaussian"]
