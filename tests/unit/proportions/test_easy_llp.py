"""EasyLLP: its soft labels are unbiased, and add up."""

import itertools

import numpy as np

from agglearn.observations import Bags
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import draw_seeded
from agglearn.proportions import EasyLLPClassifier, MeanMapClassifier, means

X = np.array([[0.0], [1.0], [2.0], [4.0], [-1.0], [3.0]])
Y = np.array([0, 1, 1, 1, 0, 0])


def test_moments_are_unbiased_over_all_ways_to_draw_bags(monkeypatch):
    """Σ ỹx over all orders of six records in three bags of two. Bags without replacement: 1/(n − 1) of its sum is the others'."""
    seen = []
    monkeypatch.setattr(means.LogisticProblem, "minimise", lambda self, moments, start=None: (seen.append(moments), 0))
    for order in itertools.permutations(range(6)):
        rows = list(order)
        means.unbiased_solver(Bags(X[rows], [0, 2, 4, 6], Y[rows].reshape(3, 2).sum(axis=1)))(1.0, None)
    found = np.mean(seen, axis=0)[0]
    # the other instance of a bag is one of the five others: its label's mean is (3 − y)/5 in the place of 1/2
    label = Y + (3 - Y) / 5 - 0.5
    np.testing.assert_allclose(found, [label @ X[:, 0], label.sum()])
    np.testing.assert_allclose(label, 0.8 * Y + 0.1)  # of N records (N − k)/(N − 1) of it: nothing for many
    assert found[1] == Y.sum()


def test_centred_features_change_nothing_in_bags_of_one_size(monkeypatch):
    """The term that removes the bias, with features less their mean, which lowers the variance of other losses."""
    seen = []
    monkeypatch.setattr(means.LogisticProblem, "minimise", lambda self, moments, start=None: (seen.append(moments), 0))
    rng, k = np.random.default_rng(0), 5
    x, counts = rng.normal(2, 1, (100, 3)), rng.integers(0, k + 1, 20)
    means.unbiased_solver(Bags(x, np.arange(0, 101, k), counts))(1.0, None)
    rate = counts.sum() / 100
    centred = (x - x.mean(axis=0)).reshape(20, k, 3).sum(axis=1)
    np.testing.assert_allclose(seen[0][0, :3], (counts - k * rate) @ centred + rate * x.sum(axis=0))


def test_random_bags_and_noise_on_them():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 2))
    y = (rng.random(20_000) < 1 / (1 + np.exp(1 - x @ [1.5, -1.0]))).astype(int)
    offsets = np.arange(0, 20_001, 5)
    bags = Bags(x, offsets, np.add.reduceat(y, offsets[:-1]))
    for exact in (bags, release_bag_counts(bags, 1.0, draw=draw_seeded(0))):
        model = EasyLLPClassifier(l2=1.0).fit(exact)
        np.testing.assert_allclose(model.coef_[0], [1.5, -1.0], atol=0.25)
        np.testing.assert_allclose(model.intercept_, -1.0, atol=0.15)
    assert EasyLLPClassifier(random_state=0).fit(bags).l2_ in [5 * l2 for l2 in means.PATH]
    assert MeanMapClassifier(l2=1.0).fit(bags).coef_.shape == model.coef_.shape


def test_three_classes():
    rng = np.random.default_rng(1)
    centres = np.array([[0.0, 0], [2, 0], [0, 2]])
    y = rng.integers(0, 3, 6000)
    x = centres[y] + rng.normal(size=(6000, 2))
    counts = np.eye(3, dtype=int)[y].reshape(-1, 4, 3).sum(axis=1)
    p = EasyLLPClassifier(random_state=0).fit(Bags(x, np.arange(0, 6001, 4), counts)).predict_proba(centres)
    assert (p.argmax(axis=1) == [0, 1, 2]).all()
