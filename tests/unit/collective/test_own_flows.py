"""Flows of one's own: counts in a data frame, movements with their spread and misfit, and what is refused."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from agglearn.collective import ChainModel, ShrunkenTables, reconstruct
from agglearn.errors import AgglearnError, PoorFit
from agglearn.observations import FlowCounts, FlowInstances

FRAME = pd.DataFrame({"hour": [1, 1, 2, 2, 4, 4], "place": list("ABABAB"), "n": [10, 20, 15, 15, 12, 18]})
MOVES = pd.DataFrame({"from": ["A", "B"], "to": ["B", "A"], "n": [3, 4]})
STEP = np.array([[0.8, 0.2], [0.1, 0.9]])
COUNTED = np.array([[450, 30, 20], [300, 140, 60], [210, 190, 100], [160, 200, 140]])
MOSTLY_TO_B = np.array([[0.65, 0.25, 0.1], [0.2, 0.6, 0.2], [0.1, 0.15, 0.75]])


def at_places(frame=FRAME, **options):
    return FlowCounts.from_frame(frame, **{"count": "n", "time": "hour", "place": "place"} | options)


def between_places(**options):
    return FlowCounts.from_frame(MOVES, count="n", origin="from", destination="to", **options)


# -- counts of a data frame -------------------------------------------------------------------------------------------


def test_counts_at_places_with_a_missing_step():
    counts = at_places(noise="gaussian", scale=2, population_size=30)
    np.testing.assert_array_equal(counts.node_counts, [[10, 20], [15, 15], [np.nan, np.nan], [12, 18]])
    assert counts.context["places"].tolist() == ["A", "B"]
    assert counts.context["times"].tolist() == ["1", "2", "3", "4"]
    assert (counts.noise, counts.scale, counts.population_size) == ("gaussian", 2, 30)


def test_counts_between_places_inside_a_graph():
    counts = between_places(absent=0, graph=[("A", "B"), ("B", "A"), ("B", "C")], places=["A", "B", "C"])
    np.testing.assert_array_equal(counts.edge_counts, [[[0, 3, 0], [4, 0, 0], [0, 0, 0]]])
    np.testing.assert_array_equal(counts.context["allowed"], [[1, 1, 0], [1, 1, 1], [0, 0, 1]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.to_datetime(["2020-01-06", "2020-01-20", "2020-01-27"]), ["2020-01-06", "2020-01-13", "2020-01-20", "2020-01-27"]),
        ([0.1, 0.2, 0.4], ["0.1", "0.2", "0.4"]),  # fractions are taken as they are
        ([1, 2, 5], ["1", "2", "3", "4", "5"]),
        ([1, 4, 6], ["1", "4", "6"]),  # not evenly spaced
        ([7, 7, 7], ["7"]),
    ],
)  # fmt: skip
def test_order_of_times(column, expected):
    frame = pd.DataFrame({"hour": column, "place": ["A", "B", "C"], "n": 1})
    assert [time[: len(e)] for time, e in zip(at_places(frame).context["times"], expected, strict=True)] == expected


def test_times_in_a_stated_order_and_populations_with_the_same_places(tmp_path):
    frame = FRAME.assign(hour=["mon", "mon", "tue", "tue", "wed", "wed"])
    counts = at_places(frame, times=["mon", "tue", "wed"])
    counts.save(tmp_path)
    assert FlowCounts.load(tmp_path).context["times"].tolist() == ["mon", "tue", "wed"]
    populations = pd.concat([MOVES.assign(week=1), MOVES[:1].assign(week=2)])
    options = {"count": "n", "origin": "from", "destination": "to", "noise": "laplace", "scale": 5}
    flows = FlowInstances.from_frame(populations, by="week", **options)
    assert [c.edge_counts.shape for c in flows.instances] == [(1, 2, 2)] * 2
    assert flows.instances[1].scale == 5
    assert flows.instances[1].context["places"].tolist() == ["A", "B"]


LINES = {
    "no such column": (lambda: at_places(count="persons"), "no column 'persons'; the columns are hour, place, n"),
    "no places": (lambda: at_places(place=None), "give place=, or origin= and destination="),
    "places and movements": (lambda: at_places(origin="place"), "give place=, or origin= and destination="),
    "no time": (lambda: at_places(time=None), "counts at places need time="),
    "text as a count": (lambda: at_places(FRAME.assign(n="1,204")), "column 'n' is numeric but row 1 holds '1,204' (6 such rows); mend them"),
    "a cell twice": (lambda: at_places(pd.concat([FRAME, FRAME[:1]])), "1, A: two rows count this; add them up"),
    "times as text": (lambda: at_places(FRAME.assign(hour="mon")), "list them in order as times=[…]"),
    "no time in a row": (lambda: at_places(FRAME.assign(hour=[1, 1, 2, 2, None, 3])), "column 'hour': row 5 has no time"),
    "far times": (lambda: at_places(FRAME.assign(hour=[1, 1, 2, 2, 40, 40])), "only 3 of 40 evenly spaced times"),
    "a place that is not listed": (lambda: at_places(places=["A"]), "column 'place': row 2 holds 'B'; listed are A"),
    "a place listed twice": (lambda: at_places(places=["A", "B", "A"]), "place: a value is listed twice among A, B, A"),
    "unknown noise": (lambda: at_places(noise="gauss"), "noise: 'gauss' is not known; use exact, poisson, gaussian, laplace"),
    "no rows": (lambda: at_places(FRAME[:0]), "the frame has no rows"),
    "a foreign place in the graph": (lambda: at_places(graph=[("A", "C")]), "('A', 'C') is no pair of places; these are A, B"),
    "counted outside the graph": (lambda: reconstruct(between_places(population_size=7), np.eye(2)), "states 0, 1: somebody is counted there"),
    "logarithms": (lambda: reconstruct(at_places(), np.log(STEP)), "give these, not their logarithms"),
    "another size": (lambda: reconstruct(at_places(), np.eye(3)), "have shape (3, 3), the counts have 3 steps of 2 places"),
    "outside the graph": (lambda: reconstruct(at_places(graph=[("A", "B")]), STEP), "place 1 to place 0 is no step"),
    "shares of more than 1": (lambda: reconstruct(at_places(), STEP, initial=[0.5, 0.6]), "shares from 0 on that add up to 1"),
    "unknown initial": (lambda: reconstruct(at_places(), STEP, initial="uniform"), "'uniform' is not known; use learned"),
    "probabilities as log-potentials": (lambda: ChainModel([STEP]), "edge 0–1: rows add up to 1, as probabilities do"),
    "one step": (lambda: reconstruct(at_places(FRAME[:2]), STEP), "the counts have 0 steps of 2 places"),
    "one period": (lambda: ShrunkenTables().fit(FlowInstances((between_places(noise="laplace", scale=1),))), "give two instances"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", LINES)
def test_wrong_input_gets_one_line(wrong):
    call, line = LINES[wrong]
    with pytest.raises(AgglearnError) as error:
        call()
    assert line in str(error.value)
    assert "\n" not in str(error.value)


# -- movements --------------------------------------------------------------------------------------------------------


def test_the_counts_of_the_page_are_explained_and_not_compromised():
    """The complaint: 450, 30 and 20 became 318, 103 and 78, because the first step was uniform in silence."""
    counts = FlowCounts(node_counts=COUNTED, noise="poisson", population_size=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        movements = reconstruct(counts, MOSTLY_TO_B)
    assert movements.converged
    assert (abs(np.array(movements.node_tables) - COUNTED) < 2 * np.sqrt(COUNTED)).all()
    np.testing.assert_allclose(movements.node_tables[0], [450, 30, 20], atol=15)
    np.testing.assert_allclose(movements.initial, movements.node_tables[0] / 500, atol=1e-4)
    with pytest.warns(PoorFit, match=r"worse than chance.*0, 0 \(450 counted, 166\.7 expected\)"):
        uniform = reconstruct(counts, MOSTLY_TO_B, initial=np.full(3, 1 / 3))
    np.testing.assert_allclose(uniform.initial, 1 / 3)
    assert uniform.node_tables[0][0] < 400


def test_movements_of_exact_counts_and_z_values_by_hand():
    counts = at_places(FRAME[:4], noise="exact", population_size=30)
    movements = reconstruct(counts, STEP, initial=[0.4, 0.6])
    np.testing.assert_allclose(movements.node_tables, [[10, 20], [15, 15]], atol=1e-6)
    deviation = np.sqrt(30 * 0.4 * 0.6), np.sqrt(10 * 0.8 * 0.2 + 20 * 0.1 * 0.9)  # binomial, and of two binomials
    np.testing.assert_allclose(movements.node_z[:, 0], [(10 - 12) / deviation[0], (15 - 10) / deviation[1]], rtol=1e-6)
    assert np.isnan(movements.edge_z).all()
    frame = movements.to_frame()
    assert frame.columns.tolist() == ["time", "origin", "destination", "flow", "spread"]
    assert frame.iloc[1][["time", "origin", "destination"]].tolist() == ["1", "A", "B"]
    np.testing.assert_allclose(frame["flow"].to_numpy().reshape(2, 2), movements.edge_tables[0])


def test_population_is_estimated_from_totals_or_stated():
    assert reconstruct(at_places(noise="poisson", rate=0.5), STEP).population_size == 60
    stated = reconstruct(at_places(noise="poisson", rate=0.5), STEP, population_size=50)
    np.testing.assert_allclose([table.sum() for table in stated.node_tables], 50)
    estimated = reconstruct(at_places(noise="poisson", rate=0.5), STEP, population_size=None)
    assert (estimated.spread > reconstruct(at_places(noise="poisson", rate=0.5), STEP, population_size=60).spread).all()


def spread_by_enumeration(tables, m, cells, noise, learned):
    """Standard deviations of all flows, from the covariance over all paths."""
    p, size = np.array(tables) / m, len(tables[0])
    paths = list(itertools.product(range(size), repeat=len(p) + 1))
    starts = p[0].sum(axis=1)
    steps = p / p.sum(axis=2, keepdims=True)
    weights = np.array([starts[x[0]] * np.prod(steps[range(len(p)), x[:-1], x[1:]]) for x in paths])
    flows = [(t, i, j) for t in range(len(p)) for i in range(size) for j in range(size)]
    inside = np.array([[cell in [(t, i) for t, i in enumerate(x)] + [(t, *x[t : t + 2]) for t in range(len(p))] for cell in flows + cells] for x in paths], float)  # fmt: skip
    centred = inside - weights @ inside
    covariance = m * (weights[:, None] * centred).T @ centred
    if learned:
        begin = np.array(paths)[:, 0] == np.arange(size)[:, None]
        from_start = (begin * weights) @ centred / starts[:, None]
        covariance += m * (m - 1) / (1 + size) * (starts[:, None] * from_start).T @ from_start
    n = len(flows)
    c = covariance[:n, n:]
    left = covariance[:n, :n] - c @ np.linalg.pinv(covariance[n:, n:] + np.diag(noise)) @ c.T
    return np.sqrt(np.maximum(np.diag(left), 0)).reshape(p.shape)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("noise", ["poisson", "gaussian", "laplace", "exact"])
@pytest.mark.parametrize("kind", ["node", "edge"])
def test_spread_is_that_of_an_enumeration_of_all_paths(kind, noise, learned):
    rng = np.random.default_rng(0)
    step = rng.dirichlet([3, 3, 3], 3)
    first = np.array([0.5, 0.3, 0.2])
    tables = np.array(ChainModel([np.log(step * first[:, None]), np.log(step)]).sample_tables(60, rng), float)
    nodes = np.concatenate([tables.sum(axis=2), tables[-1:].sum(axis=1)])
    nodes[1, 0] = tables[1] = np.nan
    seen = {"node": nodes, "edge": tables}[kind]
    counts = FlowCounts(**{f"{kind}_counts": seen}, noise=noise, scale=3, population_size=60)
    cells = [tuple(cell) for cell in np.argwhere(~np.isnan(seen)).tolist()]
    movements = reconstruct(counts, step, initial="learned" if learned else first)
    fitted = np.array(movements.edge_tables)
    at = [fitted[cell] if len(cell) == 3 else (movements.node_tables[cell[0]][cell[1]]) for cell in cells]
    variance = {"poisson": at, "gaussian": [9] * len(at), "laplace": [18] * len(at), "exact": [0] * len(at)}[noise]
    expected = spread_by_enumeration(fitted, 60, cells, np.array(variance, float), learned)
    np.testing.assert_allclose(movements.spread, expected, atol=1e-3 * expected.max())


# -- tables shrunken to a common law ----------------------------------------------------------------------------------


def weeks(rng, spread, n=12, size=9):
    law = rng.lognormal(4, 1.5, (size, size))
    return rng.poisson(law * rng.lognormal(0, spread, (n, size, size)))[:, None].astype(float)


def instances(tables, scale, sizes) -> FlowInstances:
    pairs = zip(tables, sizes, strict=True)
    given = {"noise": "laplace", "scale": scale}
    return FlowInstances(tuple(FlowCounts(edge_counts=t, population_size=m, **given) for t, m in pairs))


def errors(tables, scale, rng):
    noisy = tables + rng.laplace(0, scale, tables.shape)
    fitted = ShrunkenTables(group=27).fit(instances(noisy, scale, [tables.sum() / len(tables)] * len(tables)))
    covered = abs(fitted.edge_tables_ - tables) < 1.96 * np.array(fitted.spread_)
    return abs(fitted.edge_tables_ - tables).sum() / abs(noisy - tables).sum(), covered.mean(), fitted


@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize("scale", [0.1, 3, 30, 300])
def test_shrunken_tables_are_never_worse_than_the_noisy_ones(scale, spread):
    rng = np.random.default_rng(1)
    ratio, covered, fitted = errors(weeks(rng, spread), scale, rng)
    assert ratio < (1.001 if scale < 1 else 0.97 if scale < 30 else 0.7)
    assert covered > 0.85
    assert (fitted.dispersion_ >= 1).all()


def test_shrunken_tables_between_their_two_ends():
    rng = np.random.default_rng(2)
    tables = weeks(rng, 0.3)
    _, _, precise = errors(tables, 1e-6, rng)
    np.testing.assert_allclose(precise.edge_tables_, tables, atol=1e-3)
    ratio, _, _ = errors(tables, 1e5, rng)
    assert ratio < 0.5


def test_entries_without_a_count_take_the_common_law():
    tables = np.array([[[8.0, 2], [3, 17]], [[16.0, 4], [6, np.nan]]])[:, None]
    fitted = ShrunkenTables().fit(instances(tables, 1, (30, 60)))
    assert fitted.edge_tables_[1][0, 1, 1] == pytest.approx(34)
