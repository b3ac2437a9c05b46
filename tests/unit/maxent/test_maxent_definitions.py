"""Criteria, penalties and steps against their formulas and a few numbers: tables of unequal sides, λs of unequal size for each kind of weight."""

import numpy as np
import pytest

from agglearn.maxent import ExactMaxEntClassifier, MaxEntClassifier, NoiseAwareMaxEntClassifier, pcd_step
from agglearn.maxent.best_pair import fit_pair
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.noise_aware import SHARE, SMOOTH, Gains, find_hidden, gains, posterior_means, variances
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables, NoiseSpec, Table, with_gaussian_noise

# λ of every weight of the fixture's tables, of 2, 3 and 4 values: weights of single features, then those of pairs
LAMBDAS = np.repeat([11.0, 17.0], [9, 26])


def test_posterior_means_stay_possible():
    """Label sums within the posterior count, not within the expected one; counts from 0 on."""
    one = lambda *v: np.array(v, float)  # noqa: E731
    gain = Gains(one(1, 1, 1), one(0, 0, 0), one(0, 0, 0), one(1, 1, 1))
    d, c = posterior_means(one(4, -3, 9), one(6, 2, -1), one(10, 5, 5), one(3, 2, 2), gain)
    assert d.tolist() == [4, 0, 9]
    assert c.tolist() == [4, 0, 0]


def test_variances_of_cells_are_those_of_their_tables(tables):
    """Tables of 2, 3, 4, 6, 8 and 12 cells, each with a scale of its own."""
    scales = {"f0": 1.0, "f1": 2.0, "f2": 3.0, "f0 × f1": 4.0, "f0 × f2": 5.0, "f1 × f2": 6.0, "totals": 7.0}
    noise = NoiseSpec("gaussian", 7.0, 1.0, 1e-5, scales=scales)
    noisy = ContingencyTables(tables.encoder, "label", tables.total, tables.positives, tables.tables, noise)
    expected = np.repeat([1.0, 4, 9, 16, 25, 36], [2, 3, 4, 6, 8, 12])
    for found in variances(noisy):
        np.testing.assert_allclose(found, expected)


def test_steps_of_noise_aware_training(tables):
    """Expectations are averaged; targets are posterior means; each kind's curvature has its own λ and its own gain."""
    noisy = with_gaussian_noise(tables, 9.0, 0)
    model = NoiseAwareMaxEntClassifier(l2_mu=3.0)
    model._l2_theta, model._noise, model._hidden, model._expected = LAMBDAS, variances(noisy), find_hidden(noisy), None
    index, rng = WeightIndex.from_tables(noisy), np.random.default_rng(0)
    m = len(index.d)
    mu, theta = rng.normal(size=(2, m))
    first, now = (rng.uniform(5, 90, m) for _ in range(2))
    share = rng.uniform(0.1, 0.9, m)
    model._gradients(index, (mu, theta), (first, first * share), np.zeros((2, 2, m)))
    found = model._gradients(index, (mu, theta), (now, now * share), np.zeros((2, 2, m)))
    mean = first + SMOOTH * (now - first)
    gain = gains(mean, mean * share, *model._noise)
    d, c = posterior_means(index.d, index.c, now, now * share, gain)
    plain = MaxEntClassifier(l2_mu=3.0)
    plain._l2_theta = LAMBDAS
    index = index.__class__(**{**vars(index), "d": d, "c": c})
    right = plain._gradients(index, (mu, theta), (now, now * share), np.zeros((2, 2, m)))
    np.testing.assert_allclose(found[0], right[0])
    for h, before, of, l2 in zip(found[1], right[1], (gain.dd, gain.cc), (3.0, LAMBDAS), strict=True):
        np.testing.assert_allclose(h, (before - 2 * l2) * np.maximum(of, SHARE) + 2 * l2)


def test_the_exact_optimum_has_the_gradient_of_its_two_penalties(tables):
    """d̂ − d + 2λ_μ μ = 0 and ĉ − c + 2λ_θ θ = 0, for λs of 3, and of 11 (single features) and 17 (pairs)."""
    world, model = Enumeration.from_tables(tables), ExactMaxEntClassifier(3.0, (11.0, 17.0)).fit(tables)
    index = WeightIndex.from_tables(tables)
    mu, theta = (w[index.rows, index.columns] for w in (model.mu_, model.theta_))
    d_hat, c_hat = world.compute_expectations(mu, theta)
    np.testing.assert_allclose(d_hat + 6 * mu, world.d, atol=0.05)
    np.testing.assert_allclose(c_hat + 2 * LAMBDAS * theta, world.c, atol=0.05)
    assert abs(c_hat + 6 * theta - world.c).max() > 1


