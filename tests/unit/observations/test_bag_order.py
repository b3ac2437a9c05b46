"""Instances in any order, bags in any order: everything that belongs to an instance or to a bag goes with it."""

from dataclasses import replace

import numpy as np
import pytest

from agglearn.distribution.embedding import sample_instances, truncate_bags
from agglearn.observations import Bags

OWNER = np.array([2, 0, 2, 1, 2, 0, 2, 1, 2, 3])  # sizes 2, 2, 5 and 1
NAMES = np.array(["s", "t", "u", "v"])


def weight(identity: np.ndarray) -> np.ndarray:
    return 0.5 + identity / 8


def bags(order: np.ndarray) -> Bags:
    """Bags of instances whose only covariate is their number, listed in some order. Weights, counts and targets tell which they are."""
    totals = np.bincount(OWNER, weight(np.arange(10.0)))
    made = Bags.from_groups(
        order[:, None].astype(float), NAMES[OWNER[order]],
        {name: [total - 0.25, 0.25] for name, total in zip(NAMES, totals, strict=True)}, weights=weight(order),
    )  # fmt: skip
    return replace(made, target=10.0 * np.arange(4))


def check(found: Bags, names: list[str], exact_totals=True) -> None:
    identity = found.X[:, 0].astype(int)
    assert list(found.bag_names) == names
    assert [found.bag_names[b] for b in found.bag_of] == NAMES[OWNER[identity]].tolist()
    np.testing.assert_allclose(found.weights, weight(identity))
    numbers = [NAMES.tolist().index(n) for n in names]
    assert found.target.tolist() == [10.0 * k for k in numbers]
    np.testing.assert_allclose(found.totals, np.bincount(found.bag_of, weight(identity)))
    if exact_totals:
        np.testing.assert_allclose(found.counts.sum(axis=1), found.totals)


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_order(seed):
    made = bags(np.random.default_rng(seed).permutation(10))
    check(made, list("stuv"))
    assert made.sizes.tolist() == [2, 2, 5, 1]


@pytest.mark.parametrize("taken", [[0, 1], [3, 0, 2], [2], [1, 1, 3]])
def test_bags_in_any_order(taken):
    check(bags(np.arange(10)).take(taken), NAMES[taken].tolist())


@pytest.mark.parametrize(
    ("size", "sizes"), [(1, [1, 1, 1, 1]), (2, [2, 2, 2, 1]), (4, [2, 2, 4, 1]), (None, [2, 2, 5, 1])]
)
def test_first_instances_of_each_bag(size, sizes):
    found = truncate_bags(bags(np.arange(10)), size)
    check(found, list("stuv"), exact_totals=False)
    assert found.sizes.tolist() == sizes
    assert found.X[:, 0].tolist() == [i for b in range(4) for i in np.flatnonzero(b == OWNER)[: sizes[b]]]


def test_instances_are_sampled_by_weight():
    """One of three instances of weights 0, 1 and 3; the smallest mistake noticed is a share of .75 that is .70."""
    made, n = Bags(np.arange(3.0)[:, None], [0, 3], weights=[0.0, 1.0, 3.0]), 8000
    share = np.mean([sample_instances(made, 1, "seed", k)[0, 0] - 1 for k in range(n)])
    assert abs(share - 3 / 4) < 5 * np.sqrt(3 / 16 / n)
    assert 5 * np.sqrt(3 / 16 / n) < 0.05
