"""What is drawn when a task observes: a seed repeats, and two differ.

A task or an observation without a row in `observed_sources.py` fails. Where the rows to learn from are the same for all seeds, nothing but
noise, bags and halves can differ. No two parts and no two seeds share their noise, and it is as large as it is stated.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from observed_sources import (
    FRAME,
    LAPLACE,
    NOISY,
    ROWS,
    Row,
    birds,
    fixed_rows,
    forget,
    parts_of,
    split_by_seed,
    stored_in_order,
)
from samples import write_election

from agglearn import observations, tasks
from agglearn.datasets import Population, RecordStore
from agglearn.encoding import FrameEncoder
from agglearn.errors import ConfigError
from agglearn.observations import Bags, ContingencyTables, Halves, LabelSums, Margins, Records
from agglearn.tasks import TaskInput, classification
from agglearn.tasks.base import Task

VOTES = np.array([[[3, 5], [8, 1]], [[7, 2], [4, 6]], [[9, 4], [2, 11]]])  # secret tables of three units


def election(folders) -> TaskInput:
    return TaskInput("election", {}, {}, RecordStore.open(folders["election"]))


ROWS = [*ROWS, Row(tasks.EcologicalTables, Margins, election, seeded=False)]  # nothing is drawn, all units are seen


@pytest.fixture(scope="module")
def folders(folders, tmp_path_factory):
    """The others and an election in two districts, of two units and of one."""
    folder = tmp_path_factory.mktemp("election")
    write_election(folder, VOTES, ["north", "north", "south"])
    return folders | {"election": folder}


@pytest.mark.parametrize("task", [getattr(tasks, n) for n in tasks.__all__], ids=str)
def test_every_observation_of_every_task_has_a_row(task):
    if not (isinstance(task, type) and issubclass(task, Task) and task is not Task):
        return
    assert {kind for _, kind, _, _ in task.OBSERVATIONS} <= {row.kind for row in ROWS if row.task is task}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_seed_repeats_and_two_differ(row, folders):
    forget()
    first = [row.observe(folders, seed) for seed in (0, 1)]
    digests = [(seen.digest, truth.tested) for seen, truth in first]
    assert (digests[0][0] != digests[1][0]) == row.seeded
    if row.seeded and (row.tested or not isinstance(row.source(folders).data, RecordStore)):
        assert (digests[0][1] != digests[1][1]) == row.tested
    forget()  # in another order, in a process that has observed nothing before
    again = [row.observe(folders, seed) for seed in (1, 0)][::-1]
    assert [(seen.digest, truth.tested) for seen, truth in again] == digests


def seen_by(folders, kind, **params):
    """What is observed of rows that are the same for every seed."""
    return tasks.Classification().observe(fixed_rows(folders), kind, params, 0)[0]


def rows_of(frame: pd.DataFrame) -> list[tuple]:
    return sorted(map(tuple, frame.astype(str).to_numpy()))


@pytest.mark.parametrize("source", [split_by_seed, functools.partial(stored_in_order, rows=200)])
def test_all_kinds_of_a_seed_learn_from_and_are_tested_on_the_same_records(source, folders):
    kinds = (ContingencyTables, observations.CountedBags, Halves, LabelSums, Records)
    for seed in (0, 1):
        found = [tasks.Classification().observe(source(folders), kind, {}, seed) for kind in kinds]
        assert len({truth.tested for _, truth in found}) == 1
        records = found[-1][0]
        tables, bags, halves, sums, _ = (seen for seen, _ in found)
        assert (tables.total, tables.positives) == (len(records.y), records.y.sum())
        assert (halves.combined.total, halves.combined.positives) == (tables.total, tables.positives)
        assert sums.sums[-1] == tables.positives
        assert rows_of(bags.frame) == rows_of(records.frame)


def test_observations_of_a_split_that_are_encoded_alike_share_their_encoder(folders, monkeypatch):
    fitted, fit = [], FrameEncoder.fit
    monkeypatch.setattr(FrameEncoder, "fit", lambda *how, **more: fitted.append(how[1]) or fit(*how, **more))
    classification._ENCODERS.clear()
    for kind, params, seed in (
        (ContingencyTables, {}, 0), (LabelSums, {"features": "quadratic"}, 0), (Records, {"binning": "width"}, 0),
        (ContingencyTables, {"binning": "width"}, 0), (Records, {}, 1), (ContingencyTables, {"max_modalities": 2}, 1),
    ):  # fmt: skip
        tasks.Classification().observe(split_by_seed(folders), kind, params, seed)
    assert fitted == ["deciles", "width", "deciles", "deciles"]


@pytest.mark.parametrize("entry", [{"split": 0.3}, {"split": {"last": 0.25}}])
def test_nobody_is_learned_from_and_tested(entry, folders):
    frame = pd.DataFrame({"who": [f"p{i:03d}" for i in range(200)]})
    y = np.arange(200, dtype=np.int8) % 2
    source = TaskInput("people", entry, {}, Population(frame, y, np.linspace(0, 1, 200)))
    records, truth = tasks.Classification().observe(source, Records, {}, 0)
    parts = [(part.frame["who"].tolist(), part.y.tolist()) for part in (records, truth)]
    assert sorted(parts[0][0] + parts[1][0]) == frame["who"].tolist()
    for who, labels in parts:
        assert labels == [int(name[1:]) % 2 for name in who]
    assert truth.probabilities.tolist() == pytest.approx([int(name[1:]) / 199 for name in parts[1][0]])


def test_margins_and_tables_of_an_election(folders):
    seen, truth = tasks.EcologicalTables().observe(election(folders), Margins, {}, 0)
    assert seen.groups.tolist() == [[8, 9], [9, 10], [13, 13]]
    assert seen.votes.tolist() == [[11, 6], [11, 8], [11, 15]]
    assert [seen.district_names[d] for d in seen.districts] == ["north", "north", "south"]
    assert truth.tables.tolist() == [[[10, 7], [12, 7]], [[9, 4], [2, 11]]]


def test_margins_and_tables_of_records(tmp_path):
    """Seven voters in two places, counted by hand; records without the names of the columns are refused."""
    frame = pd.DataFrame({"party": list("aabbabb"), "place": list("xxxyyyy")})
    frame.to_parquet(tmp_path / "features.parquet")
    pd.DataFrame({"label": np.array([0, 1, 1, 1, 0, 0, 1], np.int8)}).to_parquet(tmp_path / "labels.parquet")
    (tmp_path / "records.json").write_text('{"n": 7, "parts": {}}')
    source = TaskInput("survey", {}, {"group": "party", "unit": "place"}, RecordStore.open(tmp_path))
    seen, truth = tasks.EcologicalTables().observe(source, Margins, {}, 0)
    assert (seen.groups.tolist(), seen.votes.tolist()) == ([[2, 1], [1, 3]], [[1, 2], [2, 2]])
    assert truth.tables.tolist() == [[[2, 1], [1, 3]]]
    with pytest.raises(ConfigError, match=r"datasets\.survey: records need the columns of their group and unit"):
        tasks.EcologicalTables().observe(replace(source, params={}), Margins, {}, 0)


def test_what_is_promised_by_default(folders):
    for kind in (ContingencyTables, LabelSums):
        noise = seen_by(folders, kind, epsilon=3.0).noise
        assert (noise.epsilon, noise.delta) == (3.0, pytest.approx(1 / (10 * 300)))
    assert seen_by(folders, ContingencyTables, **LAPLACE).noise.delta == 0


def test_splits_go_by_the_name_that_data_sets_share(folders):
    source = split_by_seed(folders)
    split = lambda s: tasks.splitting.split_rows(s, 0)[1].tolist()  # noqa: E731
    other = replace(source, name="other")
    assert split(other) != split(source)
    assert split(replace(other, entry={**other.entry, "split_like": "people"})) == split(source)


# -- a sample beside tables --------------------------------------------------------------------------------------------


def test_a_sample_is_in_no_table(folders):
    observe = lambda kind, n: seen_by(folders, kind, sample=n)  # noqa: E731
    whole = seen_by(folders, ContingencyTables)
    both = observe(observations.TablesAndSample, 40)
    assert len(both.sample.y) == 40
    assert both.tables.digest == observe(ContingencyTables, 40).digest
    assert both.sample.digest == observe(Records, 40).digest
    counted = ContingencyTables.from_codes(both.sample.encoder, both.sample.codes, both.sample.y)
    for key, table in whole.tables.items():
        parts = [t.tables[key].dense() for t in (both.tables, counted)]
        np.testing.assert_array_equal(table.dense(), np.add(*parts))
    rows = [set(observe(Records, n).frame.astype(str).itertuples(index=False)) for n in (10, 40)]
    assert rows[0] <= rows[1]  # a larger sample has the smaller one
    for n, kind in itertools.product((1, 300), (Records, LabelSums)):
        with pytest.raises(ConfigError, match=rf"^observe: sample must be between 2 and 299 of .* rows, got {n}$"):
            observe(kind, n)
    with pytest.raises(ConfigError, match=r"^observe: tables and a sample need the sample's size; write sample: 1000$"):
        seen_by(folders, observations.TablesAndSample)


def test_label_sums_of_all_records_have_the_features_of_a_sample(folders):
    few, all_rows = seen_by(folders, LabelSums, sample=40, epsilon=1), seen_by(folders, LabelSums, epsilon=1)
    assert few.sums.tolist() == all_rows.sums.tolist()
    assert few.n_records == 300
    pd.testing.assert_frame_equal(few.frame, seen_by(folders, Records, sample=40).frame)


# -- bags and halves --------------------------------------------------------------------------------------------------


def test_each_record_is_in_one_half(folders):
    for params in ({}, {"of": "label_sums"}):
        halves, whole = seen_by(folders, Halves, **params), seen_by(folders, LabelSums if params else ContingencyTables)
        joined = parts_of(halves.combined)
        for name, values in parts_of(whole).items():
            np.testing.assert_allclose(joined[name], values, rtol=1e-12)
        n = [len(h.frame) if params else h.total for h in (halves.first, halves.second)]
        assert sum(n) == 300
        assert min(n) > 100


@pytest.mark.parametrize("bags", [10, "job"])
def test_labels_of_bags_are_those_of_their_instances(bags, folders):
    """An oracle's labels follow the records into the bags: encoded, they are told by the records' own columns."""
    source = stored_in_order(folders, bags=bags)
    known = tasks.bags.fill_text(FRAME.drop(columns="y")[:300])
    seen, _ = tasks.BagClassification().observe(source, observations.LabelledBags, {}, 0)
    encoder = tasks.bags.DenseEncoder(known, tasks.bags.text_columns(FRAME.drop(columns="y")[:300], source.entry))
    pairs = lambda x, y: sorted((*row, label) for row, label in zip(x.tolist(), y.tolist(), strict=True))  # noqa: E731
    found = pairs(seen.bags.X, seen.y)
    assert len(found) == 300
    assert found == pairs(encoder.transform(known), FRAME["y"][:300].to_numpy())
    counted = np.add.reduceat(seen.y, seen.bags.offsets[:-1])
    assert seen.bags.counts[:, 1].tolist() == counted.tolist()


@pytest.mark.parametrize(
    ("params", "said"),
    [({"bags": "shoe"}, "neither a size nor a column"), ({"bags": 1000}, "between 1 and"), ({"x": 1}, "'x'")],
)
def test_bags_that_records_do_not_make_are_refused(params, said, folders):
    with pytest.raises(ConfigError, match=said):
        tasks.BagClassification().observe(stored_in_order(folders, **params), Bags, {}, 0)


def test_instances_come_in_bags_of_their_own_column(folders):
    seen, _ = tasks.BagClassification().observe(stored_in_order(folders, bags="job"), observations.LabelledBags, {}, 0)
    ages = {job: part["age"].to_numpy() for job, part in FRAME[:300].groupby("job")}
    for name, low, high in zip(seen.bags.bag_names, seen.bags.offsets, seen.bags.offsets[1:], strict=False):
        assert high - low == len(ages[name])
        x = seen.bags.X[low:high, 0]  # the age, standardised over all
        scaled = (np.sort(ages[name]) - FRAME["age"][:300].mean()) / FRAME["age"][:300].std(ddof=0)
        np.testing.assert_allclose(np.sort(x), scaled, atol=1e-5)


# -- noise ------------------------------------------------------------------------------------------------------------


def noise_of(row, folders, seed: int) -> dict[str, np.ndarray]:
    """Released less exact numbers; parts without noise are left out."""
    seen, exact = (parts_of(row.observe(folders, seed, exactly)[0]) for exactly in (False, True))
    found = {name: values - exact[name] for name, values in seen.items()}
    return {name: values for name, values in found.items() if np.any(values) and len(values) > 3}


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether numbers are the same but for their scale."""
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    return bool(abs(a @ b) > 0.99 * np.linalg.norm(a) * np.linalg.norm(b) > 0)


