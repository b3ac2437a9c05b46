"""What holds for any records: encodings, aggregates, posteriors, clusters, releases. Examples are the same in every run."""

import itertools
import math
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observed import learners

from agglearn.encoding import CategoricalEncoder, FeatureMap, FrameEncoder, TargetEncoder
from agglearn.encoding.binned import BinnedEncoder, EqualWidth, Quantiles
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.levels import UNSEEN
from agglearn.observations import Bags, ContingencyTables, LabelSums
from agglearn.observations.bags import apportion
from agglearn.observations.consistency import clip_tables, project_tables
from agglearn.observations.halves import add_sums, add_tables
from agglearn.observations.release import release_bag_counts, release_tables
from agglearn.privacy import draw_seeded
from agglearn.privacy.calibration import gaussian_delta
from agglearn.privacy.mechanisms import MECHANISMS
from agglearn.proportions import cardinality_posterior
from agglearn.saving import Saved
from agglearn.vocabulary import FrequencyQuantizer, Quantizer

FEW = settings(max_examples=15, deadline=None, derandomize=True)
TEXT = st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "", " a", "1", "missing"]), st.text(max_size=3))
NUMBER = st.one_of(st.none(), st.integers(-20, 20), st.floats(-1e6, 1e6, allow_nan=False))
BITS = st.lists(st.integers(0, 1), min_size=4, max_size=40)


def column(values, name="f") -> pd.Series:
    return pd.Series(values, name=name, dtype=object)


def frame_of(bits, data, features=2) -> tuple[pd.DataFrame, np.ndarray]:
    """Records with both labels and few values."""
    y = np.array([0, 1, *bits], np.int8)
    drawn = st.lists(st.sampled_from("pqrs"), min_size=len(y), max_size=len(y))
    return pd.DataFrame({f"f{i}": data.draw(drawn) for i in range(features)}), y


def reloaded(value: Saved) -> Saved:
    """A saved object, read again."""
    with TemporaryDirectory() as folder:
        value.save(folder)
        return type(value).load(folder)


# -- encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(TEXT, min_size=1, max_size=20), st.lists(TEXT, max_size=5))
@FEW
def test_categories(values, others):
    encoder = CategoricalEncoder.fit(column(values))
    codes = encoder.encode(column(values)).tolist()
    for (v, k), (w, m) in itertools.product(zip(values, codes, strict=True), repeat=2):
        assert (k == m) == (v == w)
    assert sorted(set(codes)) == list(range(encoder.size))
    for v, k in zip(values, codes, strict=True):
        assert v is None if encoder.has_missing and k == encoder.size - 1 else encoder.labels[k] == v
    for v, k in zip(others, encoder.encode(column(others)), strict=True):
        assert k == (codes[values.index(v)] if v in values else UNSEEN)
    assert reloaded(encoder) == encoder


@given(
    st.lists(NUMBER, min_size=1, max_size=30),
    st.lists(NUMBER, min_size=1, max_size=5),
    st.sampled_from([Quantiles(4), EqualWidth(4)]),
)
@FEW
def test_bins(values, others, how):
    if all(v is None for v in values):
        return
    encoder = BinnedEncoder.fit(column(values), how)
    codes = encoder.encode(column(values)).tolist()
    assert sorted(set(codes)) == list(range(encoder.size))  # every bin was seen
    for v, k in zip([*values, *others], [*codes, *encoder.encode(column(others))], strict=True):
        if v is None:
            assert k == (encoder.size - 1 if None in values else UNSEEN)
        else:
            assert k == sum(e < v for e in encoder.edges)


@given(st.lists(TEXT, min_size=1, max_size=20), st.integers(1, 9))
@FEW
def test_buckets(values, buckets):
    encoder = HashedEncoder.fit(column(values), buckets)
    codes = encoder.encode(column(values)).tolist()
    assert all(0 <= k < encoder.size for k in codes)
    assert [k == buckets for k in codes] == [v is None for v in values]
    assert codes == [int(encoder.encode(column([v]))[0]) for v in values]  # each by itself


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0, 1), st.floats(-3, 3)), min_size=1, max_size=20), st.floats(0.05, 0.95),
       st.integers(3, 12))  # fmt: skip
