"""What simulators draw against the stated law: dimensions that differ, points that are not all of a power of two."""

import itertools

import numpy as np
import pytest

from agglearn.datasets import Categorical, GaussianBags, LogLinear, SoftmaxLabels, Xor
from agglearn.datasets.gaussian_bags import draw_bags, evenly_spaced, van_der_corput
from agglearn.datasets.simulated import weights


def test_frequencies_of_modalities_fall_as_one_over_their_rank():
    """Of 40,000 draws; the smallest mistake noticed is an exponent of 1.05."""
    n, m = 40_000, 7
    frame = Categorical(2, m, n).draw(0).frame
    rank = 1 + np.arange(m)

    def differs(counts, exponent):
        p = rank**-exponent / np.sum(rank**-exponent)
        return bool(np.sum((counts - n * p) ** 2 / (n * p)) > 40)  # χ² with 6 degrees: once in 2 million

    counts = [np.sort(frame[c].value_counts().to_numpy())[::-1] for c in frame]
    assert not any(differs(c, 1.0) for c in counts)
    assert all(differs(c, 1.05) for c in counts)


def test_weights_of_pairs_and_single_modalities_have_their_deviations():
    """s/√(D − 1) in pairs, s/2 alone; symmetric. The smallest mistake noticed is 5 %."""
    d, m, strength = 5, 20, 0.8
    for matrix in weights(d, m, strength, np.random.default_rng(0))[:2]:
        np.testing.assert_array_equal(matrix, matrix.T)
        blocks = [matrix[i * m : (i + 1) * m, j * m : (j + 1) * m] for i, j in itertools.combinations(range(d), 2)]
        assert abs(np.std(blocks) / (strength / 2) - 1) < 5 / np.sqrt(2 * 10 * m * m) < 0.06
        assert abs(np.std(np.diag(matrix)) / (strength / 2) - 1) < 5 / np.sqrt(2 * d * m)


@pytest.mark.parametrize(
    "draw",
    [
        LogLinear(3, 4, n=6000), Categorical(4, 3, 6000), Xor(6000), SoftmaxLabels(bags=3000),
        SoftmaxLabels(3, bags=3000),
    ],
)  # fmt: skip
def test_labels_follow_their_probabilities(draw):
    """Σ (y − p)·f over records is within its error, for f of 1 and of the probability itself."""
    found = draw.draw(1)
    p, y = found.probabilities, found.y == 1
    for f in (np.ones(len(p)), p - p.mean()):
        error = np.sqrt(np.sum(p * (1 - p) * f**2))
        assert abs(np.sum((y - p) * f)) < 5 * error
    wrong = np.clip(p + 0.05, 0, 1)  # the smallest mistake noticed
    assert abs(np.sum(y - wrong)) > 5 * np.sqrt(np.sum(p * (1 - p)))


def test_points_are_the_middles_of_equal_parts():
    assert evenly_spaced(4).tolist() == [0.125, 0.375, 0.625, 0.875]
    assert sorted(van_der_corput(8)) == evenly_spaced(8).tolist()
    assert van_der_corput(8)[:4].tolist() == [0.0625, 0.5625, 0.3125, 0.8125]  # moved by half of 1/8
    assert van_der_corput(5).tolist() == [0.0625, 0.5625, 0.3125, 0.8125, 0.1875]


def test_instances_have_the_covariance_of_their_bag():
    """Two bags whose coordinates have unequal variances and a negative correlation."""
    matrices = np.array([[[4.0, -1.5], [-1.5, 1.0]], [[0.25, 0.2], [0.2, 9.0]]])
    family = lambda points, rng: (matrices, np.array([1.0, 2.0]), points)  # noqa: E731
    bags, _ = draw_bags(family, np.array([0.2, 0.7]), 20_000, np.random.default_rng(0))
    for b, matrix in enumerate(matrices):
        found = np.cov(bags.X[bags.offsets[b] : bags.offsets[b + 1]].T)
        scale = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
        assert abs((found - matrix) / scale).max() < 5 * np.sqrt(2 / 20_000)  # 5 % of the variances


def test_validation_bags_come_first_and_are_evenly_spaced():
    """Twelve for validation, then sixteen for training: the parameters tell, by the entropy of each bag."""
    made = GaussianBags("rotation", n_bags=16, n_validation=12, n_test=5, bag_size=3).draw(0)
    of = lambda k, v: GaussianBags("rotation", n_bags=k, n_validation=v, n_test=5, bag_size=3).draw(0).train.target  # noqa: E731
    np.testing.assert_allclose(made.train.target[:12], of(1, 12)[:12])
    np.testing.assert_allclose(made.train.target[12:], of(16, 0))
    assert (made.train.sizes == 3).all()
