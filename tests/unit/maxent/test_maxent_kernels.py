"""Each kernel against plain NumPy, and a wrong version of each that the same check must reject."""

import itertools

import numpy as np
import pytest
from numba import njit

from agglearn.linear.kernels import blocks_loss, rows_loss
from agglearn.maxent import kernels
from agglearn.maxent.engines.numba_chains import Chains, alias_table, aligned_zeros
from agglearn.maxent.simd import load, store
from agglearn.maxent.weight_index import WeightIndex


@njit
def _exp_all(x, out):
    for i in range(x.size):
        out[i] = kernels.exp32(x[i])


def test_exp32_is_accurate_and_never_zero_times_infinite():
    x = -np.concatenate([np.linspace(0, 87, 200_001), [88, 1e3, 1e30, np.inf]]).astype(np.float32)
    out = np.empty_like(x)
    _exp_all(x, out)
    exact = np.exp(x[:-4].astype(float))
    assert (np.abs(out[:-4] / exact - 1) < 5e-7 - 1e-7 * x[:-4]).all()
    assert (out[-4:] >= 0).all()
    assert (out[-4:] < 1e-37).all()


def check_uniform(draw):
    u = draw(100_000)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.bincount((u * 20).astype(int), minlength=20)
    assert np.sum((counts - 5000) ** 2 / 5000) < 60  # chi-square, 19 degrees: p < 1e-5
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.015


@njit
def _stream_of_one_chain(n):
    out, state = np.empty(n, np.float32), kernels.stream(np.uint64(5), 7)
    for i in range(n):
        state += np.uint64(0x9E3779B97F4A7C15)
        out[i] = kernels.uniform(state)
    return out


@njit
def _first_of_every_chain(n):
    out = np.empty(n, np.float32)
    for i in range(n):
        out[i] = kernels.uniform(kernels.stream(np.uint64(5), i))
    return out


def test_random_numbers_are_uniform_along_and_across_chains():
    check_uniform(_stream_of_one_chain)
    check_uniform(_first_of_every_chain)
    with pytest.raises(AssertionError):
        check_uniform(lambda n: np.sqrt(_stream_of_one_chain(n)))


LAW = (0.5, 0.2, 0.0, 0.3)


def check_draw(draw, p=LAW, height=0.0, parts=1):
    """Every lane inverts its own law, here p shifted by one place from lane to lane, times exp(height)."""
    laws = np.stack([np.roll(p, lane) for lane in range(kernels.LANES)], axis=1)
    logits = np.full((8, kernels.LANES), 1e4, np.float32)  # places beyond the law are not read
    with np.errstate(divide="ignore"):
        logits[1 : len(p) + 1] = np.maximum(np.log(laws) + height, -1e30)
    rng, n = np.random.default_rng(0), 10_000
    strata = [(rng.permutation(n) + 0.5) / n for _ in range(2 * parts)]
    drawn, out = np.empty((n, kernels.LANES)), np.zeros((3, kernels.LANES), np.float32)
    for i in range(n):
        room, bounds = logits.copy(), np.linspace(0, len(p), parts + 1).astype(int)
        for part, (low, high) in enumerate(itertools.pairwise(bounds)):
            u, v = (np.full(kernels.LANES, s[i], np.float32) for s in strata[2 * part : 2 * part + 2])
            arrays = room, u, v, out
            draw(low + 1, high + 1, low, *(array.ctypes.data for array in arrays))
        drawn[i] = out[2]
    for lane in range(kernels.LANES):
        counts = np.bincount(drawn[:, lane].astype(int), minlength=len(p))
        assert np.allclose(counts / n, laws[:, lane], atol=2e-4 if parts == 1 else 0.025)  # 5 deviations


@njit
def _draw(low, high, code, logits, u, v, drawn):
    kernels.draw(logits, low, high, code, u, v, drawn)


@njit
def _draw_by_one_number(low, high, code, logits, u, v, drawn):
    kernels.draw(logits, low, high, code, u, u, drawn)


def test_draw_inverts_the_distribution():
    check_draw(_draw)
    check_draw(_draw, (1.0,))
    check_draw(_draw, height=300.0)
    check_draw(_draw, parts=2)
    check_draw(_draw, parts=4)
    with pytest.raises(AssertionError):
        check_draw(_draw_by_one_number, parts=2)


@njit
def _exp_lanes(x, out, size):
    for i in range(0, size, kernels.LANES):
        store(out, i, kernels.exp_lanes(load(x, i)))


def test_lanes_compute_what_scalars_do():
    x = -np.random.default_rng(0).exponential(30, 80_000).astype(np.float32)
    side_by_side, one_by_one = np.empty_like(x), np.empty_like(x)
    _exp_lanes(x.ctypes.data, side_by_side.ctypes.data, x.size)
    _exp_all(x, one_by_one)
    assert np.allclose(side_by_side, one_by_one, rtol=1e-6, atol=0)


