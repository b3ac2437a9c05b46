"""Small computations against a few numbers on paper."""

import io
import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from samples import people
from scipy import sparse

from agglearn.cli.aggregate import split_items
from agglearn.cli.outputs import only_writer
from agglearn.collective import ChainModel
from agglearn.collective.balance import balance_flows
from agglearn.collective.gaussian import _Smoother, _tilted_moments
from agglearn.collective.noise import noise_model
from agglearn.collective.problem import Problem
from agglearn.collective.reconstruction import _seconds_to_lowest
from agglearn.collective.results import Iterate
from agglearn.datasets.builds.grids import occupancy
from agglearn.datasets.fetching import LARGE, _Lines
from agglearn.datasets.point_clouds import read_off
from agglearn.distribution.embedding import as_bags
from agglearn.encoding.columns import is_continuous
from agglearn.encoding.dense import DenseEncoder
from agglearn.encoding.labels import binary_label
from agglearn.encoding.target import TargetEncoder
from agglearn.errors import DataError
from agglearn.linear.sum_logistic import curvature, prior_variance
from agglearn.maxent.stopping import WINDOW, DirectionMonitor
from agglearn.observations import Bags, ContingencyTables, FlowCounts, NoiseSpec, Records, Table, with_gaussian_noise
from agglearn.observations.consistency import noise_variances, project_tables
from agglearn.observations.workload import CELL_BYTES, DENSE_CELLS, DENSE_TOTAL, FIRST_SLOTS, TABLE_BYTES, workload_of
from agglearn.privacy.calibration import calibrate, discrete_gaussian_scales
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.reporting.claims import Rows, _rival_below_base
from agglearn.reporting.lines import LINE_HEIGHT, _label_ends
from agglearn.reporting.progress import duration
from agglearn.reporting.run_summary import retry_targets
from agglearn.tasks.census_design import HIDDEN
from agglearn.vocabulary import LogisticOnClusters, OptimalQuantizer
from agglearn.vocabulary.quantizer import single_tables
from agglearn.vocabulary.shrinkage import beta_prior, remove_noise


def test_text_after_the_faces_of_a_mesh_is_left():
    text = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n0.5 0.5 0.5\n"
    vertices, triangles = read_off(text, "a.off")
    assert vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert triangles.tolist() == [[0, 1, 2]]


def test_one_number_is_calibrated_exactly():
    mechanism = calibrate("discrete_gaussian", 1.0, 1e-6, 2, 2, changes=[2])
    assert mechanism.scale == pytest.approx(discrete_gaussian_scales([1.0], [2], 1.0, 1e-6)[0])


def test_a_numeric_column_of_one_value_becomes_zeros():
    frame = pd.DataFrame({"a": [2.0, 2.0, 2.0], "b": [1.0, 2.0, 3.0]})
    encoder = DenseEncoder(frame, [])
    np.testing.assert_allclose(encoder.sparse(frame).toarray(), [[0, -(1.5**0.5)], [0, 0], [0, 1.5**0.5]], atol=1e-6)


@pytest.mark.parametrize("noise_scale", [0.0, 5.0])
def test_moments_of_sums_by_the_written_out_hessian(noise_scale):
    rng, n = np.random.default_rng(3), 400
    x = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    sums = x.T @ (rng.random(n) < 1 / (1 + np.exp(-x @ [0.8, -0.6, 0.5, 0.7, -0.5]))) + rng.normal(0, noise_scale, 5)
    rate = sums[-1] / n
    hessian = rate * (1 - rate) * x.T @ x
    variance = np.diag(hessian)[:-1] + noise_scale**2
    gap = (sums - rate * x.sum(axis=0))[:-1]
    squares = (hessian[:-1, :-1] ** 2).sum(axis=1)  # the intercept has no prior
    expected = (gap**2 / variance - 1).sum() / (squares / variance).sum()
    matrix = sparse.csr_array(x)
    assert 4 * rate * (1 - rate) * curvature(matrix, np.ones(n))[:-1] == pytest.approx(np.diag(hessian)[:-1])
    assert prior_variance(matrix, sums, noise_scale, probes=3000) == pytest.approx(expected, rel=0.02)


