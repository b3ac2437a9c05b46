"""Releases of tables, bag counts and flow counts: how much noise, where, what is recorded, what projection does."""

import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from samples import PEOPLE_SCHEMA, people

from agglearn.encoding import EqualWidth, Schema
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags, ContingencyTables, FlowCounts, LabelSums, release
from agglearn.observations.consistency import noise_variances, project_tables
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.observations.table import table_name
from agglearn.privacy import draw_seeded

BAGS = Bags(np.zeros((6, 1)), [0, 3, 6], [1, 2])
FLOWS = FlowCounts(edge_counts=np.ones((2, 2, 2)), noise="exact", population_size=4)


@pytest.fixture(scope="module")
def tables() -> ContingencyTables:
    return ContingencyTables.from_records(people(2000), "y", categorical=["zone", "age"])


@pytest.fixture(scope="module")
def declared() -> ContingencyTables:
    return ContingencyTables.from_records(people(2000), schema=Schema.parse(PEOPLE_SCHEMA))


def test_through_opendp(declared):
    first, second = (declared.select(["job", "zone"]).private(3.0, mechanism="discrete_laplace") for _ in range(2))
    assert first.noise.private
    assert (first.dense(0, 1)[0] != second.dense(0, 1)[0]).any()


def test_labels_alone(tables):
    noisy = release_tables(tables, 1.0, 1e-6, adjacency="label", draw=draw_seeded(0))
    for key in tables.tables:
        (counts, sums), (true, true_sums) = noisy.dense(*key), tables.dense(*key)
        assert (counts == true).all()
        assert (sums != true_sums).all()
    assert noisy.total == tables.total


def marginals(sizes: np.ndarray, keys) -> np.ndarray:
    """What sums up a table of all features, as a matrix: tables that agree are sums of one, if its cells may be negative."""
    joint = np.eye(np.prod(sizes)).reshape(*sizes, -1)
    axes = [tuple(i for i in range(len(sizes)) if i not in key) for key in (*keys, ())]
    return np.concatenate([joint.sum(axis=of).reshape(-1, joint.shape[-1]) for of in axes])


@pytest.mark.parametrize("split", ["uniform", "cells"])
def test_projection_is_the_weighted_least_squares_solution_and_its_variances_are_those_of_a_linear_map(split):
    how = {"features": ["age", "job", "zone"], "binning": EqualWidth(4), "categorical": []}
    few = ContingencyTables.from_records(people(300), "y", **how)
    noisy = release_tables(few, 1.0, 1e-6, split=split, draw=draw_seeded(1))
    a = marginals(few.encoder.sizes, few.tables)
    scale = lambda name: (noisy.noise.scales or {}).get(name, noisy.noise.scale)  # noqa: E731
    tables = [(table_name(noisy, key), table.shape) for key, table in noisy.tables.items()]
    sigma = np.concatenate([np.full(math.prod(shape), scale(name)) for name, shape in (*tables, ("totals", ()))])
    mended, projection = project_tables(noisy), lambda sigma: a @ np.linalg.pinv(a / sigma[:, None]) / sigma
    for which, total in ((0, "total"), (1, "positives")):
        flat, found = (
            np.array([*np.concatenate([t.dense(*k)[which].ravel() for k in few.tables]), getattr(t, total)])
            for t in (noisy, mended)
        )
        np.testing.assert_allclose(found, projection(sigma) @ flat, atol=1e-6)
        forgotten = projection(np.ones(len(sigma))) @ flat  # shows where weights are unequal
        assert (split == "uniform") == np.allclose(found, forgotten, atol=1e-6)
    stated = np.repeat(list(noise_variances(mended).values()), [math.prod(shape) for _, shape in tables])
    np.testing.assert_allclose(stated, (projection(sigma) ** 2 @ sigma**2)[:-1])
    for key in few.tables:
        np.testing.assert_allclose(noise_variances(noisy)[key], scale(table_name(noisy, key)) ** 2)
    assert project_tables(few) is few
    assert noise_variances(few) == dict.fromkeys(few.tables, 0.0)


def test_hashed_pairs_stay():
    hashed = ContingencyTables.from_records(people(), "y", cross_buckets=12)
    noisy = release_tables(hashed, 1.0, 1e-6, draw=draw_seeded(0))
    mended = project_tables(noisy)
    for key in noisy.hashed_pairs:
        assert (mended.tables[key].counts == noisy.tables[key].counts).all()


@pytest.mark.parametrize("number", [float, Fraction, Decimal, np.float64, np.float32], ids=lambda n: n.__name__)
def test_epsilon_is_any_real_number(tables, tmp_path, number):
    epsilon, delta = number(0.5), number(2**-20)
    sums = LabelSums.from_records(np.eye(4), [0, 1, 1, 0], bounds=(0, 1))
    released = [
        release_tables(tables, epsilon, delta, draw=draw_seeded(0)),
        release_bag_counts(BAGS, epsilon, draw=draw_seeded(0)),
        release_flow_counts(FLOWS, epsilon, draw=draw_seeded(0)),
        sums.private(epsilon, delta, draw=draw_seeded(0)),
    ]
    specs = [getattr(r, "privacy", None) or r.noise for r in released]
    assert [s.epsilon for s in specs] == [0.5] * 4
    assert [s.delta for s in specs] == [2**-20, 0, 0, 2**-20]
    assert all(type(v) is float for s in specs for v in (s.epsilon, s.delta, s.scale))
    released[0].save(tmp_path)
    assert ContingencyTables.load(tmp_path).noise == specs[0]


def test_the_largest_population_that_noisy_tables_tell_of():
    law = SimpleNamespace(variance=4.0)
    tables = np.array([[10.0, 20.0, np.nan, 0.0], [5.0, 5.0, 5.0, 14.0]])
    assert release._largest_population([tables], law) == pytest.approx(
        max(30 + 5 * np.sqrt(3 * 4), 29 + 5 * np.sqrt(4 * 4))
    )


def test_flows_state_their_noise():
    flows = FlowCounts(np.full((3, 4), 5.0), np.full((2, 4, 4), 1.25), noise="exact", population_size=20)
    for mechanism, delta in (("laplace", None), ("gaussian", 1e-5)):
        noisy = release_flow_counts(flows, 2.0, delta, mechanism=mechanism, draw=draw_seeded(0))
        assert (noisy.noise, noisy.scale) == (mechanism, noisy.privacy.scale)


WRONG = [("epsilon", 0.0), ("epsilon", Fraction(-1, 2)), ("epsilon", True), ("epsilon", "1"), ("delta", Decimal("NaN"))]
WRONG += [("delta", 2.0), ("split", "fair"), ("adjacency", "person"), ("postprocessing", "smooth")]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_cannot_be(declared, name, value):
    with pytest.raises(ConfigError, match=name):
        release_tables(declared, **{"epsilon": 1.0, "delta": 1e-6, name: value})


def test_what_has_noise_gets_no_more(declared):
    for add_noise, exact in ((release_tables, declared), (release_bag_counts, BAGS), (release_flow_counts, FLOWS)):
        noisy = add_noise(exact, 1.0, mechanism="laplace", draw=draw_seeded(0))
        with pytest.raises(DataError, match="already"):
            add_noise(noisy, 1.0, mechanism="laplace")
    with pytest.raises(DataError, match="two classes"):
        release_bag_counts(Bags(np.zeros((4, 1)), np.array([0, 4]), np.array([[1, 1, 2]])), 1.0)