@pytest.fixture(scope="module")
def layout(tables):
    return WeightIndex.from_tables(tables)


@pytest.fixture(scope="module")
def weights(layout):
    rng = np.random.default_rng(3)
    return rng.normal(size=(2, len(layout.rows))) * 0.7


def score(layout, values, x):
    """φ(x)·values for positions x, cell by cell."""
    active = np.isin(layout.rows, x) & np.isin(layout.columns, x)
    return values[active].sum()


@njit
def _log_weights(weights, line, rows, n_rows, first, k, stop, low, high, sums, out):
    kernels.add_outside(weights, line, rows, n_rows, first, stop, high, sums)
    kernels.add_inside(weights, line, rows, first, k, stop, low, high, sums, out)


def check_spread(spread, layout, weights):
    """The field of every feature is what eq. 1 gives when that feature alone is changed."""
    mu, theta = weights
    chains = Chains(layout, 1, -0.3, seed=0)
    spread(mu, theta, layout.rows, layout.columns, layout.padded, chains.weights, chains.theta)
    rng, space, label = np.random.default_rng(0), chains.space, chains.weights.shape[1] // 2
    codes = rng.integers(layout.sizes[:, None], size=(len(layout.sizes), kernels.LANES)).astype(np.int32)
    y = np.arange(kernels.LANES) % 2
    codes = np.vstack([codes, kernels.LINE * label * y]).astype(np.int32)
    group, z = layout.offsets + codes[:-1].T, np.empty(kernels.LANES, np.float32)
    cells = np.empty((layout.n_tables, kernels.LANES), np.uint32)
    kernels.find_cells(codes.ctypes.data, space.tables.ctypes.data, space.number, cells)
    kernels.logits(cells, chains.theta, np.float32(-0.3), z)
    assert np.allclose(z, [score(layout, theta, x) - 0.3 for x in group], atol=1e-5)
    rows, sums, out = np.empty_like(codes), *np.empty((2, kernels.LINE, kernels.LANES), np.float32)
    kernels.find(codes.ctypes.data, space.rows.ctypes.data, len(rows), rows.ctypes.data)
    at_weights, at_rows, at_sums, at_out = (array.ctypes.data for array in (chains.weights, rows, sums, out))
    found = [np.empty((size, kernels.LANES)) for size in layout.sizes]
    for number, (some, end) in enumerate(zip(space.lines, space.lines[1:], strict=False)):
        first, stop = space.pieces[some, 0], space.pieces[end - 1, 0] + 1
        for k, low, high, code in space.pieces[some:end]:
            line = number * 2 * label * kernels.LINE
            _log_weights(at_weights, line, at_rows, len(rows), first, k, stop, low, high, at_sums, at_out)
            found[space.order[k]][code : code + high - low] = out[low:high]
    for i, (offset, size) in enumerate(zip(layout.offsets, layout.sizes, strict=True)):
        for lane, x in enumerate(group):
            others = [np.where(np.arange(len(x)) == i, offset + m, x) for m in range(size)]
            exact = np.array([score(layout, mu + y[lane] * theta, other) for other in others])
            assert np.allclose(found[i][:, lane] - found[i][0, lane], exact - exact[0], atol=1e-4)