@FEW
def test_target_encodings_by_hand(values, base, modalities):
    """Rates lie between 0 and 1 whatever the noise, rare values are drawn to the base rate, and few modalities result."""
    counts = np.array([n for n, *_ in values])
    sums = np.array([n * share + noise for n, share, noise in values])
    found = TargetEncoder.from_counts("f", tuple(f"v{i}" for i in range(len(values))), counts, sums, base, modalities)
    assert found.size <= modalities
    rates = {}
    for k, n, c in zip(found.codes, counts, sums, strict=True):
        rates.setdefault(k, []).append((min(max(c, 0), n) + 20 * base) / (n + 20))
    assert sorted(rates) == list(range(1, found.size))
    for k, of in rates.items():
        assert found.labels[k].rpartition(" ")[2] == f"{np.mean(of):.3g}"
        assert 0 <= min(of) <= max(of) <= 1


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=20), st.floats(-5, 0), st.floats(1, 9))
@FEW
def test_scaled_coordinates_stay_in_their_range(values, low, high):
    frame = pd.DataFrame({"x": values, "k": ["u", "v"] * (len(values) // 2) + ["u"] * (len(values) % 2)})
    encoder = FrameEncoder((BinnedEncoder("x", (0.0,)), CategoricalEncoder.fit(frame["k"])))
    mapped = FeatureMap.fit("scaled", encoder, frame, {"x": (low, high)})
    x = mapped.matrix(frame).toarray()
    np.testing.assert_allclose(x[:, 0], [min(max((v - low) / (high - low), 0), 1) for v in values])
    assert (x >= 0).all()
    assert (x <= 1).all()
    for order in (1, 2):
        assert (x**order).sum(axis=1).max() <= mapped.largest(order)
    assert (x[:, 1:3].sum(axis=1) == 1).all()
    assert (x[:, -1] == 1).all()


# -- aggregates -------------------------------------------------------------------------------------------------------


@given(BITS, st.data())
@FEW
def test_aggregates_of_parts_add_up(bits, data):
    frame, y = frame_of(bits, data)
    encoder = FrameEncoder.fit(frame)
    part = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    if not (0 < y[part].sum() < part.sum() and 0 < y[~part].sum() < (~part).sum()):
        return
    codes = encoder.encode(frame)
    whole = ContingencyTables.from_codes(encoder, codes, y)
    parts = [ContingencyTables.from_codes(encoder, codes[p], y[p]) for p in (part, ~part)]
    assert add_tables(*parts).digest == whole.digest
    mapped = FeatureMap.fit("quadratic", encoder, frame)
    rows = (part, ~part, np.ones(len(y), bool))
    sums = [LabelSums.from_map(mapped, frame[p].reset_index(drop=True), y[p]) for p in rows]
    np.testing.assert_allclose(add_sums(*sums[:2]).sums, sums[2].sums)
    order = data.draw(st.permutations(range(len(y))))
    assert ContingencyTables.from_codes(encoder, codes[list(order)], y[list(order)]).digest == whole.digest


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=6), st.integers(0, 50))
@FEW
def test_whole_counts_are_next_to_their_shares(shares, size):
    shares = np.array(shares)
    counts = apportion(shares, size)
    exact = shares / shares.sum(axis=1, keepdims=True) * size
    assert (counts.sum(axis=1) == size).all()
    assert (abs(counts - exact) < 1 + 1e-9).all()
    for row, wanted in zip(counts, exact, strict=True):  # who is rounded up has the larger remainder
        up, down = (wanted[row > wanted] % 1, wanted[row <= wanted] % 1)
        assert not len(up) or not len(down) or up.min() >= down.max() - 1e-9


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
@FEW
def test_bags_of_groups_in_any_order(groups, data):
    x = np.arange(float(len(groups)))[:, None]
    counts = {g: min(groups.count(g), g) for g in dict.fromkeys(groups)}
    bags = Bags.from_groups(x, groups, counts)
    for b, g in enumerate(counts):
        inside = bags.X[bags.offsets[b] : bags.offsets[b + 1], 0].tolist()
        assert inside == [i for i, h in enumerate(groups) if h == g]
        assert bags.counts[b].tolist() == [groups.count(g) - counts[g], counts[g]]
    which = data.draw(st.lists(st.integers(0, len(bags) - 1), min_size=1, max_size=5))
    part = bags.take(which)
    assert part.counts.tolist() == bags.counts[which].tolist()
    assert part.X[:, 0].tolist() == [v for b in which for v in bags.X[bags.offsets[b] : bags.offsets[b + 1], 0]]


# -- posteriors and clusters ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.02, 0.98), min_size=2, max_size=9), st.data())
@FEW
def test_posteriors_by_enumeration(p, data):
    z = data.draw(st.integers(0, len(p)))
    mass, expected = 0.0, np.zeros(len(p))
    for y in itertools.product((0, 1), repeat=len(p)):
        if sum(y) == z:
            weight = math.prod(q if v else 1 - q for q, v in zip(p, y, strict=True))
            mass, expected = mass + weight, expected + weight * np.array(y)
    np.testing.assert_allclose(cardinality_posterior(p, z), expected / mass, rtol=1e-8, atol=1e-12)


QUANTIZERS = [q for q in learners() if issubclass(q, Quantizer) and q is not Quantizer]


@pytest.mark.parametrize("kind", QUANTIZERS, ids=lambda k: k.__name__)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=4, max_size=14), st.data())
@settings(max_examples=8, deadline=None, derandomize=True)
def test_clusters(kind, values, data):
    n = np.array([a for a, _ in values])
    c = np.minimum([b for _, b in values], n)
    if not 0 < c.sum() < n.sum():
        return
    budget = data.draw(st.integers(1, len(n)))
    order = np.array(data.draw(st.permutations(range(len(n)))))
    found, other = kind(budget, random_state=0).fit(n, c), kind(budget, random_state=0).fit(n[order], c[order])
    labels = found.labels_
    assert found.n_clusters_ == len(set(labels)) <= budget
    assert sorted(set(labels)) == list(range(found.n_clusters_))
    assert found.unseen_ in labels
    clusters = [(n[labels == k].sum(), c[labels == k].sum()) for k in range(found.n_clusters_)]
    rest = [abs(b / a - c.sum() / n.sum()) for a, b in clusters]
    assert rest[found.unseen_] == pytest.approx(min(rest))
    information = lambda groups: sum(  # noqa: E731
        q / n.sum() * math.log(q * n.sum() / (a * m))
        for a, b in groups
        for q, m in ((b, c.sum()), (a - b, n.sum() - c.sum()))
        if q
    )
    assert found.information_ == pytest.approx(information(clusters), abs=1e-12)
    assert found.information_ + found.information_loss_ == pytest.approx(information(zip(n, c, strict=True)), abs=1e-12)
    if kind is FrequencyQuantizer:
        return
    by_rate = labels[np.argsort(c / n, kind="stable")]
    assert (np.diff(by_rate) >= 0).all()  # intervals of rate, numbered upwards
    for i, j in itertools.combinations(range(len(n)), 2):
        assert c[i] * n[j] != c[j] * n[i] or labels[i] == labels[j]
    assert other.information_ == pytest.approx(found.information_, abs=1e-12)


