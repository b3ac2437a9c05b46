"""Compression of large vocabularies to few clusters that are informative about a label (Bateni et al. 2019)."""

from agglearn.vocabulary.baselines import (
    AgglomerativeQuantizer,
    BucketingQuantizer,
    DivisiveQuantizer,
    FrequencyQuantizer,
)
from agglearn.vocabulary.class_counts import compress_class_counts
from agglearn.vocabulary.distributed import DistributedSubmodularQuantizer
from agglearn.vocabulary.held_out import held_out_information
from agglearn.vocabulary.label_means import compress_label_means
from agglearn.vocabulary.on_clusters import LogisticOnClusters, NetworkOnClusters
from agglearn.vocabulary.optimal import OptimalQuantizer
from agglearn.vocabulary.quantizer import Quantizer
from agglearn.vocabulary.submodular import SubmodularQuantizer

__all__ = [
    "AgglomerativeQuantizer",
    "BucketingQuantizer",
    "DistributedSubmodularQuantizer",
    "DivisiveQuantizer",
    "FrequencyQuantizer",
    "LogisticOnClusters",
    "NetworkOnClusters",
    "OptimalQuantizer",
    "Quantizer",
    "SubmodularQuantizer",
    "compress_class_counts",
    "compress_label_means",
    "held_out_information",
]
