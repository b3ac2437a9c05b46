"""Fixed embeddings: what they are by definition, invariances, streaming, bad input."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import printed_with_threads
from scipy.stats import multivariate_normal

from agglearn.distribution import (
    BagOfWordsEmbedding,
    FisherVectorEmbedding,
    MomentEmbedding,
    OrthogonalRandomEmbedding,
    RandomFourierEmbedding,
    kernels,
)
from agglearn.distribution import embedding as base
from agglearn.distribution.embedding import as_bags, row_blocks, truncate_bags
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags

EMBEDDINGS = {
    "rff": RandomFourierEmbedding(16, random_state=1), "orf": OrthogonalRandomEmbedding(16, random_state=1),
    "bow": BagOfWordsEmbedding(5, random_state=1), "fisher": FisherVectorEmbedding(4, random_state=1),
    "moments": MomentEmbedding(), "mean": MomentEmbedding(order=1),
}  # fmt: skip


def ragged(seed=0, sizes=(5, 1, 40, 3), d=3, weighted=False) -> Bags:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    return Bags(rng.normal(size=(n, d)), np.append(0, np.cumsum(sizes)), weights=weights)


@pytest.fixture(params=list(EMBEDDINGS))
def fitted(request):
    return EMBEDDINGS[request.param].fit(ragged())


# -- what every embedding is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(EMBEDDINGS))
def test_order_does_not_matter_in_large_bags_with_a_narrow_group_far_away(name, weighted):
    """Sums of squares are 300,000 times the variance of that group: sums in single precision moved vectors by 8e-3."""
    rng, sizes = np.random.default_rng(0), (30_000, 700, 20)
    n, offsets = sum(sizes), np.append(0, np.cumsum(sizes))
    place = rng.choice([0, 1, 30], (n, 1))
    x = place * np.linspace(1, 3, 4) + rng.normal(size=(n, 4)) * np.where(place == 30, 0.05, 1)
    weights = rng.uniform(0.1, 3, n) if weighted else None
    embedding = EMBEDDINGS[name].fit(Bags(x, offsets, weights=weights))
    vectors = embedding.transform(Bags(x, offsets, weights=weights))
    within = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(offsets)])
    shuffled = embedding.transform(Bags(x[within], offsets, weights=weights[within] if weighted else None))
    rounding = 1e-7 if name == "fisher" else 1e-5  # entries of the others are no differences of large sums
    assert abs(shuffled - vectors).max() <= rounding * abs(vectors).max()


def test_weights_count_instances(fitted):
    bags = ragged(3, (4, 2), weighted=True)
    times = bags.weights.astype(int)
    offsets = np.append(0, np.cumsum(np.add.reduceat(times, bags.offsets[:-1])))
    repeated = Bags(np.repeat(bags.X, times, axis=0), offsets)
    np.testing.assert_allclose(fitted.transform(bags), fitted.transform(repeated), rtol=1e-4, atol=1e-4)
    without = Bags(np.vstack([bags.X, np.full((1, 3), 9.0)]), [0, 4, 7], weights=np.append(bags.weights, 0))
    np.testing.assert_allclose(fitted.transform(without), fitted.transform(bags), rtol=1e-5, atol=1e-5)


def test_lists_and_bags_are_the_same(fitted):
    bags = ragged(5)
    parts = [bags.X[a:b] for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    np.testing.assert_array_equal(fitted.transform(parts), fitted.transform(bags))
    np.testing.assert_array_equal(fitted.transform((bags.X, bags.offsets)), fitted.transform(bags))


@pytest.mark.parametrize("rows", [1, 7, 16])
def test_blocks_change_nothing(fitted, rows, monkeypatch):
    bags = ragged(9, (30, 1, 2, 2, 50, 1), weighted=True)
    whole = fitted.transform(bags)
    monkeypatch.setattr(base, "ROWS", rows)
    monkeypatch.setattr(row_blocks, "__defaults__", (rows,))
    np.testing.assert_allclose(fitted.transform(bags), whole, rtol=2e-4, atol=2e-4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=9), st.integers(1, 25))
def test_blocks_hold_every_row_once(sizes, rows):
    offsets, seen = np.append(0, np.cumsum(sizes)), []
    for first, part, within in row_blocks(offsets, rows):
        assert 0 < part.stop - part.start <= rows
        assert within[-1] == part.stop - part.start
        seen += list(np.repeat(first + np.arange(len(within) - 1), np.diff(within)))
    np.testing.assert_array_equal(seen, np.repeat(np.arange(len(sizes)), sizes))


THREADS = """
import hashlib, numba
from test_distribution_embeddings import EMBEDDINGS, ragged
fitted, bags = [e.fit(ragged()) for e in EMBEDDINGS.values()], ragged(4, (300, 5, 700), d=3)
for threads in (1, 2, 4):
    numba.set_num_threads(threads)
    print(*(hashlib.sha256(e.transform(bags).tobytes()).hexdigest() for e in fitted), sep=",")
