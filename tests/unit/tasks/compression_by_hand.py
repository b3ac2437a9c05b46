"""Measures of clusters of values, by hand."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
from measured_by_hand import measured

from agglearn import tasks
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.observations import ContingencyTables, Table
from agglearn.tasks import compression
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


def information(groups) -> float:
    """I(Z; C) in nats of (records, records with label 1) of each cluster."""
    n, c = sum(a for a, _ in groups), sum(b for _, b in groups)
    found = 0.0
    for a, b in groups:
        for joint, margin in ((b, c), (a - b, n - c)):
            found += joint / n * math.log(joint * n / (a * margin)) if joint else 0.0
    return found


def compressed() -> dict:
    truth = compression.HeldOut(single_tables(TRAIN, 25, LABELS[0]), single_tables(TEST, 10, LABELS[1]))
    kept = {n: information(clustered(v, z)) for n, v, z in zip("ab", TRAIN, CLUSTERS, strict=True)}
    estimator = SimpleNamespace(
        relative_loss_=0.125, information_=0.1, information_loss_=0.3, n_clusters_=4, budget=4, min_count=0,
        epsilon=0.5, n_rounds_=3, n_machines_=2, n_ranks_=5, machine_size_=4, features_=["a", "b"], feature_information_=kept, n_buckets_={"a": 2, "b": 2},
        labels_={n: np.array(z) for n, z in zip("ab", CLUSTERS, strict=True)}, unseen_=dict(zip("ab", UNSEEN, strict=True)),
    )  # fmt: skip
    return measured(tasks.Compression, estimator, truth)


def clustered(values, clusters, sums=None) -> list:
    n, c = values[0], values[1] if sums is None else sums
    return [[sum(v for v, z in zip(part, clusters, strict=True) if z == k) for part in (n, c)] for k in (0, 1)]


def partitions(items: list):
    """All ways to part items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for groups in partitions(rest):
        yield [[first], *groups]
        for k, group in enumerate(groups):
            yield [*groups[:k], [first, *group], *groups[k + 1 :]]


def compressed_by_hand() -> dict:
    best, everything = 0.0, sum(information([v for v in zip(*t, strict=True) if v[0]]) for t in TRAIN)
    values = [[v for v in zip(*t, strict=True) if v[0]] for t in TRAIN]
    for ways in itertools.product(*(partitions(v) for v in values)):
        if sum(map(len, ways)) == 4:  # the budget
            best = max(best, sum(information([[sum(x) for x in zip(*g, strict=True)] for g in w]) for w in ways))
    rate, bounds = LABELS[0] / 25, []
    for t, z in zip(TRAIN, CLUSTERS, strict=True):
        base = sum(t[1]) / sum(t[0])
        f = lambda x, base=base: sum(q * math.log(q / b) for q, b in ((x, base), (1 - x, 1 - base)) if q)  # noqa: E731
        # two buckets, cut at 1/2; f is 0 at the base rate, in one of them
        low, high = (0.0, min(f(0.5), f(1.0))) if base <= 0.5 else (min(f(0.0), f(0.5)), 0.0)
        delta = max(max(f(0.0), f(0.5)) - low, max(f(0.5), f(1.0)) - high)
        lost = information([v for v in zip(*t, strict=True) if v[0]]) - information(clustered(t, z))
        bounds.append(lost / delta)
    held = plain = shrunk = 0.0
    for t, test, z, unseen in zip(TRAIN, TEST, CLUSTERS, UNSEEN, strict=True):
        groups = clustered(test, z)
        groups[unseen][0] += 10 - sum(test[0])
        groups[unseen][1] += LABELS[1] - sum(test[1])
        held += information(groups)
        a, b = beta_prior(*(np.array([v for v, n in zip(part, t[0], strict=True) if n], float) for part in t))
        softer = [n * (c + a) / (n + a + b) if n else 0.0 for n, c in zip(*t, strict=True)]
        for k, (n, c) in enumerate(groups):
            size, ones = clustered(t, z)[k]
            counted = min(max(ones / size, 0.5 / size), 1 - 0.5 / size)
            plain += (c * math.log(counted / rate) + (n - c) * math.log((1 - counted) / (1 - rate))) / 10
            soft_rate = clustered(t, z, softer)[k][1] / size
            shrunk += (c * math.log(soft_rate / rate) + (n - c) * math.log((1 - soft_rate) / (1 - rate))) / 10
    single = {
        "information_loss": 0.125,
        "information": 0.1,
        "information_ratio": 0.1 / best,
        "loss_ratio": 0.3 / (everything - best),
        "bound_ratio": max(bounds),
        "heldout_information": held,
        "heldout_predictive": plain,
        "heldout_predictive_shrunk": shrunk,
        "clusters": 4,
        "values": 6,
        "rounds": 3,
        "rounds_ratio": 3 * math.log(2) / math.log(6),
        "machine_size": 4,
        "space_ratio": 4 * 2 / 5,
    }
    return {(name, None, None): value for name, value in single.items()}