def test_the_end_of_a_large_file_is_shown_at_once_and_no_part_of_it():
    terminal = io.StringIO()
    lines = _Lines(terminal)
    lines("small", LARGE, LARGE)
    lines("large", LARGE, 3 * LARGE)
    lines("unknown", LARGE, 0)
    assert terminal.getvalue() == ""
    lines("large", 3 * LARGE, 3 * LARGE)
    assert terminal.getvalue().startswith("fetching large: 100 % of")


def test_noisy_counts_below_one_are_taken_for_one():
    encoder = TargetEncoder.from_counts(
        "a", ("u", "v", "w"), np.array([0.0, -3.0, 16.0]), np.array([0, 2, 8]), 0.5, 50, 2.0
    )
    assert encoder.labels[1:] == ("1+ records, rate 0.333", "1+ records, rate 0.667", "16+ records, rate 0.5")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_keep_their_precision(kind):
    assert as_bags([np.zeros((2, 1), kind), np.ones((1, 1), kind)]).X.dtype == kind


def test_impossible_counts_have_no_posterior():
    with pytest.raises(DataError, match="impossible"):
        tree_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 2])


def test_labels_of_rows_do_not_tell_records_apart():
    frame = people(20)
    there, shifted = (Records.from_records(f, "y") for f in (frame, frame.set_axis(frame.index + 5)))
    assert there.digest == shifted.digest


def test_variances_of_projected_tables_by_each_number_moved_alone():
    """The projection is linear: a cell's variance is σ² times the sum of squares of what each released number moves it by."""
    frame = pd.DataFrame({"a": list("uv") * 300, "b": list("xyz") * 200, "y": [0, 1] * 300})
    noisy = with_gaussian_noise(ContingencyTables.from_records(frame, "y", categorical=["a", "b"]), 5.0, 0)
    moved = [replace(noisy, total=noisy.total + 1)]
    for key, table in noisy.tables.items():
        counts, sums = table.dense()
        for cell in np.ndindex(counts.shape):
            more = counts.copy()
            more[cell] += 1
            new = Table(counts.shape, np.arange(counts.size), more.ravel(), sums.ravel())
            moved.append(replace(noisy, tables=noisy.tables | {key: new}))
    whole, stated = project_tables(noisy), noise_variances(project_tables(noisy))
    for key in noisy.tables:
        moves = [project_tables(m).tables[key].dense()[0] - whole.tables[key].dense()[0] for m in moved]
        assert 25 * sum(np.square(moves)) == pytest.approx(np.full(moves[0].shape, stated[key]))


def test_only_a_better_side_can_have_a_rival_below_the_base_rate():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["base"], "value": [-1.0]}))
    sides = {"value": {"measure": "nllh", "method": "ours"}, "reference": {"measure": "nllh", "method": "base"}}
    assert not _rival_below_base(sides | {"predicate": "less"}, rows)


def test_the_first_impossible_bag_is_named():
    with pytest.raises(DataError, match="bag 1: 3 positives among 2"):
        Bags(np.zeros((6, 1)), [0, 2, 4, 6], [1, 3, 5])


def test_balanced_sums_differ_by_who_moved():
    rng = np.random.default_rng(0)
    first, last, pairs = balance_flows(
        rng.uniform(5, 9, 3), rng.uniform(5, 9, 3), rng.uniform(1, 4, (3, 3)), np.ones((3, 3), bool)
    )
    np.fill_diagonal(pairs, 0)
    np.testing.assert_allclose(first + pairs.sum(axis=0), last + pairs.sum(axis=1), rtol=1e-6)


def test_a_trace_that_ends_without_a_number_never_comes_near():
    trace = [Iterate(0, 0.1, 3.0, 0.0), Iterate(1, 0.2, np.nan, 0.0)]
    run = SimpleNamespace(trace=trace)
    assert _seconds_to_lowest(trace, [run]) == (np.inf, np.inf)


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_moments_of_a_gaussian_site_are_those_of_a_product_of_normals(variance):
    noise, y, mean = noise_model("gaussian", scale=1.5), np.array([3.0]), np.array([2.0])
    precision = 1 / variance + 1 / 1.5**2
    expected = (mean / variance + y / 1.5**2) / precision
    found = _tilted_moments(noise, y, mean, np.array([variance]))
    np.testing.assert_allclose(found, (expected, [1 / precision]), rtol=1e-3)