# -- releases ---------------------------------------------------------------------------------------------------------


@given(
    BITS,
    st.data(),
    st.sampled_from([m for m in MECHANISMS if m != "discrete_gaussian"]),
    st.sampled_from(["record", "label"]),
    st.sampled_from(["uniform", "cells"]),
)
@FEW
def test_releases(bits, data, mechanism, adjacency, split):
    frame, y = frame_of(bits, data, 3)
    exact = ContingencyTables.from_records(frame.assign(y=y), "y")
    delta = None if mechanism.endswith("laplace") else 1e-3
    how = {"mechanism": mechanism, "adjacency": adjacency, "split": split, "draw": draw_seeded(1)}
    noisy = release_tables(exact, 2.0, delta, **how)
    assert set(noisy.tables) == set(exact.tables)
    assert not noisy.noise.private
    for key, table in noisy.tables.items():
        assert len(table.cells) == math.prod(table.shape)  # empty cells have noise too
        d, _ = table.dense()
        if adjacency == "label":
            np.testing.assert_array_equal(d, exact.dense(*key)[0])
        if mechanism.startswith("discrete"):
            assert (table.counts == np.round(table.counts)).all()
    cut = clip_tables(noisy)
    for table in cut.tables.values():
        assert ((table.label_sums >= 0) & (table.label_sums <= table.counts)).all()
    mended = project_tables(noisy)
    for (i, j), table in ((k, t) for k, t in mended.tables.items() if len(k) == 2):
        for part, one, two in zip(table.dense(), mended.dense(i), mended.dense(j), strict=True):
            np.testing.assert_allclose(part.sum(axis=1), one, atol=1e-6)
            np.testing.assert_allclose(part.sum(axis=0), two, atol=1e-6)
    again = project_tables(replace(mended, noise=noisy.noise))
    possible = 1 < mended.positives < mended.total - 1  # else totals were moved to what is possible
    for key in mended.tables if possible else ():
        np.testing.assert_allclose(again.dense(*key), mended.dense(*key), atol=1e-6)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.floats(0.1, 3))
