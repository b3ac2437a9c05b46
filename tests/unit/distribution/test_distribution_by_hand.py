"""Instances of bags and units of their targets against a few numbers."""

import numpy as np
import pytest

from agglearn.distribution import DeepSetsRegressor
from agglearn.distribution.embedding import sample_instances, total_weights, truncate_bags
from agglearn.observations import (
    Bags,
)


def test_first_instances_keep_their_weights():
    bags = Bags(np.arange(6.0)[:, None], [0, 3, 6], weights=np.array([1.0, 2, 3, 4, 5, 6]), target=np.array([0.0, 1.0]))
    part = truncate_bags(bags, 2)
    assert (part.X[:, 0].tolist(), part.weights.tolist(), part.target.tolist()) == ([0, 1, 3, 4], [1, 2, 4, 5], [0, 1])
    assert total_weights(part).tolist() == [3, 9]
    assert total_weights(Bags(bags.X, bags.offsets)).tolist() == [3, 3]
    some = Bags(bags.X, bags.offsets, weights=np.array([0.0, 1, 1, 0, 1, 1]))
    assert sample_instances(some, 4, "s")[:, 0].tolist() == [1, 2, 4, 5]  # nobody of weight 0
    assert set(sample_instances(some, 2, "s")[:, 0].tolist()) < {1, 2, 4, 5}


@pytest.mark.slow
def test_predictions_of_networks_have_the_units_of_their_targets():
    """The same bags with targets in other units, as 100 + 10·t: predictions follow."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) + np.repeat(rng.normal(size=20), 4)[:, None]
    target = x[:, 0].reshape(20, 4).mean(axis=1)
    found = []
    for t in (target, 100 + 10 * target):
        model = DeepSetsRegressor((4, 4), (4,), steps=10, batch_size=8, device="cpu", random_state=0)
        found.append(model.fit(Bags(x, np.arange(0, 81, 4), target=t)).predict(Bags(x, np.arange(0, 81, 4))))
    np.testing.assert_allclose(found[1], 100 + 10 * found[0], rtol=1e-4)
    assert np.std(found[0]) > 0.05 * np.std(target)