@pytest.mark.parametrize("row", NOISY, ids=str)
def test_no_two_parts_and_no_two_seeds_share_their_noise(row, folders):
    noise = [(f"seed {s}: {name}", v) for s in (0, 1) for name, v in noise_of(row, folders, s).items()]
    assert len(noise) >= 2
    shared = [(a, b) for i, (a, u) in enumerate(noise) for b, v in noise[:i] if alike(u, v)]
    assert shared == []


@pytest.mark.parametrize("on", ["node", "edge"])
@pytest.mark.parametrize(
    "law", [{"noise": "gaussian", "scale": 3.0}, {"noise": "laplace", "scale": 3.0}, {"epsilon": 0.5}]
)
def test_no_two_steps_and_no_two_years_share_their_noise(on, law, folders):
    parts = []
    for seed in (0, 1):
        how = {"evidence": on, **law}
        seen, truth = tasks.FlowLearning().observe(birds(folders), observations.FlowInstances, how, seed)
        for year, (counts, true) in enumerate(zip(seen.instances, truth.edge_tables, strict=True)):
            exact = tasks.flows._node_tables(true) if on == "node" else true
            gaps = (counts.node_counts if on == "node" else counts.edge_counts) - exact
            parts += [((seed, year, step), gap.ravel()) for step, gap in enumerate(gaps)]
    assert [(a, b) for i, (a, u) in enumerate(parts) for b, v in parts[:i] if alike(u, v)] == []


