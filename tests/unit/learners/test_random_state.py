"""`random_state` is what scikit-learn's users know: a number, a RandomState, a Generator, or None."""

from functools import partial

import numpy as np
import pytest
from observed import CLOUDS, FRAME, TABLES
from test_random_learners import draw, flat

from agglearn import distribution, labelsums, maxent, proportions, vocabulary
from agglearn.collective import ChainModel, infer
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, Halves
from agglearn.seeds import derive_generator, derive_seed, draw_seed

KINDS = [
    maxent.MaxEntClassifier, maxent.NaiveBayesClassifier, maxent.LogisticSkyline, labelsums.WALRClassifier,
    labelsums.LabelledGradientDescent, labelsums.BoostedTreesSkyline, labelsums.AggregateSearch,
    distribution.RandomFourierEmbedding, distribution.BagOfWordsEmbedding, distribution.FisherVectorEmbedding,
    distribution.MultinomialLogistic, distribution.KernelRidge, distribution.EmbeddingRegressor,
    vocabulary.SubmodularQuantizer, vocabulary.LogisticOnClusters, proportions.MeanMapClassifier,
]  # fmt: skip


def halves(state):
    return Halves.from_records(FRAME, "y", random_state=state).first.total


def gibbs(state):
    model = ChainModel([np.zeros((2, 2))] * 2)
    counts = FlowCounts(node_counts=np.array([[10.0, 20], [20, 10], [5, 25]]), noise="gaussian", scale=2.0)
    return infer(model, counts, 30, method="gibbs", n_moves=400, random_state=state).edge_tables


DRAWS = [*(partial(draw, kind) for kind in KINDS), halves, gibbs]


def same(a, b) -> bool:
    return np.array_equal(flat(a), flat(b))


@pytest.mark.slow
@pytest.mark.parametrize("drawing", DRAWS)
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generators_are_drawn_from(drawing, kind):
    results = [drawing(kind(k)) for k in (1, 1, 2, 3)]
    assert same(results[0], results[1])
    assert not (same(results[0], results[2]) and same(results[0], results[3]))
    used = kind(1)
    drawing(used)
    fresh = kind(1)
    assert used.bytes(8) != fresh.bytes(8)  # it has moved on


@pytest.mark.parametrize("drawing", DRAWS)
def test_a_number_is_the_seed_and_none_is_not(drawing):
    assert same(drawing(7), drawing(np.int64(7)))
    assert not all(same(drawing(7), drawing(None)) for _ in range(3))
    with pytest.raises(ConfigError, match="random_state: must be a whole number"):
        drawing("seven")


def test_numbers_give_the_draws_of_before():
    assert [draw_seed(k) for k in (0, 5, 1 << 62)] == [0, 5, 1 << 62]
    np.testing.assert_array_equal(
        distribution.RandomFourierEmbedding(3, bandwidth=1.0, random_state=3).fit(CLOUDS).frequencies_,
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
        model = maxent.MaxEntClassifier(20, max_iter=3, random_state=state).fit(TABLES)
        model.save(tmp_path / "m")
        back = Estimator.load(tmp_path / "m")
        assert back.random_state in (None, 4)
        np.testing.assert_allclose(back.predict_proba(FRAME), model.predict_proba(FRAME))
