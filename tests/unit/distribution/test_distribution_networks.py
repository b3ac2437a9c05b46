"""Networks on sets: invariance, ragged bags, weights, learning, repeatability, bad input."""

from itertools import pairwise

import numpy as np
import pytest

from agglearn.distribution import DeepSetsClassifier, DeepSetsRegressor, PointNetClassifier, set_batches
from agglearn.distribution.set_batches import turn_clouds
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags

pytestmark = pytest.mark.slow  # each network is compiled

SMALL = {"features": (8, 6), "regressor": (5,), "steps": 30, "batch_size": 8}
SMALL |= {"random_state": 3, "heads": 2, "device": "cpu"}
VARIANTS = {
    "mean": {}, "sum": {"pooling": "sum"}, "max": {"pooling": "max"}, "attention": {"pooling": "attention"},
    "equivariant": {"layers": "equivariant", "pooling": "max", "activation": "tanh"},
}  # fmt: skip


def made(n=40, seed=0, sizes=(3, 9), weighted=False, fives=0) -> Bags:
    """Ragged bags, the last of them of 5 instances, whose target is the mean of their first covariate."""
    rng = np.random.default_rng(seed)
    lengths = np.append(rng.integers(*sizes, n - fives), np.full(fives, 5))
    bag = np.repeat(np.arange(n), lengths)
    x = rng.normal(size=(lengths.sum(), 2)) + rng.normal(size=n)[bag, None]
    weights = rng.integers(1, 4, len(x)).astype(float) if weighted else None
    target = np.bincount(bag, x[:, 0] * (1 if weights is None else weights)) / np.bincount(bag, weights)
    return Bags(x, np.append(0, np.cumsum(lengths)), weights=weights, target=target)


@pytest.fixture(scope="module", params=list(VARIANTS))
def fitted(request):
    return DeepSetsRegressor(**SMALL | VARIANTS[request.param]).fit(made())


@pytest.fixture(scope="module")
def bags():
    """Most tests predict these, because another shape is another program to compile."""
    return made(60, 4, (1, 30), weighted=True, fives=19)


def same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_order_of_instances_does_not_matter(fitted, bags):
    rng = np.random.default_rng(0)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(bags.offsets)])
    same(fitted.predict(Bags(bags.X[rows], bags.offsets, weights=bags.weights[rows])), fitted.predict(bags))


def test_bags_are_alone_in_a_batch(fitted, bags):
    bags = Bags(bags.X, bags.offsets)
    together, pair = fitted.predict(bags), [2, 17]
    assert bags.sizes[pair[0]] == bags.sizes[pair[1]]
    same(together[pair], [fitted.predict(bags.take([b]))[0] for b in pair])
    same(together[41:], fitted.predict(bags.take(np.arange(41, 60))))  # many bags of one size take another way


def test_batches_of_bags_of_many_sizes_have_one_shape(fitted, bags, monkeypatch):
    whole = fitted.predict(bags)
    monkeypatch.setattr(set_batches, "PREDICTED", 100)
    parts = list(set_batches.Batches(bags, np.zeros(2), np.ones(2)).blocks())
    assert len(parts) > 5
    assert sum(n for _, n in parts) == 60
    assert len({(batch.x.shape, batch.total.shape) for batch, _ in parts}) == 1
    assert all((np.diff(batch.bag) >= 0).all() for batch, _ in parts)
    same(fitted.predict(bags), whole)


@pytest.mark.parametrize(
    ("larger", "of_draws"),
    [(0, {None: [4, 3, 3], 30: [4, 3, 3], 10: [10]}), (5, {None: [10], 20: [5, 5], 25: [10], 27: [10]})],
)
def test_batches_with_instances_of_one_number_are_split(monkeypatch, larger, of_draws):
    monkeypatch.setattr(set_batches, "CACHED", 100)
    bags = Bags(np.zeros((500 + larger, 2)), [*range(0, 500, 25), 500 + larger])
    for draw, bags_of_a_part in of_draws.items():
        parts = set_batches.Batches(bags, np.zeros(2), np.ones(2)).split(np.arange(10, 20), draw)
        assert [len(part) for part in parts] == bags_of_a_part
        np.testing.assert_array_equal(np.concatenate(parts), np.arange(10, 20))


def test_parts_train_as_the_whole_does(monkeypatch):
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(1000, 2)), np.arange(0, 1001, 25), target=rng.normal(size=40))
    found = []
    for cached in (1000, 100):
        monkeypatch.setattr(set_batches, "CACHED", cached)
        found.append(DeepSetsRegressor(steps=20, batch_size=16, random_state=0).fit(bags).predict(bags))
    assert (found[0] != found[1]).any()  # sums in another order
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


def test_weights_count_instances(fitted, bags):
    if fitted.pooling == "max":
        times = np.ones(len(bags.X), int)  # how often an instance occurs does not matter
    else:
        times = bags.weights.astype(int)
    offsets = np.append(0, np.cumsum(np.add.reduceat(times, bags.offsets[:-1])))
    same(fitted.predict(bags), fitted.predict(Bags(np.repeat(bags.X, times, axis=0), offsets)))
    x, offsets = np.vstack([bags.X, np.full((1, 2), 50.0)]), [*bags.offsets[:-1], len(bags.X) + 1]
    more = Bags(x, offsets, weights=[*bags.weights, 0])
    same(fitted.predict(more), fitted.predict(bags))