@FEW
def test_noisy_counts_of_bags_are_possible(positives, epsilon):
    bags = Bags(np.zeros((4 * len(positives), 1)), np.arange(0, 4 * len(positives) + 1, 4), np.array(positives))
    found = release_bag_counts(bags, epsilon, draw=draw_seeded(0))
    assert (found.counts.sum(axis=1) == 4).all()
    assert (found.counts >= 0).all()
    assert release_bag_counts(bags, 60.0, draw=draw_seeded(0)).counts[:, 1].tolist() == positives  # hardly any noise


@given(st.floats(0.05, 5), st.floats(1e-8, 0.1), st.floats(0.5, 20), st.integers(1, 40))
@FEW
def test_the_noise_of_label_sums_keeps_its_promise(epsilon, delta, weight, n):
    """b = Δ₁/ε and σ from Δ₂, with weights, and no σ smaller."""
    x = np.column_stack([np.linspace(-1, 1, n), np.linspace(0, 2, n)])
    weights = np.full(n, weight)
    sums = LabelSums.from_records(x, np.arange(n) % 2, bounds=(-1, 2), weights=weights)
    assert sums.sensitivity(1) == pytest.approx(weight * 5)
    assert sums.sensitivity(2) == pytest.approx(weight * 3)
    norms = weight * np.sqrt((x**2).sum(axis=1) + 1)
    assert sums.sensitivity(2, "features") == pytest.approx(norms.max())
    assert sums.sensitivity(1, "features") == pytest.approx(weight * (abs(x).sum(axis=1) + 1).max())
    laplace = sums.private(epsilon, mechanism="laplace", draw=draw_seeded(0))
    assert laplace.noise.scale == pytest.approx(weight * 5 / epsilon)
    assert laplace.noise_scale == pytest.approx(math.sqrt(2) * weight * 5 / epsilon)
    gauss = sums.private(epsilon, delta, draw=draw_seeded(0))
    assert gaussian_delta(gauss.noise.scale, weight * 3, epsilon) <= delta * (1 + 1e-6)
    assert gaussian_delta(gauss.noise.scale * 0.999, weight * 3, epsilon) > delta
