"""Measures of clusters of values, by hand. `evaluation/test_evaluation.py` has the formulas of information."""

import math
from types import SimpleNamespace

import numpy as np
from measured_by_hand import measured

from agglearn import tasks
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.evaluation.information import bucketing_bound, mutual_information, predictive_information
from agglearn.observations import ContingencyTables, Table
from agglearn.tasks import compression
from agglearn.vocabulary import OptimalQuantizer
from agglearn.vocabulary.shrinkage import beta_prior

TRAIN = [([6, 4, 10, 5], [6, 1, 5, 0]), ([20, 5, 0, 0], [10, 2, 0, 0])]  # counts and label sums of two features' values
TEST = [([3, 2, 4, 0], [2, 1, 1, 0]), ([7, 1, 0, 0], [3, 1, 0, 0])]  # of 10 and 10: one and two records are unseen
CLUSTERS, UNSEEN = [[1, 0, 0, 0], [0, 1, 1, 1]], [0, 1]
LABELS = (12, 5)  # records with label 1 in training, of 25, and in the test, of 10


def single_tables(parts, total, positives) -> ContingencyTables:
    encoder = FrameEncoder((CodedEncoder("a", 4), CodedEncoder("b", 4)))
    tables = {}
    for i, (n, c) in enumerate(parts):
        cells = np.flatnonzero(n)
        tables[i,] = Table((4,), cells, np.array(n)[cells], np.array(c)[cells])
    return ContingencyTables(encoder, "y", total, positives, tables)


def compressed() -> dict:
    truth = compression.HeldOut(single_tables(TRAIN, 25, LABELS[0]), single_tables(TEST, 10, LABELS[1]))
    kept = {n: mutual_information(*clustered(v, z)) for n, v, z in zip("ab", TRAIN, CLUSTERS, strict=True)}
    estimator = SimpleNamespace(
        relative_loss_=0.125, information_=0.1, information_loss_=0.3, n_clusters_=4, budget=4, min_count=0,
        epsilon=0.5, n_rounds_=3, n_machines_=2, n_ranks_=5, machine_size_=4, features_=["a", "b"], feature_information_=kept, n_buckets_={"a": 2, "b": 2},
        labels_={n: np.array(z) for n, z in zip("ab", CLUSTERS, strict=True)}, unseen_=dict(zip("ab", UNSEEN, strict=True)),
    )  # fmt: skip
    return measured(tasks.Compression, estimator, truth)


def clustered(values, clusters) -> np.ndarray:
    """Records of the two clusters, and those with label 1."""
    return np.array([np.bincount(clusters, part, 2) for part in values])


def compressed_by_hand() -> dict:
    best = OptimalQuantizer(4).fit(single_tables(TRAIN, 25, LABELS[0])).information_
    rate, bounds = LABELS[0] / 25, []
    everything = held = plain = shrunk = 0.0
    for t, test, z, unseen in zip(np.array(TRAIN, float), np.array(TEST), CLUSTERS, UNSEEN, strict=True):
        groups, (size, ones), occurs = clustered(test, z), clustered(t, z), t[0] > 0
        whole = mutual_information(*t[:, occurs])
        everything += whole
        bounds.append((whole - mutual_information(size, ones)) / bucketing_bound(2, t[1].sum() / t[0].sum()))
        groups[:, unseen] += [10 - test[0].sum(), LABELS[1] - test[1].sum()]
        held += mutual_information(*groups)
        counted = np.clip(ones / size, 0.5 / size, 1 - 0.5 / size)
        plain += predictive_information(*groups, counted, rate)
        a, b = beta_prior(*t[:, occurs])
        softer = t[0] * (t[1] + a) / (t[0] + a + b)
        shrunk += predictive_information(*groups, np.bincount(z, softer) / size, rate)
    single = {
        "information_loss": 0.125, "information": 0.1, "information_ratio": 0.1 / best,
        "loss_ratio": 0.3 / (everything - best), "bound_ratio": max(bounds), "heldout_information": held,
        "heldout_predictive": plain, "heldout_predictive_shrunk": shrunk, "clusters": 4, "values": 6, "rounds": 3,
        "rounds_ratio": 3 * math.log(2) / math.log(6), "machine_size": 4, "space_ratio": 4 * 2 / 5,
    }  # fmt: skip
    return {(name, None, None): value for name, value in single.items()}
