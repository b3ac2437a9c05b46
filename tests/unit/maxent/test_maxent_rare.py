"""Fixed weights of rare cells: the same chains as with all weights, near the exact optimum, in less memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.errors import DataError
from agglearn.maxent import ExactMaxEntClassifier, MaxEntClassifier, NoiseAwareMaxEntClassifier, model
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import RARE, WeightIndex, needed_bytes
from agglearn.observations import ContingencyTables
from agglearn.observations.gaussian_noise import with_gaussian_noise


def draw_skewed(n: int, sizes: tuple[int, ...], seed: int = 0) -> ContingencyTables:
    """Dependent features, the k-th value of each about as frequent as 1/k, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    ranks = [(size + 1) ** ((hidden + rng.random(n) / 2) % 1) for size in sizes]
    codes = np.stack([np.minimum(r.astype(np.int32) - 1, s - 1) for r, s in zip(ranks, sizes, strict=True)], axis=1)
    names = (CategoricalEncoder(f"f{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes))
    label = (rng.random(n) < 0.2 + 0.5 * hidden).astype(int)
    return ContingencyTables.from_codes(FrameEncoder(tuple(names)), codes, label)


@pytest.fixture(scope="module")
def skewed():
    """A third of the cells are rare."""
    return draw_skewed(200, (6, 7, 9))


@pytest.fixture(scope="module")
def indexes(skewed):
    return WeightIndex.from_tables(skewed), WeightIndex.from_tables(skewed, fixed_by=1.5)


def test_trained_cells_are_those_with_records_seen_or_expected(skewed, indexes):
    every, some = indexes
    counts = np.concatenate(every.marginals)
    expected = counts[every.rows] * counts[every.columns] / skewed.total
    trained = every.single | (np.maximum(every.d, expected) >= RARE)
    assert 0.2 < np.mean(~trained) < 0.7
    np.testing.assert_array_equal(some.number[trained], np.arange(trained.sum()))
    assert (some.number[~trained] == trained.sum()).all()
    for name in ("rows", "columns", "d", "c"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name)[trained])


def test_fixed_mu_is_the_optimum_of_a_cell_alone(skewed, indexes):
    some = indexes[1]
    for i, j, mu in some.fixed_mu():
        expected = np.outer(some.marginals[i], some.marginals[j]) / skewed.total
        gradient = expected * np.exp(mu.astype(float)) + 2 * 1.5 * mu - skewed.dense(i, j)[0]
        np.testing.assert_allclose(gradient, 0, atol=1e-4)


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_chains_are_those_of_the_whole_weights(indexes, sampler):
    every, some = indexes
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, 0.3, len(some.d)).astype(np.float32) for _ in range(2)]
    matrices = some.matrix(weights[0], fixed=True), some.matrix(weights[1])
    whole = [matrix[every.rows, every.columns] for matrix in matrices]
    assert (whole[0][some.number == len(some.rows)] != 0).any()
    assert (whole[1][some.number == len(some.rows)] == 0).all()
    made = [Chains(index, 500, -0.5, seed=1, sampler=sampler) for index in indexes]
    for chains, values in zip(made, (whole, weights), strict=True):
        chains.set_weights(*values)
    for step in range(3):
        (d, c), (d_some, c_some) = (chains.sweep(step) for chains in made)
        np.testing.assert_array_equal(made[0].positions, made[1].positions)
        np.testing.assert_array_equal(d[some.number < len(some.rows)], d_some)
        np.testing.assert_array_equal(c[some.number < len(some.rows)], c_some)


def test_the_model_is_near_the_exact_optimum_of_all_weights(skewed, good):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({f"f{i}": rng.integers(0, size, 300).astype(str) for i, size in enumerate((6, 7, 9))})
    settings = {"l2_theta": (2.0, 16.0), "l2_mu": 1.0}
    exact = ExactMaxEntClassifier(**settings).fit(skewed).predict_proba(rows)[:, 1]
    trained, fixed = (MaxEntClassifier(**good | settings, rare_cells=how).fit(skewed) for how in ("train", "fixed"))
    errors = [np.abs(m.predict_proba(rows)[:, 1] - exact).mean() for m in (trained, fixed)]
    assert errors[1] < errors[0] + 0.01
    assert errors[1] < 0.02


def test_a_saved_model_with_fixed_weights_predicts_the_same(skewed, tmp_path):
    rows = pd.DataFrame({"f0": ["0", "3"], "f1": ["1", "6"], "f2": ["8", "0"]})
    fitted = MaxEntClassifier(100, max_iter=3, random_state=0, rare_cells="fixed").fit(skewed)
    fitted.save(tmp_path / "model")
    again = MaxEntClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(rows), fitted.predict_proba(rows))


def test_weights_are_fixed_by_themselves_where_cells_are_many(skewed, monkeypatch):
    settings = {"n_chains": 50, "max_iter": 2, "random_state": 0}
    assert MaxEntClassifier(**settings).fit(skewed).mu_.dtype == np.float64
    cells = 6 + 7 + 9 + 6 * 7 + 6 * 9 + 7 * 9
    for least, kind in ((cells, np.float32), (cells + 1, np.float64)):
        monkeypatch.setattr(model, "FIXED_FROM", least)
        assert MaxEntClassifier(**settings).fit(skewed).mu_.dtype == kind
        assert MaxEntClassifier(**settings, rare_cells="train").fit(skewed).mu_.dtype == np.float64
    monkeypatch.setattr(model, "FIXED_FROM", 1)
    assert MaxEntClassifier(**settings, l2_mu=0).fit(skewed).mu_.dtype == np.float64
    assert NoiseAwareMaxEntClassifier(**settings).fit(with_gaussian_noise(skewed, 2.0, 0)).mu_.dtype == np.float64


def test_fixed_weights_are_refused_where_they_mean_nothing(skewed, records):
    hashed = ContingencyTables.from_records(records, "label", cross_buckets=5)
    refused = [
        (with_gaussian_noise(skewed, 2.0, 0), {}, "noise", NoiseAwareMaxEntClassifier),
        (hashed, {}, "hashed", MaxEntClassifier),
        (skewed, {"engine": "jax"}, "jax", MaxEntClassifier),
        (skewed, {"l2_mu": 0.0}, "l2_mu", MaxEntClassifier),
    ]
    for tables, settings, word, kind in refused:
        with pytest.raises(DataError, match=f"rare_cells='fixed'.*{word}.*train"):
            kind(rare_cells="fixed", **settings).fit(tables)


def test_memory_of_wide_tables_follows_the_cells_that_are_not_rare(monkeypatch):
    """Training takes 69 MB for pairs of modalities and 9 MB for 2.2M cells. With all weights trained it takes 540 MB."""
    wide, settings = draw_skewed(20_000, (600,) * 4), {"n_chains": 200, "max_iter": 3, "random_state": 0}
    monkeypatch.setattr(model, "FIXED_FROM", 1_000_000)
    MaxEntClassifier(**settings, rare_cells="fixed").fit(draw_skewed(50, (3, 3)))  # compiles
    tracemalloc.start()
    try:
        MaxEntClassifier(**settings).fit(wide)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6
    assert 0.5 * peak < needed_bytes(wide, fixed=True) < 1.2 * peak
    assert needed_bytes(wide) > 500e6