"""


@pytest.mark.slow
def test_threads_change_nothing():
    first, *others = printed_with_threads(THREADS)
    assert others == [first, first]


# -- random features --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RandomFourierEmbedding, OrthogonalRandomEmbedding])
def test_features_are_cosines_and_sines(kind):
    bags = ragged(1, (6, 2))
    found = kind(8, bandwidth=0.7, random_state=3).fit(bags)
    phase = 2 * np.pi * bags.X @ found.frequencies_.astype(float)
    features = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(8)
    wanted = np.stack([features[:6].mean(axis=0), features[6:].mean(axis=0)])
    np.testing.assert_allclose(found.transform(bags), wanted, atol=2e-6)


def kernel_error(kind, n, seeds=20) -> float:
    """Root mean squared error of inner products of single points against the Gaussian kernel."""
    x = np.random.default_rng(0).normal(size=(12, 8))
    exact = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / (2 * 2.5**2))
    errors = []
    for s in range(seeds):
        v = kind(n, bandwidth=2.5, random_state=s).fit_transform(list(x[:, None])).astype(float)
        errors.append(v @ v.T - exact)
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.slow
def test_inner_products_converge_to_the_kernel_at_the_expected_rate():
    sizes = np.array([16, 64, 256, 1024])
    for kind in (RandomFourierEmbedding, OrthogonalRandomEmbedding):
        errors = [kernel_error(kind, n) for n in sizes]
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.65 < slope < -0.35, (kind, slope)  # 1/√F
    assert kernel_error(OrthogonalRandomEmbedding, 64) < 0.9 * kernel_error(RandomFourierEmbedding, 64)


# -- words and components ---------------------------------------------------------------------------------------------


def test_words_are_the_nearest_centres():
    bags = ragged(2, (50, 20))
    found = BagOfWordsEmbedding(6, random_state=0).fit(bags)
    nearest = np.argmin(((bags.X[:, None] - found.centres_) ** 2).sum(axis=2), axis=1)
    wanted = np.stack([np.bincount(nearest[:50], minlength=6) / 50, np.bincount(nearest[50:], minlength=6) / 20])
    np.testing.assert_allclose(found.transform(bags), wanted, atol=1e-6)


def test_centres_are_where_the_clusters_are():
    rng = np.random.default_rng(0)
    true = np.array([[0, 0], [10, 0], [0, 10]])
    found = BagOfWordsEmbedding(3, random_state=0).fit([true[rng.integers(0, 3, 300)] + rng.normal(0, 0.1, (300, 2))])
    order = np.argsort(found.centres_ @ [1, 2])
    np.testing.assert_allclose(found.centres_[order], true, atol=0.1)


def test_fewer_distinct_instances_than_words():
    assert BagOfWordsEmbedding(5).fit([np.ones((4, 2)), np.zeros((3, 2))]).transform([np.zeros((2, 2))]).shape == (1, 2)


def log_likelihood(x, weights, means, deviations) -> float:
    """Mean log-likelihood of instances under a diagonal mixture, by SciPy."""
    parts = zip(weights, means, deviations, strict=True)
    return float(np.mean(np.log(sum(w * multivariate_normal(m, np.diag(s**2)).pdf(x) for w, m, s in parts))))


def finite_differences(e, x, step=1e-4) -> np.ndarray:
    """φ from the gradient of the log-likelihood: ∂/∂μ times σ/√w, ∂/∂σ times σ/√(2w)."""
    out = np.empty((len(e.weights_), 2 * x.shape[1]))
    for k, j in np.ndindex(len(e.weights_), x.shape[1]):
        for part, column in (("means_", j), ("deviations_", x.shape[1] + j)):
            values = []
            for sign in (1, -1):
                moved = {n: getattr(e, n).copy() for n in ("means_", "deviations_")}
                moved[part][k, j] += sign * step
                values.append(log_likelihood(x, e.weights_, moved["means_"], moved["deviations_"]))
            scale = e.deviations_[k, j] / np.sqrt(e.weights_[k] * (1 if part == "means_" else 2))
            out[k, column] = scale * (values[0] - values[1]) / (2 * step)
    return out.reshape(-1)


def test_fisher_vector_is_the_scaled_gradient_of_the_log_likelihood():
    bags = ragged(1, (60, 7))
    e = FisherVectorEmbedding(3, random_state=0).fit(bags)
    found = e.transform(bags)
    for row, x in zip(found, (bags.X[:60], bags.X[60:]), strict=True):
        np.testing.assert_allclose(row, finite_differences(e, x), atol=2e-4)


def test_mixture_is_fitted():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal([0, 0], [1, 0.2], (4000, 2)), rng.normal([6, 3], [0.5, 2], (2000, 2))])
    e = FisherVectorEmbedding(2, random_state=0).fit([x])
    order = np.argsort(e.means_[:, 0])
    np.testing.assert_allclose(e.weights_[order], [2 / 3, 1 / 3], atol=0.02)
    np.testing.assert_allclose(e.means_[order], [[0, 0], [6, 3]], atol=0.15)
    np.testing.assert_allclose(e.deviations_[order], [[1, 0.2], [0.5, 2]], rtol=0.06)
    np.testing.assert_allclose(e.transform([x]), 0, atol=0.02)  # at the optimum the gradient vanishes


# -- kernels with a planted mistake -----------------------------------------------------------------------------------


def fourier_reference(turns, weights, offsets):
    both = np.concatenate([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1) * weights[:, None]
    return np.add.reduceat(both, offsets[:-1], axis=0)


def wrong_fourier_sums(turns, weights, offsets, out):
    kernels.fourier_sums.py_func(turns - np.floor(turns), weights, offsets, out)
    out[:, turns.shape[1] :] *= -1  # the sign of the sine


@pytest.mark.parametrize(("kernel", "right"), [(kernels.fourier_sums, True), (wrong_fourier_sums, False)])
def test_fourier_sums(kernel, right):
    rng = np.random.default_rng(0)
    turns = rng.normal(0, 3, (20, 5)).astype(np.float32)
    weights, offsets = rng.random(20).astype(np.float32), np.array([0, 3, 4, 20])
    out = np.empty((3, 10), np.float32)
    kernel(turns, weights, offsets, out)
    assert np.allclose(out, fourier_reference(turns.astype(float), weights, offsets), atol=1e-5) == right


def test_histogram_and_scaling_kernels():
    rng = np.random.default_rng(0)
    found, weights = rng.integers(0, 4, 12), rng.random(12).astype(np.float32)
    out = np.zeros((2, 4), np.float32)
    kernels.histogram_sums(found, weights, np.array([0, 5, 12]), out)
    np.testing.assert_allclose(out[1], np.bincount(found[5:], weights[5:], 4), rtol=1e-6)
    scores = rng.normal(0, 20, (6, 4)).astype(np.float32)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = scores.copy()
    kernels.scale_to_sum(scores, np.full(6, 2, np.float32))
    np.testing.assert_allclose(scores, 2 * p / p.sum(axis=1, keepdims=True), rtol=1e-5)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bags", "said"),
    [
        ([np.ones((2, 2)), np.ones((0, 2))], "empty bags: 1"),
        ([np.ones((2, 2)), np.ones((3, 3))], "bag 1: has 3 covariates, bag 0 has 2"),
        ([np.ones((2, 2)), np.ones(2)], "bag 1: must be"),
        ([np.ones((2, 2)), np.full((1, 2), np.nan)], "in bag 1"),
        ([], "no bags"),
    ],
)
def test_bad_bags_are_named(bags, said):
    with pytest.raises(DataError, match=said):
        RandomFourierEmbedding(2).fit(bags)


def test_other_bad_input(fitted):
    with pytest.raises(DataError, match="have 2 covariates, this embedding has 3"):
        fitted.transform([np.ones((2, 2))])
    with pytest.raises(DataError, match="bag 1: all weights are zero"):
        fitted.transform(Bags(np.ones((3, 3)), [0, 2, 3], weights=[1, 1, 0]))
    with pytest.raises(DataError, match="2 values for 1 bag"):
        as_bags([np.ones((2, 2))], [1.0, 2.0])
    for wrong, said in ((MomentEmbedding(order=3), "order"), (RandomFourierEmbedding(2, bandwidth=-1), "bandwidth")):
        with pytest.raises(ConfigError, match=said):
            wrong.fit([np.ones((2, 2))])


def test_weights_of_bags_and_instances_without_weight():
    bags = Bags(np.arange(6.0)[:, None], [0, 1, 4, 6], weights=np.arange(1.0, 7))
    assert truncate_bags(bags, 9) is bags
    assert base.total_weights(bags).tolist() == [1, 9, 11]
    assert base.total_weights(Bags(bags.X, bags.offsets)).tolist() == [1, 3, 2]
    some = Bags(bags.X, bags.offsets, weights=np.array([1.0, 0, 1, 0, 1, 1]))
    assert base.sample_instances(some, 5, "s")[:, 0].tolist() == [0, 2, 4, 5]  # nobody of weight 0
    assert set(base.sample_instances(some, 2, "s")[:, 0].tolist()) < {0, 2, 4, 5}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_keep_their_precision(kind):
    assert as_bags([np.zeros((2, 1), kind), np.ones((1, 1), kind)]).X.dtype == kind


def test_normalised_fisher_vectors():
    """The power keeps signs; vectors of length 1 keep directions; a bag at the mixture's mean has no direction."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(m, 1, (40, 2)) for m in (-1, 0, 2)]
    plain = FisherVectorEmbedding(3, random_state=0).fit(bags)
    z = plain.transform(bags).astype(float)
    root = FisherVectorEmbedding(3, power=0.5, random_state=0).fit(bags).transform(bags)
    np.testing.assert_allclose(root, np.sign(z) * np.sqrt(abs(z)), rtol=1e-4, atol=1e-5)
    unit = FisherVectorEmbedding(3, power=0.5, unit_norm=True, random_state=0).fit(bags).transform(bags)
    np.testing.assert_allclose(unit, root / np.linalg.norm(root, axis=1, keepdims=True), rtol=1e-5)
    with pytest.raises(ConfigError, match="power"):
        FisherVectorEmbedding(3, power=0).fit(bags)
