"""`random_state` is what scikit-learn's users know: a number, a RandomState, a Generator, or None."""

import numpy as np
import pandas as pd
import pytest
from observed import FRAME, RECORDS, SUMS, TABLES

from agglearn.collective import ChainModel, infer
from agglearn.distribution import (
    BagOfWordsEmbedding,
    EmbeddingRegressor,
    FisherVectorEmbedding,
    KernelRidge,
    LinearRidge,
    MultinomialLogistic,
    RandomFourierEmbedding,
)
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.labelsums import AggregateSearch, BoostedTreesSkyline, LabelledGradientDescent, WALRClassifier
from agglearn.maxent import LogisticSkyline, MaxEntClassifier, NaiveBayesClassifier
from agglearn.observations import Bags, FlowCounts, Halves
from agglearn.proportions import MeanMapClassifier
from agglearn.seeds import derive_generator, derive_seed, draw_seed
from agglearn.vocabulary import LogisticOnClusters, OptimalQuantizer, SubmodularQuantizer

CLOUDS = Bags(np.random.default_rng(0).normal(size=(400, 2)), np.arange(0, 401, 4), target=np.arange(100.0))
VECTORS = np.random.default_rng(1).normal(size=(60, 3))
CLASSES = (VECTORS[:, 0] > 0).astype(int)


def maxent(state):
    return MaxEntClassifier(20, max_iter=3, random_state=state).fit(TABLES).theta_


def naive_bayes(state):
    return NaiveBayesClassifier("pcd", n_chains=20, max_iter=3, random_state=state).fit(TABLES).theta_


def skyline(state):
    return LogisticSkyline(quadratic=False, max_iter=5, random_state=state).fit(RECORDS).path_[:3]


def walr(state):
    return WALRClassifier("hybrid", max_iter=3, batch_size=8, random_state=state).fit(SUMS).coef_


def descent(state):
    return LabelledGradientDescent(max_iter=3, batch_size=8, random_state=state).fit(RECORDS).coef_


def trees(state):
    return BoostedTreesSkyline(max_iter=20, random_state=state).fit(RECORDS).predict_proba(FRAME)


def selected(state):
    base = MaxEntClassifier(20, max_iter=3)
    return AggregateSearch(base, values=(1.0, 64.0), random_state=state).fit(TABLES).scores_


def fourier(state):
    return RandomFourierEmbedding(3, random_state=state).fit(CLOUDS).frequencies_


def words(state):
    return BagOfWordsEmbedding(5, max_iter=1, random_state=state).fit(CLOUDS).centres_


def fisher(state):
    return FisherVectorEmbedding(5, max_iter=1, random_state=state).fit_transform(CLOUDS)


def multinomial(state):
    return MultinomialLogistic(random_state=state).fit(VECTORS, CLASSES).score_


def kernel_ridge(state):
    return KernelRidge(landmarks=4, random_state=state).fit(VECTORS, CLASSES).landmarks_


def embedded(state):
    model = EmbeddingRegressor(RandomFourierEmbedding(3), LinearRidge(), random_state=state).fit(CLOUDS)
    return model.embedding_.frequencies_


def submodular(state):
    n = np.random.default_rng(0).integers(10, 50, 200)
    c = np.random.default_rng(1).binomial(n, 0.3)
    return SubmodularQuantizer(20, epsilon=0.9, random_state=state).fit(n, c).information_


def on_clusters(state):
    model = LogisticOnClusters(OptimalQuantizer(budget=8), random_state=state).fit(RECORDS)
    return model.scores_


def held_out_bags(state):
    bags, drawn = Bags(CLOUDS.X, CLOUDS.offsets, np.tile([2, 2], (100, 1))), []
    model = MeanMapClassifier(random_state=state)
    model._choose_l2(bags, lambda rest: drawn.append(rest.X) or (lambda l2, last: 0), lambda b, s: 0.0)
    return drawn[0]


def halves(state):
    return Halves.from_records(FRAME, "y", random_state=state).first.total


def gibbs(state):
    model = ChainModel([np.zeros((2, 2))] * 2)
    counts = FlowCounts(node_counts=np.array([[10.0, 20], [20, 10], [5, 25]]), noise="gaussian", scale=2.0)
    return infer(model, counts, 30, method="gibbs", n_moves=400, random_state=state).edge_tables


DRAWS = [
    maxent, naive_bayes, skyline, walr, descent, trees, selected, fourier, words, fisher, multinomial, kernel_ridge,
    embedded, submodular, on_clusters, held_out_bags, halves, gibbs,
]  # fmt: skip


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(np.atleast_1d(a), np.atleast_1d(b), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generators_are_drawn_from(draw, kind):
    results = [draw(kind(k)) for k in (1, 1, 2, 3)]
    assert same(results[0], results[1])
    assert not (same(results[0], results[2]) and same(results[0], results[3]))
    used = kind(1)
    draw(used)
    fresh = kind(1)
    assert used.bytes(8) != fresh.bytes(8)  # it has moved on


@pytest.mark.parametrize("draw", DRAWS)
def test_a_number_is_the_seed_and_none_is_not(draw):
    assert same(draw(7), draw(np.int64(7)))
    assert not all(same(draw(7), draw(None)) for _ in range(3))
    with pytest.raises(ConfigError, match="random_state: must be a whole number"):
        draw("seven")


def test_numbers_give_the_draws_of_before():
    assert [draw_seed(k) for k in (0, 5, 1 << 62)] == [0, 5, 1 << 62]
    np.testing.assert_array_equal(
        RandomFourierEmbedding(3, bandwidth=1.0, random_state=3).fit(CLOUDS).frequencies_,
        (derive_generator("frequencies", 3).standard_normal((2, 3)) / (2 * np.pi)).astype(np.float32),
    )


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "0", (1, 2), np.random])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ConfigError, match="random_state"):
        draw_seed(wrong)


def test_a_generator_names_no_stream():
    with pytest.raises(TypeError, match="draw_seed"):
        derive_seed("stream", np.random.default_rng(0))


def test_a_model_that_drew_from_a_generator_is_saved(tmp_path):
    for state in (np.random.default_rng(1), np.random.RandomState(1), np.int64(4)):
        model = MaxEntClassifier(20, max_iter=3, random_state=state).fit(TABLES)
        model.save(tmp_path / "m")
        back = Estimator.load(tmp_path / "m")
        assert back.random_state in (None, 4)
        pd.testing.assert_series_equal(
            pd.Series(back.predict_proba(FRAME)[:, 1]), pd.Series(model.predict_proba(FRAME)[:, 1])
        )