def test_counts_remove_noise_stay_as_they_are():
    frame = people(300)
    exact = ContingencyTables.from_records(frame[["job", "y"]], "y", categorical=["job"])
    noise = NoiseSpec("gaussian", 3.0, 1.0, 1e-6, "label")
    counts, sums = single_tables(replace(exact, noise=noise))["job"]
    np.testing.assert_array_equal(counts, exact.dense(0)[0])
    expected = remove_noise(*exact.dense(0), exact.total, exact.positives, (0.0, 9.0))[1]
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(89, "89 s"), (91, "2 min"), (89 * 60, "89 min"), (90 * 60, "1 h 30 min"), (179 * 60, "2 h 59 min")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_hidden_attributes_are_numbered_from_zero():
    frame = pd.DataFrame(
        {
            "DIS": [1, 2, 2, 2, 2], "SEX": [1, 2, 2, 1, 1], "HICOV": [1, 1, 1, 2, 2], "PRIVCOV": [1, 2, 1, 2, 2],
            "PUBCOV": [1, 1, 2, 2, 2], "SCHL": [17, 18, 20, 21, 22], "WKL": [1, 2, 3, 1, 1], "ANC": [1, 2, 4, 1, 1],
            "RAC1P": [1, 2, 6, 9, 1], "HISP": [1, 1, 1, 1, 2],
        }
    )  # fmt: skip
    assert {name: list(of(frame)) for name, (of, _) in HIDDEN.items()} == {
        "DIS": [1, 0, 0, 0, 0], "SEX": [0, 1, 1, 0, 0], "HICOV": [1, 1, 1, 0, 0], "COVERAGE": [2, 1, 2, 0, 0],
        "SCHL": [0, 1, 1, 2, 3], "WKL": [0, 1, 2, 0, 0], "ANC": [0, 1, 3, 0, 0], "RAC1P": [1, 2, 3, 4, 0],
    }  # fmt: skip


def test_rates_of_zero_and_one_have_a_weak_prior():
    a, b = beta_prior(np.full(40, 10.0), np.repeat([0.0, 10.0], 20))
    assert a == pytest.approx(b, rel=1e-3)
    assert a + b < 0.1


def test_a_cube_fills_a_grid_of_an_odd_size():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])
    grid = occupancy(corners, triangles, 9, 1)
    assert grid[1:8, 1:8, 1:8].all()
    assert grid.sum() == 7**3


@pytest.mark.parametrize("heights", [[0.5] * 4, [0.0, 0.01, 0.99, 1.0], [0.2, 0.9, 0.21]])
def test_names_at_the_ends_of_lines_do_not_overlap(heights):
    axes = plt.figure().add_subplot()
    axes.set_ylim(0, 1)
    names = [f"line {k}\nof two" if k % 2 else f"line {k}" for k in range(len(heights))]
    _label_ends(axes, {name: (y, "black") for name, y in zip(names, heights, strict=True)})
    spans = sorted((t.xy[1], LINE_HEIGHT * (1 + t.get_text().count("\n")) / 2) for t in axes.texts)
    assert all(y + half <= z - other + 1e-3 for (y, half), (z, other) in itertools.pairwise(spans))
    assert all(y - half >= -1e-9 and y + half <= 1 + 1e-9 for y, half in spans)
    plt.close("all")


