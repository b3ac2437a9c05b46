"""Releases of tables, bag counts and flow counts: how much noise, where, what is recorded, what projection does."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from samples import PEOPLE_SCHEMA, people

from agglearn.encoding import EqualWidth, Schema
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags, ContingencyTables, FlowCounts, LabelSums, NoiseSpec, release
from agglearn.observations.consistency import clip_tables, noise_variances, project_tables
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.privacy import analytic_gaussian_scale, discrete_gaussian_delta, draw_seeded, gaussian_delta
from agglearn.privacy.budget import TOTALS, budget_shares, mechanisms


@pytest.fixture(scope="module")
def tables() -> ContingencyTables:
    return ContingencyTables.from_records(people(2000), "y", categorical=["zone", "age"])


@pytest.fixture(scope="module")
def declared() -> ContingencyTables:
    return ContingencyTables.from_records(people(2000), schema=Schema.parse(PEOPLE_SCHEMA))


def neighbours_differ(adjacency: str):
    """(L1, squared L2) distances, per table, of the tables of neighbours: the definition, by trying."""
    frame = people(50)
    one = ContingencyTables.from_records(frame, "y")
    if adjacency == "record":
        other = ContingencyTables.from_codes(
            one.encoder, one.encoder.encode(frame.iloc[:-1]), frame["y"].to_numpy()[:-1]
        )
    else:
        y = frame["y"].to_numpy().copy()
        y[0] = 1 - y[0]
        other = ContingencyTables.from_codes(one.encoder, one.encoder.encode(frame), y)
    gaps = [np.abs(np.stack(one.dense(*k)) - np.stack(other.dense(*k))) for k in one.tables]
    return max(g.sum() for g in gaps), max((g**2).sum() for g in gaps)


@pytest.mark.parametrize("adjacency", ["record", "label"])
@pytest.mark.parametrize("split", ["uniform", "cells"])
def test_budget_adds_up(tables, adjacency, split):
    l1, l2_squared = {"record": (2, 2), "label": (1, 1)}[adjacency]
    found = neighbours_differ(adjacency)
    assert found[0] <= l1
    assert found[1] <= l2_squared
    cells = {k: math.prod(t.shape) for k, t in tables.tables.items()}
    assert sum(budget_shares(cells, split).values()) == pytest.approx(1)
    laws = mechanisms(cells, "laplace", 0.7, None, split, adjacency)
    assert set(laws) == {*tables.tables, TOTALS}
    assert sum(l1 / law.scale for law in laws.values()) == pytest.approx(0.7)
    laws = mechanisms(cells, "gaussian", 0.7, 1e-5, split, adjacency)
    whole = math.sqrt(sum(l2_squared / law.scale**2 for law in laws.values()))  # as one Gaussian mechanism of σ = 1
    assert gaussian_delta(1.0, whole, 0.7) == pytest.approx(1e-5)
    laws = mechanisms(cells, "discrete_gaussian", 0.7, 1e-5, split, adjacency)
    sigmas = np.repeat([law.scale for law in laws.values()], l2_squared)
    assert 0.999e-5 < discrete_gaussian_delta(sigmas, np.ones(len(sigmas)), 0.7) <= 1e-5


def test_more_cells_get_more(tables):
    sizes = {k: math.prod(t.shape) for k, t in tables.tables.items()}
    parts = budget_shares(sizes, "cells")
    assert all(parts[a] > parts[b] for a in sizes for b in sizes if sizes[a] > sizes[b])


def test_what_is_recorded(tables, tmp_path):
    noisy = release_tables(tables, 2.0, 1e-6, split="cells", draw=draw_seeded(0), postprocessing="clip")
    spec = noisy.noise
    assert (spec.mechanism, spec.epsilon, spec.delta, spec.adjacency) == ("gaussian", 2.0, 1e-6, "record")
    assert (spec.private, spec.postprocessing) == (False, "clipped")
    assert set(spec.scales) == {"totals", *(" × ".join(tables.names[i] for i in k) for k in tables.tables)}
    noisy.save(tmp_path)
    assert ContingencyTables.load(tmp_path).noise == spec


def test_through_opendp(declared):
    few = declared.select(["job", "zone"])
    first, second = (few.private(3.0, mechanism="discrete_laplace") for _ in range(2))
    assert first.noise.private
    assert (first.dense(0, 1)[0] != second.dense(0, 1)[0]).any()
    gaps = np.concatenate([(np.stack(first.dense(*k)) - np.stack(few.dense(*k))).ravel() for k in few.tables])
    assert (gaps == np.round(gaps)).all()
    scale = first.noise.scale
    assert scale == pytest.approx(2 * (len(few.tables) + 1) / 3.0)
    assert abs(np.mean(np.abs(gaps)) / scale - 1) < 6 / math.sqrt(len(gaps))


def test_labels_alone(tables):
    noisy = release_tables(tables, 1.0, 1e-6, adjacency="label", draw=draw_seeded(0))
    for key in tables.tables:
        (counts, sums), (true, true_sums) = noisy.dense(*key), tables.dense(*key)
        assert (counts == true).all()
        assert (sums != true_sums).all()
    assert noisy.total == tables.total


def stacked_constraints(tables):
    """All cells and the total in one vector, and a matrix of what must be zero where tables agree."""
    place, at = {}, 0
    for key, t in tables.tables.items():
        place[key] = np.arange(at, at + math.prod(t.shape)).reshape(t.shape)
        at += math.prod(t.shape)
    rows = []
    for key, cells in place.items():
        if len(key) == 1:
            rows.append((cells, [at]))
        for axis, i in enumerate(key if len(key) == 2 else ()):
            rows += [(np.take(cells, m, axis), [place[(i,)][m]]) for m in range(cells.shape[axis])]
    matrix = np.zeros((len(rows), at + 1))
    for r, (plus, minus) in enumerate(rows):
        matrix[r, np.ravel(plus)] = 1
        matrix[r, minus] -= 1
    return matrix


@pytest.mark.parametrize("split", ["uniform", "cells"])
def test_projection_is_the_weighted_least_squares_solution(split):
    few = ContingencyTables.from_records(
        people(300), "y", ["age", "job", "zone"], binning=EqualWidth(4), categorical=[]
    )
    noisy = release_tables(few, 1.0, 1e-6, split=split, draw=draw_seeded(1))
    a = stacked_constraints(few)
    spec, names = noisy.noise, noisy.names
    scale = lambda k: (spec.scales or {}).get(k, spec.scale)  # noqa: E731
    sigma = np.concatenate(
        [np.full(math.prod(t.shape), scale(" × ".join(names[i] for i in k))) for k, t in noisy.tables.items()]
        + [[scale("totals")]]
    )
    found = project_tables(noisy)
    for which, total in ((0, "total"), (1, "positives")):
        flat = lambda t, w=which, n=total: np.append(  # noqa: E731
            np.concatenate([t.dense(*k)[w].ravel() for k in few.tables]), getattr(t, n)
        )
        b = a * sigma  # in units of σ: the nearest point of the null space
        nearest = flat(noisy) - sigma * (np.linalg.pinv(b) @ (a @ flat(noisy)))
        np.testing.assert_allclose(flat(found), nearest, atol=1e-6)
        assert abs(a @ flat(found)).max() < 1e-6
        wrong = flat(noisy) - np.linalg.pinv(a) @ (a @ flat(noisy))  # weights forgotten: shows for unequal ones
        assert (split == "uniform") == np.allclose(flat(found), wrong, atol=1e-6)


def test_projection_leaves_exact_tables_and_comes_nearer_with_noise(tables):
    assert project_tables(tables) is tables
    same = project_tables(replace(tables, noise=NoiseSpec("gaussian", 1.0, 1.0, 1e-6)))
    for key in tables.tables:
        np.testing.assert_allclose(same.dense(*key), tables.dense(*key), atol=1e-9)
    noisy = release_tables(tables, 1.0, 1e-6, draw=draw_seeded(2))
    error = lambda t: sum(((np.stack(t.dense(*k)) - tables.dense(*k)) ** 2).sum() for k in tables.tables)  # noqa: E731
    assert error(project_tables(noisy)) < error(noisy)


def test_clipping(tables):
    cut = clip_tables(release_tables(tables, 0.5, 1e-6, draw=draw_seeded(2)))
    for t in cut.tables.values():
        assert (t.label_sums >= 0).all()
        assert (t.label_sums <= t.counts).all()


def test_hashed_pairs_stay():
    hashed = ContingencyTables.from_records(people(), "y", cross_buckets=12)
    noisy = release_tables(hashed, 1.0, 1e-6, draw=draw_seeded(0))
    mended = project_tables(noisy)
    for key in noisy.hashed_pairs:
        assert (mended.tables[key].counts == noisy.tables[key].counts).all()


def test_bag_counts(tmp_path):
    y = np.random.default_rng(0).integers(0, 2, 2000)
    bags = Bags(np.zeros((2000, 1)), np.arange(0, 2001, 20), y.reshape(-1, 20).sum(1))
    noisy = release_bag_counts(bags, 1.0, draw=draw_seeded(0))
    assert (noisy.counts.sum(1) == 20).all()
    assert noisy.noise.adjacency == "label"
    noisy.save(tmp_path)
    assert Bags.load(tmp_path).noise == noisy.noise
    assert Bags.load(tmp_path).digest == noisy.digest != bags.digest
    assert release_bag_counts(bags, 1.0).noise.private
    with pytest.raises(DataError, match="already"):
        release_bag_counts(noisy, 1.0)
    with pytest.raises(DataError, match="two classes"):
        release_bag_counts(Bags(np.zeros((4, 1)), np.array([0, 4]), np.array([[1, 1, 2]])), 1.0)


def test_flow_counts():
    nodes = np.full((3, 40), 5.0)
    edges = np.full((2, 40, 40), 200 / 1600)
    flows = FlowCounts(nodes, edges, noise="exact", population_size=200)
    noisy = release_flow_counts(flows, 2.0, draw=draw_seeded(0))
    assert (noisy.noise, noisy.scale) == ("laplace", pytest.approx(5 / 2.0))  # five tables
    assert abs(np.abs(noisy.edge_counts - edges).mean() / 2.5 - 1) < 5 / math.sqrt(3200)
    assert noisy.privacy.epsilon == 2.0
    gaussian = release_flow_counts(flows, 2.0, 1e-5, mechanism="gaussian", draw=draw_seeded(0))
    assert gaussian.scale == pytest.approx(analytic_gaussian_scale(math.sqrt(5), 2.0, 1e-5))
    with pytest.raises(DataError, match="already"):
        release_flow_counts(noisy, 1.0)


@pytest.mark.parametrize("number", [float, Fraction, Decimal, np.float64, np.float32], ids=lambda n: n.__name__)
def test_epsilon_is_any_real_number(tables, tmp_path, number):
    epsilon, delta = number(0.5), number(2**-20)
    bags = Bags(np.zeros((6, 1)), [0, 3, 6], [1, 2])
    flows = FlowCounts(edge_counts=np.ones((2, 2, 2)), noise="exact", population_size=4)
    sums = LabelSums.from_records(np.eye(4), [0, 1, 1, 0], bounds=(0, 1))
    released = [
        release_tables(tables, epsilon, delta, draw=draw_seeded(0)),
        release_bag_counts(bags, epsilon, draw=draw_seeded(0)),
        release_flow_counts(flows, epsilon, draw=draw_seeded(0)),
        sums.private(epsilon, delta, draw=draw_seeded(0)),
    ]
    specs = [getattr(r, "privacy", None) or r.noise for r in released]
    assert [s.epsilon for s in specs] == [0.5] * 4
    assert [s.delta for s in specs] == [2**-20, 0, 0, 2**-20]
    assert all(type(v) is float for s in specs for v in (s.epsilon, s.delta, s.scale))
    released[0].save(tmp_path)
    assert ContingencyTables.load(tmp_path).noise == specs[0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": Fraction(-1, 2)}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": Decimal("NaN")}, "delta"),
        ({"delta": 2.0}, "delta"),
        ({"split": "fair"}, "split"),
        ({"adjacency": "person"}, "adjacency"),
        ({"postprocessing": "smooth"}, "postprocessing"),
    ],
)
def test_what_cannot_be(declared, how, said):
    tables = declared
    with pytest.raises(ConfigError, match=said):
        release_tables(tables, **({"epsilon": 1.0, "delta": 1e-6} | how))
    with pytest.raises(DataError, match="already"):
        release_tables(release_tables(tables, 1.0, 1e-6, draw=draw_seeded(0)), 1.0, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["uniform", "cells"])
@pytest.mark.parametrize("postprocessing", ["none", "project"])
def test_variances_of_cells_are_those_of_the_noise(tables, split, postprocessing):
    found = []
    for seed in range(400):
        noisy = release_tables(tables, 1.0, 1e-5, split=split, postprocessing=postprocessing, draw=draw_seeded(seed))
        found.append({k: noisy.dense(*k)[0] - tables.dense(*k)[0] for k in tables.tables})
    stated = noise_variances(noisy)
    for key in tables.tables:
        measured = np.mean([f[key] ** 2 for f in found])
        cells = found[0][key].size
        assert measured == pytest.approx(stated[key], rel=6 * math.sqrt(2 / (400 * cells)) * math.sqrt(cells))
    assert noise_variances(tables) == dict.fromkeys(tables.tables, 0.0)


def test_the_largest_population_that_noisy_tables_tell_of():
    law = SimpleNamespace(variance=4.0)
    tables = np.array([[10.0, 20.0, np.nan, 0.0], [5.0, 5.0, 5.0, 14.0]])
    assert release._largest_population([tables], law) == pytest.approx(
        max(30 + 5 * np.sqrt(3 * 4), 29 + 5 * np.sqrt(4 * 4))
    )
