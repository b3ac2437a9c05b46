"""Boosted trees on the likelihood of counts: what they learn, when they stop, and what they refuse."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from agglearn.errors import DataError
from agglearn.evaluation import normalized_log_likelihood
from agglearn.observations import Bags
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import draw_seeded
from agglearn.proportions import CardinalityBoosting, CardinalityClassifier, boosting
from agglearn.proportions.posterior import binary_posteriors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 3))
TRUTH = expit(2 * (np.abs(X[:, 0]) + (X[:, 1] > 0.5) - 1.5))  # no linear function of X tells it
Y = (RNG.random(6000) < TRUTH).astype(int)
OFFSETS = np.arange(0, 5001, 5)
BAGS = Bags(X[:5000], OFFSETS, np.add.reduceat(Y[:5000], OFFSETS[:-1]))


def score(model) -> float:
    return normalized_log_likelihood(Y[5000:], model.predict_proba(X[5000:])[:, 1])


def test_they_learn_what_no_linear_function_tells():
    trees, linear = CardinalityBoosting(random_state=0).fit(BAGS), CardinalityClassifier(random_state=0).fit(BAGS)
    limit = normalized_log_likelihood(Y[5000:], TRUTH[5000:])
    assert score(trees) > 0.8 * limit
    assert score(linear) < 0.4 * limit


def test_noise_that_hides_everything_leaves_the_base_rate():
    hopeless = release_bag_counts(BAGS.take(np.arange(100)), 0.01, draw=draw_seeded(1))
    model = CardinalityBoosting(random_state=0).fit(hopeless)
    assert model.n_stages_ == 0
    rate = np.clip(hopeless.released.sum() / 500, 0.001, 0.999)
    np.testing.assert_allclose(model.predict_proba(X[:3])[:, 1], rate)


def test_the_number_of_stages_has_the_best_held_out_likelihood(monkeypatch):
    """By the likelihoods of held-out bags, computed here from the trees of the first fit, on a fifth of the bags."""
    fits = []
    boost = CardinalityBoosting._boost

    def spied(model, bags, held_out, n_stages):
        boost(model, bags, held_out, n_stages)
        fits.append((bags, held_out, model.base_, model.steps_, model._stages, model.n_stages_))

    monkeypatch.setattr(CardinalityBoosting, "_boost", spied)
    model = CardinalityBoosting(learning_rate=0.5, random_state=0).fit(BAGS)
    (bags, held_out, base, steps, stages, chosen), (again, none, *_, final) = fits
    assert (len(bags), len(held_out), len(again), none) == (800, 200, 1000, None)
    trees = [a * t.predict(held_out.X) for a, t in zip(steps, stages, strict=True)]
    moves = np.cumsum([np.full(1000, base), *trees], axis=0)
    likelihoods = [binary_posteriors(m, held_out.offsets, held_out.counts[:, 1])[1].sum() for m in moves]
    assert chosen == final == model.n_stages_ == np.argmax(likelihoods)
    assert len(stages) == chosen + boosting.PATIENCE


@pytest.mark.parametrize("noisy", [False, True])
def test_a_step_is_the_maximum_along_the_trees_by_the_expected_information(noisy):
    bags = release_bag_counts(BAGS, 1.0, draw=draw_seeded(0)) if noisy else BAGS
    model = CardinalityBoosting(learning_rate=1.0, max_stages=1, random_state=0)
    model.width_, model._binary = 3, [False] * 3
    model._boost(bags, None, 1)
    p = bags.uncut_counts[:, 1].sum() / 5000
    # all are equally probable before the first stage, so the posterior is the mean count of a binomial law times the noise
    counts = np.arange(6)
    far = np.abs(bags.uncut_counts[:, 1:] - counts)
    law = stats.binom(5, p).pmf(counts) * (np.exp(-far) if noisy else far == 0)
    q = np.repeat(law @ counts / law.sum(axis=1) / 5, 5)
    f = model._stages[0].predict(bags.X).reshape(-1, 5)
    slope = ((q - p) * f.ravel()).sum()
    variance = 1 / (2 * np.sinh(0.5) ** 2) if noisy else 0.0
    curvature = ((p * (1 - p) * f.sum(axis=1)) ** 2 / (5 * p * (1 - p) + variance)).sum()
    assert model.steps_[0] == pytest.approx(slope / curvature)


def test_three_classes_are_refused():
    with pytest.raises(DataError, match="learns from counts of two classes, not of 3"):
        CardinalityBoosting().fit(Bags(X[:4], [0, 2, 4], [[1, 1, 0], [0, 1, 1]]))