def _one_half_only(mu, theta, rows, columns, padded, weights, theta32):
    kernels.spread(mu, theta, rows, columns, padded, weights, theta32)
    line, at = np.divmod(padded, kernels.LINE)
    for k in np.flatnonzero(rows != columns):
        weights[line[rows[k]], columns[k] :: weights.shape[1] // 2, at[rows[k]]] = 0


def test_spread_conditional_and_logit_are_the_model(layout, weights):
    check_spread(kernels.spread, layout, weights)
    with pytest.raises(AssertionError):
        check_spread(_one_half_only, layout, weights)


def test_conditional_of_a_wide_feature(wide_tables):
    wide = WeightIndex.from_tables(wide_tables)
    assert wide.sizes.max() > kernels.LINE
    check_spread(kernels.spread, wide, np.random.default_rng(3).normal(size=(2, len(wide.rows))))


def check_statistics(sweep, layout, weights):
    """Counts and label sums are those of the chains as they stand after the sweep."""
    chains = Chains(layout, 500, -0.3, seed=0)
    chains.set_weights(*weights)
    counts, sums = sweep(chains)
    d, c = np.zeros(len(layout.rows)), np.zeros(len(layout.rows))
    for x in chains.positions:
        active = np.isin(layout.rows, x) & np.isin(layout.columns, x)
        d += active
        c += active / (1 + np.exp(0.3 - weights[1][active].sum()))
    assert (counts == d).all()
    assert np.allclose(sums, c, atol=500 * 2e-7)


def _counts_before_moving(chains):
    counts = Chains(chains.index, chains.n, -0.3, seed=0)
    counts.weights[:] = 0
    chains.sweep(1)
    return counts.sweep(2)


def test_statistics_of_chains(layout, weights):
    check_statistics(lambda chains: chains.sweep(1), layout, weights)
    check_statistics(lambda chains: chains.sweep(1, n_sweeps=3), layout, weights)
    with pytest.raises(AssertionError):
        check_statistics(_counts_before_moving, layout, weights)


def test_statistics_of_many_segments_add_up(layout, weights, monkeypatch):
    whole, split = (Chains(layout, 1000, -0.3, seed=0) for _ in range(2))
    for chains in (whole, split):
        chains.set_weights(*weights)
    expected = whole.sweep(1)
    monkeypatch.setattr(kernels, "SEGMENT", 300)
    for a, b in zip(expected, split.sweep(1), strict=True):
        assert (a == b).all()


def check_prediction(predict, layout, weights):
    theta, rng = layout.matrix(weights[1]), np.random.default_rng(1)
    x = (layout.offsets + rng.integers(layout.sizes, size=(50, len(layout.sizes)))).astype(np.int32)
    x[:10, 1] = -1
    assert np.allclose(predict(x, theta, 0.25), [score(layout, weights[1], row) + 0.25 for row in x])


def test_predict_logits(layout, weights):
    check_prediction(kernels.predict_logits, layout, weights)
    with pytest.raises(AssertionError):
        check_prediction(lambda x, t, b: kernels.predict_logits(np.maximum(x, 0), t, b), layout, weights)


def check_loss(loss, tables=3):
    rng = np.random.default_rng(0)
    index, counts = rng.integers(0, 9, size=(tables, 40)).astype(np.int32), rng.integers(0, 5, 40).astype(float)
    positives = np.floor(counts * rng.random(40))
    w, out, step = rng.normal(size=10), np.empty(11), 1e-6
    loss(index, counts, positives, w[:9], w[9], out)
    shifts = np.vstack([np.eye(10), -np.eye(10)]) * step
    values = np.empty(20)
    for i, shift in enumerate(shifts):
        moved, scratch = w + shift, np.empty(11)
        loss(index, counts, positives, moved[:9], moved[9], scratch)
        values[i] = scratch[10]
    assert np.allclose(out[:10], (values[:10] - values[10:]) / (2 * step), atol=1e-5)
    z = w[:9][index].sum(axis=0) + w[9]
    assert np.isclose(out[10], np.sum(counts * np.log1p(np.exp(z)) - positives * z))


def _whole(index, counts, positives, w, b, out):
    rows_loss(index, counts, positives, w, b, np.empty(len(counts)), out)


def _doubled(index, counts, positives, w, b, out):
    _whole(index, counts, positives, w, b, out)
    out[:-1] *= 2


def _in_parts(index, counts, positives, w, b, out):
    parts = np.empty((8, len(out)))
    blocks_loss(index, counts, positives, w, b, np.empty(len(counts)), parts)
    out[:] = parts.sum(axis=0)


def test_logistic_loss_and_its_gradient():
    check_loss(_whole)
    check_loss(_whole, tables=4)
    check_loss(_in_parts)
    with pytest.raises(AssertionError):
        check_loss(_doubled)


def test_logistic_loss_of_extreme_scores_is_finite():
    out = np.empty(3)
    _whole(np.zeros((1, 2), np.int32), np.ones(2), np.array([0.0, 1.0]), np.array([800.0]), 0.0, out)
    assert np.allclose(out, [1.0, 1.0, 800.0])


def test_weights_begin_where_vectors_do():
    """NumPy alone promises 16 bytes. Sizes on both sides of where it asks the system for whole pages."""
    for shape in ((2, 3, 8), (2, 30, 64), (2, 300, 1024), (2, 301, 1000)):
        zeros = aligned_zeros(*shape)
        assert (zeros.shape, zeros.dtype, zeros.ctypes.data % 64) == (shape, np.float32, 0)
        assert not zeros.any()


def check_alias(table):
    q = np.array([0.5, 0.2, 0.0, 0.3])
    threshold, alias = table(q)
    drawn = threshold / 4
    np.add.at(drawn, alias, (1 - threshold) / 4)
    assert np.allclose(drawn, q)


def test_alias_tables():
    check_alias(alias_table)
    with pytest.raises(AssertionError):
        check_alias(lambda q: (np.ones(4), np.arange(4)))
