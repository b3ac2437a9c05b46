"""Bandwidths, widths, frequencies and moments against their definitions: skewed data far from 0, bags of unequal sizes."""

import numpy as np
import pytest
from scipy.linalg import logm
from scipy.spatial.distance import pdist

from agglearn.distribution import KernelRidge, MomentEmbedding, OrthogonalRandomEmbedding, RandomFourierEmbedding
from agglearn.distribution.ridge import at_edge
from agglearn.errors import ConfigError
from agglearn.observations import Bags

X = np.random.default_rng(0).lognormal([3.0, 0.0, -1.0], [0.2, 1.0, 0.5], (37, 3))
WEIGHTS = 0.5 + np.arange(37) % 5
BAGS = Bags(X, [0, 4, 5, 20, 37], weights=WEIGHTS)


@pytest.mark.parametrize("order", [1, 2])
def test_moments_by_numpy(order):
    found = MomentEmbedding(order).fit(BAGS).transform(BAGS)
    for row, (a, b) in zip(found, zip(BAGS.offsets[:-1], BAGS.offsets[1:], strict=True), strict=True):
        mean = np.average(X[a:b], axis=0, weights=WEIGHTS[a:b])
        covariance = ((X[a:b] - mean) * WEIGHTS[a:b, None]).T @ (X[a:b] - mean) / WEIGHTS[a:b].sum()
        expected = [*mean, *(covariance[np.triu_indices(3)] if order == 2 else [])]
        np.testing.assert_allclose(row, expected, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("kind", [RandomFourierEmbedding, OrthogonalRandomEmbedding])
def test_the_bandwidth_is_the_median_distance(kind):
    distances = pdist(X.astype(np.float32))
    assert abs(np.median(distances) / distances.mean() - 1) > 0.02
    bare = Bags(X, BAGS.offsets)
    assert kind(4, scale=2.5).fit(bare).bandwidth_ == pytest.approx(2.5 * np.median(distances), rel=1e-5)
    assert kind(4, bandwidth=0.3, scale=2.5).fit(bare).bandwidth_ == pytest.approx(0.75)


@pytest.mark.parametrize("kind", [RandomFourierEmbedding, OrthogonalRandomEmbedding])
def test_frequencies_have_the_law_of_the_kernel(kind):
    """Squared lengths over the bandwidth are chi-square with d degrees; the smallest mistake noticed is 10 % of the bandwidth."""
    n, bandwidth = 9000, 0.4
    found = kind(n, bandwidth=bandwidth, random_state=0).fit(Bags(X, BAGS.offsets)).frequencies_
    squares = np.square(2 * np.pi * bandwidth * found).sum(axis=0)

    def differs(squares):
        far = abs(squares.mean() - 3) > 5 * np.sqrt(6 / n)
        return bool(far or abs(squares.var() / 6 - 1) > 5 * np.sqrt((2 + 4) / n) * 1.5)

    assert not differs(squares)
    assert differs(squares * 1.1**2)
    assert differs(np.full(n, 3.0))


def test_the_width_of_a_kernel_is_a_multiple_of_the_median_distance_of_landmarks():
    y = X[:, 1]
    found = KernelRidge([0.5], landmarks=12, strengths=[0.1], random_state=0).fit(X, y)
    assert len(found.landmarks_) == 12
    assert found.width_ == pytest.approx(0.5 * np.median(pdist(found.landmarks_)))


def test_settings_at_an_end_of_their_grid():
    ends = {"first": (1, (1, 2, 3)), "last": (3, (1, 2, 3)), "unsorted": (3, (3, 1, 2))}
    others = {"middle": (2, (1, 2, 3)), "of two": (1, (1, 2)), "text": ("a", ("a", "b", "c"))}
    assert at_edge(ends | others) == list(ends)


def test_more_covariates_than_small_numbers():
    bags = Bags(np.random.default_rng(0).normal(size=(12, 300)), [0, 4, 8, 12])
    assert np.isfinite(MomentEmbedding().fit(bags).transform(bags)).all()


def test_the_logarithm_of_covariances_by_scipy():
    rng = np.random.default_rng(5)
    bags = [rng.normal(size=(50, 3)) @ (np.eye(3) + 0.2 * rng.normal(size=(3, 3))) for _ in range(4)]
    found = MomentEmbedding(log=True).fit(bags).transform(bags)
    row, column = np.triu_indices(3)
    for vector, bag in zip(found, bags, strict=True):
        logarithm = logm(np.cov(bag, rowvar=False, bias=True))
        np.testing.assert_allclose(vector, [*bag.mean(axis=0), *logarithm[row, column]], atol=2e-3)
    with pytest.raises(ConfigError, match="log: is of covariances"):
        MomentEmbedding(order=1, log=True).fit(bags)