@pytest.mark.parametrize("law", [{"summed_as": "laplace"}, {"summed_as": "gaussian"}])
def test_noise_of_sums_is_as_large_as_it_is_stated(law, folders):
    """Sums of nine Laplace numbers of scale 3 have a standard deviation of 3·√18; as Gaussian noise they state it."""
    gaps = []
    for seed in range(8):
        params = {"evidence": "node_sums", "noise": "laplace", "scale": 3.0, **law}
        seen, truth = tasks.FlowLearning().observe(birds(folders), observations.FlowInstances, params, seed)
        for counts, true in zip(seen.instances, truth.edge_tables, strict=True):
            gaps.append(counts.node_counts - tasks.flows._node_tables(true))
            stated = counts.scale if counts.noise == "gaussian" else counts.scale * np.sqrt(2 * 9)
    assert np.std(gaps) == pytest.approx(3 * np.sqrt(18), rel=0.15)
    assert stated == pytest.approx(3 * np.sqrt(18))


def test_poisson_counts_of_years_are_their_own(folders):
    """Two years of the same true counts are seen differently."""
    source = birds(folders)
    same = replace(source.data, edge_tables=[source.data.edge_tables[0]] * 2)
    seen, _ = tasks.FlowLearning().observe(replace(source, data=same), observations.FlowInstances, {}, 0)
    assert not np.array_equal(seen.instances[0].node_counts, seen.instances[1].node_counts)