def test_every_feature_has_columns_of_its_own():
    """The label depends on one of two features: with shared columns both would count alike."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("uv"), 400), "b": rng.choice(list("xy"), 400)})
    y = (frame["a"] == "u").to_numpy() ^ (rng.random(400) < 0.05)
    records = Records.from_records(frame.assign(y=y.astype(int)), "y")
    model = LogisticOnClusters(OptimalQuantizer(4), strengths=[10.0], random_state=0).fit(records)
    assert ((model.predict_proba(frame)[:, 1] > 0.5) == y).mean() > 0.9


def test_shares_of_weighed_bags_become_counts_of_their_weight():
    groups = {"bags": [0, 0, 1, 1, 1], "proportions": {0: [0.25, 0.25, 0.5], 1: [1.0, 0.0, 0.0]}}
    bags = Bags.from_groups(np.zeros((5, 1)), weights=[0.5, 1.5, 1.0, 1.0, 2.0], **groups)
    np.testing.assert_allclose(bags.counts, [[0.5, 0.5, 1.0], [4.0, 0.0, 0.0]])


def test_only_empty_bags_are_named():
    with pytest.raises(DataError, match=r"empty bags: 1;"):
        Bags(np.zeros((3, 1)), [0, 1, 1, 3], [1, 0, 1])


def test_the_first_window_ends_with_its_last_step():
    monitor = DirectionMonitor((1.0,), 3)
    ends = []
    for step in range(1, 2 * WINDOW + 1):
        before = monitor.end
        monitor.add(step, [np.ones(3)], [1.0], [1.0])
        ends += [step] if monitor.end != before else []
    assert ends[0] == WINDOW


def test_only_data_without_a_product_are_tried_again(tmp_path):
    for name, status in (("a", "ok"), ("b", "unavailable")):
        (tmp_path / "sources" / name).mkdir(parents=True)
        (tmp_path / "sources" / name / "manifest.json").write_text(json.dumps({"status": status}))
    assert retry_targets(tmp_path) == [str(tmp_path / "sources/b")]


def test_a_lock_that_is_gone_is_no_error(tmp_path):
    with only_writer(tmp_path / "out", "out"):
        (tmp_path / ".out.lock").unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_claim_about_one_side_has_no_rival():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["ours"], "value": [-1.0]}))
    assert not _rival_below_base({"predicate": "at_least", "value": {"measure": "nllh", "method": "ours"}}, rows)


def test_the_first_bag_whose_counts_do_not_add_up_is_named():
    with pytest.raises(DataError, match="bag 1: counts"):
        Bags(np.zeros((6, 1)), [0, 2, 4, 6], [[1, 1], [1, 2], [3, 1]])


@pytest.mark.parametrize(("n", "end"), [(3, "a, b, c$"), (5, "a, b, c, d, e$"), (6, "a, b, c, d, e, …$")])
def test_up_to_five_values_of_a_label_are_shown(n, end):
    with pytest.raises(DataError, match=end):
        binary_label(pd.Series(list("abcdef"[:n]), name="y"))


def test_moments_of_node_tables_are_those_of_the_joint_normal():
    """The Gaussian that the Kalman smoother conditions, written out over all nodes at once."""
    rng, m = np.random.default_rng(1), 30
    model = ChainModel([rng.normal(0, 1, (2, 2)) for _ in range(3)])
    y = rng.uniform(5, 25, (4, 2))
    problem = Problem(model, FlowCounts(node_counts=y, noise="gaussian", scale=0.5, population_size=m), m)
    nodes = model.node_marginals
    steps = [pairs / pairs.sum(axis=1, keepdims=True) for pairs in model.edge_marginals]
    joint = np.zeros((4, 2, 4, 2))
    for t in range(4):
        reached = np.diag(nodes[t])
        for s in range(t, 4):
            block = reached - np.outer(nodes[t], nodes[s])
            joint[t, :, s, :], joint[s, :, t, :] = block, block.T
            reached = reached @ steps[s] if s < 3 else reached
    cov, mean = m * joint.reshape(8, 8), m * np.ravel(nodes)
    gain = cov @ np.linalg.inv(cov + 0.25 * np.eye(8))
    found = _Smoother(problem).posterior(y, np.full((4, 2), 4.0))
    np.testing.assert_allclose(np.ravel(found[0]), mean + gain @ (y.ravel() - mean), rtol=1e-6)
    np.testing.assert_allclose(np.ravel(found[1]), np.diag(cov - gain @ cov), rtol=1e-6)


def test_items_of_an_option_lie_between_commas_and_spaces():
    assert split_items(["a, b", '"c, d",e', "f"]) == ["a", "b", "c, d", "e", "f"]


def test_nine_numbers_and_one_word_look_like_a_mistake():
    with pytest.raises(DataError, match="word"):
        is_continuous(pd.Series([*map(str, range(9)), "word"], name="a"))
    assert not is_continuous(pd.Series([*map(str, range(8)), "some", "words"], name="a"))


def test_tables_beyond_the_memory_of_whole_ones_are_held_in_parts():
    sizes, records = np.full(40, 2000.0), 1000
    tables, dense = 40 + 780, 40 * 2000.0 + (780 * 4e6 if DENSE_CELLS >= 4e6 else 0)
    whole = min(1.0, DENSE_TOTAL / dense)
    assert whole < 1
    memory = (
        TABLE_BYTES * tables
        + CELL_BYTES * (820 * records)
        + 8 * dense * whole
        + 16 * FIRST_SLOTS * tables * (1 - whole)
    )
    assert workload_of(sizes, "all", records).bytes == int(memory)