def test_learns_a_mean():
    how = {"features": (16, 16), "regressor": (8,), "steps": 300, "rate": 1e-2, "batch_size": 16, "random_state": 0}
    model = DeepSetsRegressor(**how, device="cpu")
    test = made(100, 11)
    assert np.mean((model.fit(made(200)).predict(test) - test.target) ** 2) < 0.05 * test.target.var()
    assert model.losses_[-1] < 0.3 * model.losses_[0]
    wrong = Bags(made(200).X, made(200).offsets, target=np.random.default_rng(0).permutation(made(200).target))
    assert np.mean((model.fit(wrong).predict(test) - test.target) ** 2) > 0.5 * test.target.var()


@pytest.mark.parametrize(("kind", "full_share"), [(DeepSetsClassifier, 0.25), (PointNetClassifier, 0.0)])
def test_classifiers_learn(kind, full_share):
    rng = np.random.default_rng(0)
    y = rng.choice([3, 5, 8], 90)
    bags = [rng.normal(0, 0.3 * c, (20, 3)) for c in y]
    sizes = {"features": (16, 16), "regressor": (8,), "steps": 200, "batch_size": 16, "rate": 5e-3, "random_state": 0}
    model = kind(**sizes, augment="turn", instances=10, full_share=full_share, device="cpu").fit(bags[:60], y[:60])
    found = model.predict(bags)
    assert (found[60:] == y[60:]).mean() > 0.75
    assert set(found) <= {3, 5, 8}
    np.testing.assert_allclose(model.predict_proba(bags).sum(axis=1), 1)


def test_vectors_as_targets_early_stopping_and_which_bags_are_learned_from():
    some = SMALL | {"n_validation": 10, "bag_size": 3}
    bags = made(40)
    bags = Bags(bags.X, bags.offsets, target=np.column_stack([bags.target, -bags.target]))
    found = DeepSetsRegressor(**some | {"n_bags": 20}).fit(bags).predict(bags)
    assert found.shape == (40, 2)
    rest = bags.take(np.arange(30))
    np.testing.assert_array_equal(DeepSetsRegressor(**some).fit(rest).predict(bags), found)
    assert len(DeepSetsRegressor(**some | {"patience": 1, "rate": 0.5, "steps": 100}).fit(rest).losses_) < 10


def test_predictions_have_the_units_of_their_targets():
    """The same bags with targets in other units, as 100 + 10·t: predictions follow."""
    bags = made(20)
    found = []
    for t in (bags.target, 100 + 10 * bags.target):
        found.append(DeepSetsRegressor(**SMALL).fit(Bags(bags.X, bags.offsets, target=t)).predict(bags))
    np.testing.assert_allclose(found[1], 100 + 10 * found[0], rtol=1e-4)
    assert np.std(found[0]) > 0.05 * np.std(bags.target)


def test_bags_that_end_training_are_not_learned_from(monkeypatch):
    of, right = [], DeepSetsRegressor._batches
    spied = lambda model, bags: of.append(set(np.float32(bags.X[:, 0]).tolist())) or right(model, bags)  # noqa: E731
    monkeypatch.setattr(DeepSetsRegressor, "_batches", spied)
    bags = made()
    DeepSetsRegressor(**SMALL).fit(bags)
    training, held = of[:2]
    assert training
    assert held
    assert not training & held
    assert training | held == set(np.float32(bags.X[:, 0]).tolist())


def test_turned_clouds_keep_their_shape():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10, 3)).astype(np.float32)
    new = turn_clouds(x, np.array([4, 6]), rng)
    for part in (slice(0, 4), slice(4, 10)):
        gram = lambda v: v[:, :2] @ v[:, :2].T  # noqa: E731
        factor = new[part, 2] / x[part, 2]
        assert np.ptp(factor) < 1e-5
        np.testing.assert_allclose(gram(new[part]), factor[0] ** 2 * gram(x[part]), atol=1e-4)
    assert not np.allclose(new[:, :2] / x[:, :2], (new[:, 2] / x[:, 2])[:, None])


def test_bad_input():
    cases = [({name: "x"}, name) for name in ("pooling", "layers", "activation", "augment", "device")]
    cases += [({"heads": 4, "pooling": "attention"}, "heads: 4 does not divide")]
    cases += [({"augment": "turn"}, "augment: turn is for points in space; these have 2 coordinates")]
    for wrong, said in cases:
        with pytest.raises(ConfigError, match=said):
            DeepSetsRegressor(**SMALL | wrong).fit(made())
    with pytest.raises(DataError, match="one bag only"):
        DeepSetsRegressor(**SMALL).fit([np.ones((2, 2))], [1.0])
    with pytest.raises(DataError, match="one class only"):
        DeepSetsClassifier(**SMALL).fit([np.ones((2, 2))] * 4, [1, 1, 1, 1])
    with pytest.raises(DataError, match="have 3 covariates, this model has 2"):
        DeepSetsRegressor(**SMALL).fit(made()).predict([np.ones((2, 3))])
