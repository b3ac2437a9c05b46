"""Corners of embeddings and regressors: many covariates, vectors that are all the same."""

import numpy as np

from agglearn.distribution import MomentEmbedding, MultinomialLogistic
from agglearn.observations import Bags


def test_more_covariates_than_small_numbers():
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(12, 300)), [0, 4, 8, 12], target=np.arange(3.0))
    assert np.isfinite(MomentEmbedding().fit(bags).transform(bags)).all()


def test_equal_vectors_have_scale_one():
    model = MultinomialLogistic(l2=[1.0], random_state=0).fit(np.ones((10, 2)), [0, 1] * 5)
    assert model.scale_ == 1.0
