"""Every release against the definition of differential privacy: what it draws with, for every neighbour of small data.

The exact numbers of two neighbours are compared, each with the noise that the release would add. The largest loss over all neighbours is
what was promised, no more (then it is no guarantee) and no less (then noise is wasted): wrong sensitivities, shares and scales show, by
however little. Tables, bags and weights have different sizes. A release without a row here fails.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from recorded_draws import DELTA, EPSILON, Recorder, loss, promise_of

from agglearn.encoding import CategoricalEncoder, FeatureMap, FrameEncoder
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums, release
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.privacy import MECHANISMS, calibration

FRAME = pd.DataFrame({"a": list("uvuvvuvuvvu"), "b": list("xyzzyxxyzyx"), "c": list("pqrsspqrsqp")})
Y = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0])
ENCODER = FrameEncoder(tuple(CategoricalEncoder.fit(FRAME[name]) for name in FRAME))
NUMBERS = pd.DataFrame({"h": [0.5, -3.0, 2.0, 1.0, 0.25], "w": [1.0, 1.0, 0.5, 0.0, 0.75]})
BOUNDS = {"h": (-3.0, 2.0), "w": (0.0, 1.0)}
HEAVY, LIGHT = np.array([[0.5, 2.0, 0.25, 1.0, 1.5], [0.5, 0.25, 2.0, 1.0, 1.5]])  # the largest record, and another


def labels() -> Iterator[np.ndarray]:
    """The labels, then those with one of them exchanged."""
    yield Y
    for k in range(len(Y)):
        yield np.where(np.arange(len(Y)) == k, 1 - Y, Y)


def records() -> Iterator[np.ndarray]:
    """All rows, then all but one."""
    everything = np.arange(len(Y))
    yield everything
    yield from (np.delete(everything, k) for k in everything)


def tables(rows=slice(None), y=Y, **how) -> ContingencyTables:
    return ContingencyTables.from_codes(ENCODER, ENCODER.encode(FRAME)[rows], y[rows], **how)


def released_tables(adjacency: str, split: str, **how):
    given = [{"rows": rows} for rows in records()] if adjacency == "record" else [{"y": y} for y in labels()]
    for one in (tables(**some, **how) for some in given):
        yield lambda one=one, **given: release_tables(one, adjacency=adjacency, split=split, **given)


def released_bags():
    offsets = np.array([0, 2, 5, 11])
    for y in labels():
        bags = Bags(np.zeros((11, 1)), offsets, np.add.reduceat(y, offsets[:-1]))
        yield lambda bags=bags, **given: release_bag_counts(bags, **given)


def released_counted_bags():
    for y in labels():
        bags = CountedBags.from_records(ENCODER, FRAME, y, 3, np.random.default_rng(0))
        yield lambda bags=bags, **given: release_bag_counts(bags, **given)


def released_flows(nodes: bool, edges: bool):
    """Four persons on paths over three steps and two places, then a fifth on any path."""
    paths = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 1], [1, 0, 0]])
    more = [paths, *(np.vstack([paths, path]) for path in np.ndindex(2, 2, 2))]
    for some in more:
        node = np.array([np.bincount(some[:, t], minlength=2) for t in range(3)], float)
        edge = np.zeros((2, 2, 2))
        for t in range(2):
            np.add.at(edge[t], (some[:, t], some[:, t + 1]), 1)
        flows = FlowCounts(node if nodes else None, edge if edges else None, noise="exact")
        yield lambda flows=flows, **given: release_flow_counts(flows, **given)


def released_sums(kind: str, of: str):
    mapped = FeatureMap.fit(kind, ENCODER, FRAME)
    for y in labels():
        yield lambda y=y, **given: LabelSums.from_map(mapped, FRAME, y).private(sensitivity=of, **given)


def released_numbers(of: str, weights=None, intercept=True, frame=NUMBERS):
    y = np.array([1, 1, 0, 1, 0])
    for k in range(-1, 5):
        other = np.where(np.arange(5) == k, 1 - y, y)
        sums = LabelSums.from_records(frame, other, bounds=BOUNDS, weights=weights, intercept=intercept)
        yield lambda sums=sums, **given: sums.private(sensitivity=of, **given)


def released_halves():
    first = np.arange(11) < 6
    for rows in records():
        halves = Halves(*(tables(np.intersect1d(rows, np.flatnonzero(part))) for part in (first, ~first)))
        yield lambda halves=halves, draw=None, **given: halves.private(**given)


def row(name: str, make: Callable, *given, only=MECHANISMS, **how):
    return [pytest.param(lambda: make(*given, **how), kind, id=f"{name} {kind}") for kind in only]


NOT_WHOLE = ("gaussian", "laplace")
ROWS = [
    *(r for a in ("record", "label") for s in ("uniform", "cells") for r in row(f"tables {a} {s}", released_tables, a, s)),
    *row("crossed tables", released_tables, "record", "cells", cross_buckets=5, only=NOT_WHOLE),
    *row("bags", released_bags), *row("counted bags", released_counted_bags),
    *row("flows", released_flows, True, True), *row("nodes", released_flows, True, False),
    *row("edges", released_flows, False, True),
    *(r for k in ("onehot", "quadratic") for of in ("declared", "features") for r in row(f"{k} {of}", released_sums, k, of)),
    *(r for of in ("declared", "features") for r in row(f"numbers {of}", released_numbers, of, only=NOT_WHOLE)),
    *row("weighted", released_numbers, "declared", HEAVY, only=NOT_WHOLE),
    *row("weighted features", released_numbers, "features", LIGHT, only=NOT_WHOLE),
    *row("no intercept", released_numbers, "features", LIGHT, False, only=NOT_WHOLE),
    *row("whole numbers", released_numbers, "declared", None, True, np.trunc(NUMBERS)),
    *row("whole weights", released_numbers, "declared", 2 * HEAVY.round(), True, np.trunc(NUMBERS)),
    *row("halves", released_halves),
]  # fmt: skip


def test_every_release_has_a_row():
    assert set(release.__all__) == {"release_tables", "release_bag_counts", "release_flow_counts"}


@pytest.fixture(autouse=True)
def one_calibration_for_all_neighbours(monkeypatch):
    scales = calibration.discrete_gaussian_scales
    cached = functools.cache(lambda ratios, changes, *promise: scales(ratios, changes, *promise))
    of_lists = lambda ratios, changes, *promise: cached(tuple(ratios), tuple(changes), *promise)  # noqa: E731
    for module in ("budget", "calibration"):
        monkeypatch.setattr(f"agglearn.privacy.{module}.discrete_gaussian_scales", of_lists)


def recorded(one: Callable, kind: str, monkeypatch) -> tuple[Recorder, object]:
    draw = Recorder()
    monkeypatch.setattr("agglearn.observations.halves.draw_private", draw)  # takes no other
    return draw, one(epsilon=EPSILON, delta=promise_of(kind)[0], mechanism=kind, draw=draw)


@pytest.mark.parametrize(("make", "kind"), ROWS)
def test_the_worst_neighbour_has_the_promised_loss(make, kind, monkeypatch, request):
    (first, released), *others = (recorded(one, kind, monkeypatch) for one in make())
    promise = promise_of(kind)[1]
    assert {mechanism.kind for mechanism, *_ in first.draws} == {kind}
    worst = max(loss(first, other, EPSILON) for other, _ in others)
    assert worst <= promise * (1 + 1e-9)
    if kind != "discrete_gaussian" or "weights" not in request.node.name:  # which zCDP then bounds
        assert worst >= promise * (0.997 if kind == "discrete_gaussian" else 1 - 1e-6)
    spec = getattr(released, "privacy", None) or released.noise  # it states the scales of the draws
    scales = [float(mechanism.scale) for mechanism, *_ in first.draws]
    assert (spec.mechanism, spec.epsilon, spec.private) == (kind, EPSILON, False)
    assert spec.delta == (DELTA if kind.endswith("gaussian") else 0)
    assert spec.scale == max(scales)
    assert sorted(spec.scales.values()) == sorted(scales) if spec.scales else len(set(scales)) == 1


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_table_of_more_cells_has_less_noise(kind):
    """Shares of the budget by cells: of nine numbers in ten, in proportion to 2, 3, 4, 6, 8 and 12 cells; totals take a seventh."""
    draw = Recorder()
    release_tables(tables(), EPSILON, promise_of(kind)[0], mechanism=kind, split="cells", draw=draw)
    power = 1 if kind.endswith("laplace") else 0.5  # ε adds up, or 1/σ²
    cells = [0 if names[0] == "totals" else values.size / 2 for _, values, names in draw.draws]
    assert sorted(cells) == [0, 2, 3, 4, 6, 8, 12]
    shares = [6 / 7 * n / sum(cells) if n else 1 / 7 for n in cells]
    levels = [mechanism.scale * share**power for (mechanism, *_), share in zip(draw.draws, shares, strict=True)]
    assert levels == pytest.approx([levels[0]] * 7)


@pytest.mark.parametrize(
    ("shift", "positives"), [(100, [2, 3, 6]), (-100, [0, 0, 0]), (0.4, [1, 2, 2]), (0.6, [2, 3, 3])]
)
def test_noisy_counts_stay_between_zero_and_each_bag(shift, positives):
    one = next(released_bags())
    draw = Recorder(lambda mechanism, values, *names: values + shift)
    noisy = one(epsilon=1.0, mechanism="laplace", draw=draw)
    assert noisy.counts.tolist() == [[n - p, p] for n, p in zip((2, 3, 6), positives, strict=True)]
