"""Small tables, and slow plain versions of what the package computes."""

import itertools

import numpy as np
from hypothesis import strategies as st

from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.observations import ContingencyTables, Table


def information(counts, sums, groups) -> float:
    """I(Z; C) in nats from its definition, values in groups (lists of positions)."""
    total, positives, out = counts.sum(), sums.sum(), 0.0
    for group in groups:
        group = list(group)
        n, c = counts[group].sum(), sums[group].sum()
        for part, share in ((c, positives / total), (n - c, 1 - positives / total)):
            if part > 0:
                out += part / total * np.log(part / n / share)
    return out


def by_labels(labels) -> list:
    return [np.flatnonzero(labels == k) for k in np.unique(labels)]


def best_partition(counts, sums, m: int) -> float:
    """The most information that any m clusters of any values keep, by trying all partitions into intervals of rate."""
    order = np.argsort(sums / counts, kind="stable")
    n, best = len(order), 0.0
    for cuts in itertools.combinations(range(1, n), min(m, n) - 1):
        best = max(best, information(counts, sums, np.split(order, cuts)))
    return best


def all_partitions(items: list, m: int):
    """Every partition of the items into at most m groups, in any order."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in all_partitions(rest, m):
        for i in range(len(partition)):
            yield [*partition[:i], [first, *partition[i]], *partition[i + 1 :]]
        if len(partition) < m:
            yield [[first], *partition]


@st.composite
def tables(draw, least=2, most=12, largest=30):
    """Counts and label sums of a feature, both labels occurring."""
    n = draw(st.integers(least, most))
    counts = np.array(draw(st.lists(st.integers(1, largest), min_size=n, max_size=n)))
    sums = np.array([draw(st.integers(0, int(c))) for c in counts])
    if sums.sum() == 0:
        sums[0] = 1
    if sums.sum() == counts.sum():
        sums[0] -= 1
    if not 0 < sums.sum() < counts.sum():
        counts[0] += 1
    return counts, sums


def drawn(n: int, seed: int = 0, largest: int = 1000):
    """A power-law table."""
    rng = np.random.default_rng(seed)
    counts = rng.zipf(1.5, n).clip(max=largest)
    return counts, rng.binomial(counts, rng.beta(0.5, 2, n))


def ranked(counts, sums):
    """Prefix sums N, C over distinct rates, and the base rate."""
    rates, at = np.unique(sums / counts, return_inverse=True)
    prefix = [np.append(0.0, np.cumsum(np.bincount(at, v, len(rates)))) for v in (counts, sums)]
    return *prefix, sums.sum() / counts.sum()


def features(*tables) -> tuple[dict, dict]:
    """Counts and label sums by feature."""
    counts, sums = ({f"f{i}": table[k] for i, table in enumerate(tables)} for k in (0, 1))
    return counts, sums


def tables_of_counts(counts: dict, sums: dict) -> ContingencyTables:
    """Tables of features of which every value has a cell."""
    encoder = FrameEncoder(tuple(CodedEncoder(name, len(n)) for name, n in counts.items()))
    cells = {(i,): Table((len(n),), np.arange(len(n)), n, sums[name]) for i, (name, n) in enumerate(counts.items())}
    total, positives = (int(next(iter(v.values())).sum()) for v in (counts, sums))
    return ContingencyTables(encoder, "y", total, positives, cells)