@pytest.mark.parametrize("l2", [0.5, 4.0])
def test_the_criterion_of_a_pair(l2):
    """Log-likelihood less Σ h/(h + 2λ/3) from the weights, and the records; a cell of a table of two by three is empty."""
    counts, sums = np.array([30.0, 12, 9, 50, 4]), np.array([3.0, 6, 8, 20, 4])
    table = Table((2, 3), np.array([0, 1, 2, 4, 5]), counts, sums)
    (first, second, cells, weights, intercept), found, records = fit_pair(table, l2, 500)
    assert records == counts.sum()
    assert (len(first), len(second), cells.tolist()) == (2, 3, [0, 1, 2, 4, 5])
    z = np.array([intercept + first[k // 3] + second[k % 3] + w for k, w in zip(cells, weights, strict=True)])
    p = 1 / (1 + np.exp(-z))
    likelihood = np.sum(sums * np.log(p) + (counts - sums) * np.log(1 - p))
    h = counts * p * (1 - p)
    assert found == pytest.approx(likelihood - np.sum(h / (h + 2 * l2 / 3)), rel=1e-9)
    residual = counts * p - sums  # the optimum: λ is on all but the intercept
    assert residual.sum() == pytest.approx(0, abs=1e-3)
    np.testing.assert_allclose(residual + 2 * l2 * weights, 0, atol=1e-3)
    by_row = [residual[cells // 3 == i].sum() for i in range(2)]
    np.testing.assert_allclose(by_row + 2 * l2 * first, 0, atol=1e-3)


# -- by hand ----------------------------------------------------------------------------------------------------------


def gradients(d, c, d_hat, c_hat, mu, theta, l2=(3.0, (5.0, 7.0)), rescaled=True, clip=True, both=True):
    out = np.zeros((2, 2, len(mu)))
    arrays = (np.array(v, float) for v in (d, c, d_hat, c_hat, mu, theta))
    pcd_step.gradients(*arrays, l2[0], np.array(l2[1]), rescaled, clip, both, *out.reshape(4, -1))
    return out


def test_gradients_of_weights():
    """Two cells: the model expects more records than there are, and fewer."""
    of = ([10.0, 40.0], [4.0, 10.0], [20.0, 30.0], [9.0, 6.0], [0.5, -1.0], [0.25, 2.0])
    g, h = gradients(*of)
    # 20 − 10 + 2·3·½ and 30 − 40 − 2·3; label sums at equal counts, the larger of d + 1 and d̂ + 1 brought down
    np.testing.assert_allclose(g[0], [20 - 10 + 3.0, 30 - 40 - 6.0])
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 - 10 * 31 / 41 + 28.0])
    np.testing.assert_allclose(h[0], [15 + 6, 35 + 6])
    np.testing.assert_allclose(h[1], [6.5 + 10, 8 + 14])
    g, h = gradients(*of, clip=False, both=False)
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 * 41 / 31 - 10 + 28.0])
    np.testing.assert_allclose(h, [[26, 36], [19, 20]])
    g, _ = gradients(*of, rescaled=False)
    np.testing.assert_allclose(g[1], [9 - 4 + 2.5, 6 - 10 + 28.0])


def test_steps_of_weights():
    weights, velocity, total = np.array([1.0, -999.9]), np.array([0.5, -0.5]), np.zeros(2)
    gradient, curvature, expected = np.array([4.0, 90.0]), np.array([8.0, 10.0]), np.array([2.0, 5.0])
    energy, noise = pcd_step.advance(gradient, curvature, expected, weights, velocity, 0.1, 0.8, total, 2.0, 1000.0)
    assert total.tolist() == [0.5, 2.0]  # 9 is cut to 2
    assert (energy, noise) == pytest.approx((8 * 0.25 + 10 * 4, 2 / 8 + 5 / 10))
    np.testing.assert_allclose(velocity, [0.4 - 0.05, -0.4 - 0.2])
    np.testing.assert_allclose(weights, [1.35, -1000.0])  # no weight is beyond the largest


def test_slices_in_threads_are_the_whole(monkeypatch):
    """21 weights in slices of 4: each is moved once, and sums are over all."""
    rng = np.random.default_rng(0)
    arrays = rng.random((4, 21))
    whole, sliced = ([a.copy() for a in arrays] + [np.zeros(21)] for _ in range(2))
    of_whole = pcd_step.advance(*whole[:4], whole[4], 0.1, 0.8, np.zeros(21), 2.0, 1000.0)
    monkeypatch.setattr(pcd_step, "SLICE", 4)
    of_slices = pcd_step.advance(*sliced[:4], sliced[4], 0.1, 0.8, np.zeros(21), 2.0, 1000.0)
    np.testing.assert_array_equal(whole, sliced)
    np.testing.assert_allclose(of_whole, of_slices)
    assert pcd_step.distance(arrays[0], arrays[1]) == pytest.approx(np.abs(arrays[0] - arrays[1]).sum())
