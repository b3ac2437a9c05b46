"""What is drawn when a task observes: a seed repeats, two differ, and no two parts of an observation share their noise.

A task or an observation without a row here fails. Where the rows to learn from are the same for all seeds, nothing but
noise, bags and halves can differ.
"""

import functools
import json
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from census_sample import ENTRY, prepared_census
from samples import people

from agglearn import tasks
from agglearn.datasets import BagPopulation, BirdMigration, Population, RecordStore
from agglearn.encoding import FrameEncoder
from agglearn.observations import (
    Bags,
    ContingencyTables,
    CountedBags,
    FlowCounts,
    FlowInstances,
    Halves,
    LabelledBags,
    LabelSums,
    Records,
)
from agglearn.tasks import TaskInput, census_design, classification
from agglearn.tasks.base import Task

FRAME = people(400)
CATEGORICAL = {"features": {"categorical": ["zone"]}}
HIDDEN = {"hidden": "DIS", "bag_size": 8, "n_test": 40, "components": 3}
VOTERS = {"election": 2016, "bag_size": 8, "components": 3, "holdout": 0.2}
REGIONS = {"elections": [2016], "columns": "shared", "components": 3, "states": "all"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What sources are made of: a country of persons, stored records, clouds of points."""
    records, clouds = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("clouds")
    FRAME.drop(columns="y").to_parquet(records / "features.parquet")
    pd.DataFrame({"label": FRAME["y"].astype(np.int8)}).to_parquet(records / "labels.parquet")
    (records / "records.json").write_text(json.dumps({"n": 400, "parts": {}}))
    rng = np.random.default_rng(0)
    np.save(clouds / "points.npy", rng.normal(size=(120, 2)).astype(np.float32))
    np.savez(clouds / "clouds.npz", offsets=np.arange(0, 121, 10), classes=np.arange(12) % 3)
    (clouds / "records.json").write_text(json.dumps({"n": 12, "parts": {"train": [0, 8], "test": [8, 12]}}))
    country = prepared_census(tmp_path_factory.mktemp("country"))
    return {"persons": country.folder, "records": records, "clouds": clouds}


# -- sources ----------------------------------------------------------------------------------------------------------


def fixed_rows(folders, **entry) -> TaskInput:
    """Records whose last quarter is tested, whatever the seed."""
    y = FRAME["y"].to_numpy(np.int8)
    population = Population(FRAME.drop(columns="y"), y, np.full(400, 0.5))
    return TaskInput("people", {"split": {"last": 0.25}, **CATEGORICAL, **entry}, {}, population)


def split_by_seed(folders, **params) -> TaskInput:
    return TaskInput("people", {"split": 0.3, **CATEGORICAL}, params, RecordStore.open(folders["records"]))


def stored_in_order(folders, **params) -> TaskInput:
    return TaskInput("people", {"split": {"last": 0.25}, **CATEGORICAL}, params, RecordStore.open(folders["records"]))


def persons(folders, **params) -> TaskInput:
    return TaskInput("acs", ENTRY, params, RecordStore.open(folders["persons"]))


def clouds(folders, **params) -> TaskInput:
    return TaskInput("shapes", {}, params, RecordStore.open(folders["clouds"]))


def birds(folders, years=2) -> TaskInput:
    return TaskInput("birds", {}, {}, BirdMigration(3, 4, 400, (0.5, 1, 1, 1), years).draw(0))


def drawn_bags(folders) -> TaskInput:
    bags = Bags(np.arange(8.0)[:, None], np.arange(0, 9, 2), target=np.arange(4.0))
    return TaskInput("bags", {}, {}, BagPopulation(bags, bags))


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What is observed. `seeded`: whether the observation depends on the seed; `tested`: whether the tested units do.
    `noise`: keys of `params` that add noise; without them the same is observed exactly."""

    task: type[Task]
    kind: type
    source: object
    params: dict = field(default_factory=dict)
    seeded: bool = True
    tested: bool = False
    noise: tuple[str, ...] = ()

    def __str__(self):
        given = getattr(self.source, "keywords", {}) | self.params
        source = getattr(self.source, "func", self.source).__name__
        return f"{self.task.__name__} {self.kind.__name__} {source} {json.dumps(given)}"

    def observe(self, folders, seed: int, exactly=False):
        params = {k: v for k, v in self.params.items() if not (exactly and k in self.noise)}
        return self.task().observe(self.source(folders), self.kind, params, seed)


def noisy(kind, params: dict, *keys: str, task=tasks.Classification, source=fixed_rows) -> Row:
    return Row(task, kind, source, params, noise=(*keys, "mechanism", "adjacency", "split", "postprocessing"))


LAPLACE = {"epsilon": 3.0, "mechanism": "laplace"}
PUBLIC = {"features": "scaled", "ranges": "features", "sensitivity": "features"}
CODED = {"encoding": {"target": {"above": 1, "modalities": 8, "holdout": 0.3}}}
C, S, B, D = tasks.Classification, tasks.SubsetClassification, tasks.BagClassification, tasks.DistributionRegression
INFERENCE, LEARNING = tasks.FlowInference, tasks.FlowLearning

NOISY = [
    noisy(ContingencyTables, {"gaussian_noise": 3.0}, "gaussian_noise"),
    noisy(ContingencyTables, {"noise_share": 0.01}, "noise_share"),
    *(noisy(ContingencyTables, {"epsilon": 3.0, "mechanism": m}, "epsilon") for m in ("gaussian", "discrete_gaussian")),
    noisy(ContingencyTables, {**LAPLACE, "split": "cells", "postprocessing": "project"}, "epsilon"),
    noisy(ContingencyTables, {"epsilon": 3.0, "mechanism": "discrete_laplace", "adjacency": "label"}, "epsilon"),
    noisy(CountedBags, {"epsilon": 0.3, "bag_size": 20}, "epsilon"),
    noisy(LabelSums, {"epsilon": 3.0}, "epsilon"),
    noisy(LabelSums, {**LAPLACE, **PUBLIC}, "epsilon"),
    noisy(Halves, {"gaussian_noise": 3.0}, "gaussian_noise"),
    noisy(Halves, LAPLACE, "epsilon"),
    noisy(Halves, {"of": "label_sums", "epsilon": 3.0}, "epsilon"),
]
ROWS = [
    *NOISY,
    Row(C, ContingencyTables, fixed_rows, seeded=False),
    Row(C, ContingencyTables, functools.partial(fixed_rows, **CODED)),
    Row(C, ContingencyTables, fixed_rows, {"encode_noisy": {"above": 2, "modalities": 8}, "gaussian_noise": 3.0}),
    Row(C, ContingencyTables, split_by_seed, tested=True),
    Row(C, ContingencyTables, functools.partial(stored_in_order, rows=200), tested=True),
    Row(C, CountedBags, fixed_rows),
    Row(C, Halves, fixed_rows),
    Row(C, Halves, fixed_rows, {"of": "label_sums"}),
    Row(C, LabelSums, fixed_rows, seeded=False),
    Row(C, LabelSums, split_by_seed, tested=True),
    Row(C, Records, fixed_rows, seeded=False),
    Row(C, Records, split_by_seed, tested=True),
    *(Row(S, kind, split_by_seed, tested=True) for kind in (ContingencyTables, CountedBags, Halves, LabelSums, Records)),
    Row(B, Bags, functools.partial(stored_in_order, bags=10)),
    Row(B, Bags, functools.partial(stored_in_order, bags="age")),
    Row(B, LabelledBags, functools.partial(split_by_seed, bags=10), tested=True),
    Row(B, Bags, functools.partial(persons, **HIDDEN)),
    Row(B, LabelledBags, functools.partial(persons, **HIDDEN)),
    Row(B, Bags, functools.partial(persons, **VOTERS), tested=True),
    Row(B, Bags, functools.partial(persons, **VOTERS), {"persons": "all"}, tested=True),
    Row(tasks.Compression, ContingencyTables, fixed_rows, seeded=False),
    Row(tasks.Compression, ContingencyTables, split_by_seed, tested=True),
    Row(D, Bags, functools.partial(clouds, n_clouds=5, points=4)),
    Row(D, Bags, functools.partial(persons, **REGIONS, bag_size=8)),
    Row(D, Bags, functools.partial(persons, **REGIONS)),
    Row(D, Bags, drawn_bags, seeded=False),
    *(Row(task, kind, birds, {"evidence": e, "scale": 3.0, "noise": n})
      for task in (INFERENCE, LEARNING) for kind in (FlowCounts, FlowInstances)
      for e, n in (("node", "poisson"), ("edge", "gaussian"), ("node_sums", "laplace"))),
    Row(INFERENCE, FlowCounts, birds, {"epsilon": 0.5}),
    Row(INFERENCE, FlowCounts, birds, {"noise": "exact"}, seeded=False),
]  # fmt: skip


def forget() -> None:
    """Whatever this process has kept of earlier observations."""
    classification._SPLITS.clear()
    for value in vars(census_design).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


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


@pytest.mark.parametrize("source", [split_by_seed, functools.partial(stored_in_order, rows=200)])
def test_all_kinds_of_a_seed_learn_from_and_are_tested_on_the_same_records(source, folders):
    kinds = (ContingencyTables, CountedBags, Halves, LabelSums, Records)
    for seed in (0, 1):
        found = [C().observe(source(folders), kind, {}, seed) for kind in kinds]
        assert len({truth.tested for _, truth in found}) == 1
        records = found[-1][0]
        tables, bags, halves, sums, _ = (seen for seen, _ in found)
        assert (tables.total, tables.positives) == (len(records.y), records.y.sum())
        assert (halves.combined.total, halves.combined.positives) == (tables.total, tables.positives)
        assert sums.sums[-1] == tables.positives
        assert sorted(map(tuple, bags.frame.astype(str).to_numpy())) == sorted(
            map(tuple, records.frame.astype(str).to_numpy())
        )


def test_observations_of_a_split_that_are_encoded_alike_share_their_encoder(folders, monkeypatch):
    fitted, fit = [], FrameEncoder.fit
    monkeypatch.setattr(FrameEncoder, "fit", lambda *how, **more: fitted.append(how[1]) or fit(*how, **more))
    classification._ENCODERS.clear()
    for kind, params, seed in (
        (ContingencyTables, {}, 0), (LabelSums, {"features": "quadratic"}, 0), (Records, {"binning": "width"}, 0),
        (ContingencyTables, {"binning": "width"}, 0), (Records, {}, 1), (ContingencyTables, {"max_modalities": 2}, 1),
    ):  # fmt: skip
        C().observe(split_by_seed(folders), kind, params, seed)
    assert fitted == ["deciles", "width", "deciles", "deciles"]


@pytest.mark.parametrize("entry", [{"split": 0.3}, {"split": {"last": 0.25}}])
def test_nobody_is_learned_from_and_tested(entry, folders):
    frame = pd.DataFrame({"who": [f"p{i:03d}" for i in range(200)]})
    y = np.arange(200, dtype=np.int8) % 2
    source = TaskInput("people", entry, {}, Population(frame, y, np.linspace(0, 1, 200)))
    records, truth = C().observe(source, Records, {}, 0)
    parts = [(part.frame["who"].tolist(), part.y.tolist()) for part in (records, truth)]
    assert sorted(parts[0][0] + parts[1][0]) == frame["who"].tolist()
    for who, labels in parts:
        assert labels == [int(name[1:]) % 2 for name in who]
    assert truth.probabilities.tolist() == pytest.approx([int(name[1:]) / 199 for name in parts[1][0]])


def test_regions_are_held_out_whole(folders):
    source = persons(folders, **REGIONS, bag_size=8)
    seen, truth = D().observe(source, Bags, {}, 0)
    assert sorted(seen.bag_names + truth.bags.bag_names) == sorted(
        pd.read_parquet(folders["persons"] / "regions.parquet")["name"]
    )


def test_rows_that_encode_are_not_counted(folders):
    """Labels of the rows set aside make the encoding and are in no table; those of the others are in tables alone."""
    source = fixed_rows(folders, **CODED)
    tables, _ = C().observe(source, ContingencyTables, {}, 0)
    aside = tables.total
    assert 180 < aside < 240  # of 300, a share of 0.3 is set aside
    same = {"encoding": [], "tables": []}
    for i in range(0, 300, 15):
        y = source.data.y.copy()
        y[i] = 1 - y[i]
        other, _ = C().observe(replace(source, data=replace(source.data, y=y)), ContingencyTables, {}, 0)
        same["encoding"].append(other.encoder.to_dict() == tables.encoder.to_dict())
        same["tables"].append(other.positives == tables.positives)
    assert [not t for t in same["tables"]] == same["encoding"]  # one of them, and never both
    assert 3 < sum(same["tables"]) < 17


def test_what_is_promised_by_default(folders):
    for kind, n in ((ContingencyTables, 300), (LabelSums, 300)):
        seen, _ = C().observe(fixed_rows(folders), kind, {"epsilon": 3.0}, 0)
        assert (seen.noise.epsilon, seen.noise.delta) == (3.0, pytest.approx(1 / (10 * n)))
    seen, _ = C().observe(fixed_rows(folders), ContingencyTables, LAPLACE, 0)
    assert seen.noise.delta == 0


@pytest.mark.parametrize("source", [split_by_seed, functools.partial(split_by_seed, rows=300)])
def test_splits_of_seeds(source, folders):
    """Of every seed other rows are tested, of the share that the entry states, and none of them is learned from."""
    parts = [tasks.splitting.split_rows(source(folders), seed) for seed in range(6)]
    n = source(folders).params.get("rows", 400)
    for train, test in parts:
        assert not set(train) & set(test)
        assert len(train) + len(test) == pytest.approx(n, abs=1)
        assert 0.2 < len(test) / n < 0.4
    overlaps = [len(set(a[1]) & set(b[1])) / len(a[1]) for a in parts for b in parts if a is not b]
    assert max(overlaps) < 0.55  # 0.3 are expected


def test_splits_go_by_the_name_that_data_sets_share(folders):
    source = split_by_seed(folders)
    split = lambda s: tasks.splitting.split_rows(s, 0)[1].tolist()  # noqa: E731
    other = replace(source, name="other")
    assert split(other) != split(source)
    assert split(replace(other, entry={**other.entry, "split_like": "people"})) == split(source)


# -- noise ------------------------------------------------------------------------------------------------------------


def parts_of(observation, name="") -> dict[str, np.ndarray]:
    """Numbers that noise is added to, part by part."""
    if isinstance(observation, Halves):
        return parts_of(observation.first, "first ") | parts_of(observation.second, "second ")
    if isinstance(observation, LabelSums):
        return {f"{name}sums": observation.sums}
    if isinstance(observation, CountedBags):
        return {"counts": observation.counts[:, 1]}
    found = {}
    for key in observation.tables:
        counts, sums = observation.dense(*key)
        found |= {f"{name}counts {key}": counts.ravel(), f"{name}sums {key}": sums.ravel()}
    return found


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
        seen, truth = LEARNING().observe(birds(folders), FlowInstances, {"evidence": on, **law}, seed)
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
        seen, truth = LEARNING().observe(birds(folders), FlowInstances, params, seed)
        for counts, true in zip(seen.instances, truth.edge_tables, strict=True):
            gaps.append(counts.node_counts - tasks.flows._node_tables(true))
            stated = counts.scale if counts.noise == "gaussian" else counts.scale * np.sqrt(2 * 9)
    assert np.std(gaps) == pytest.approx(3 * np.sqrt(18), rel=0.15)
    assert stated == pytest.approx(3 * np.sqrt(18))


def test_poisson_counts_of_years_are_their_own(folders):
    """Two years of the same true counts are seen differently."""
    source = birds(folders)
    same = replace(source.data, edge_tables=[source.data.edge_tables[0]] * 2)
    seen, _ = LEARNING().observe(replace(source, data=same), FlowInstances, {}, 0)
    assert not np.array_equal(seen.instances[0].node_counts, seen.instances[1].node_counts)


# -- bags and halves --------------------------------------------------------------------------------------------------


def test_each_record_is_in_one_half(folders):
    for params in ({}, {"of": "label_sums"}):
        halves, _ = C().observe(fixed_rows(folders), Halves, params, 0)
        whole, _ = C().observe(fixed_rows(folders), LabelSums if params else ContingencyTables, {}, 0)
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
    frame = FRAME.drop(columns="y").assign(y=FRAME["y"])[:300]
    seen, _ = B().observe(source, LabelledBags, {}, 0)
    encoded = tasks.bags.DenseEncoder(
        tasks.bags.fill_text(frame.drop(columns="y")), tasks.bags.text_columns(frame.drop(columns="y"), source.entry)
    ).transform(tasks.bags.fill_text(frame.drop(columns="y")))
    pairs = lambda x, y: sorted((*row, label) for row, label in zip(x.tolist(), y.tolist(), strict=True))  # noqa: E731
    found, known = pairs(seen.bags.X, seen.y), pairs(encoded, frame["y"].to_numpy())
    assert len(known) == len(found) == 300
    assert found == known
    counted = np.add.reduceat(seen.y, seen.bags.offsets[:-1])
    assert seen.bags.counts[:, 1].tolist() == counted.tolist()


def test_instances_come_in_bags_of_their_own_column(folders):
    seen, _ = B().observe(stored_in_order(folders, bags="job"), LabelledBags, {}, 0)
    ages = {job: part["age"].to_numpy() for job, part in FRAME[:300].groupby("job")}
    for name, low, high in zip(seen.bags.bag_names, seen.bags.offsets, seen.bags.offsets[1:], strict=False):
        assert high - low == len(ages[name])
        x = seen.bags.X[low:high, 0]  # the age, standardised over all
        scaled = (np.sort(ages[name]) - FRAME["age"][:300].mean()) / FRAME["age"][:300].std(ddof=0)
        np.testing.assert_allclose(np.sort(x), scaled, atol=1e-5)


# -- census -----------------------------------------------------------------------------------------------------------


def test_who_is_tested_is_never_drawn(folders):
    for study in (
        census_design.hidden_design(folders["persons"], "full", "DIS", 40, 3),
        census_design.voter_design(folders["persons"], "full", 0.2, 3, 0),
    ):
        assert len(study.test)
        assert (study.weight[study.test] == 0).all()
        others = np.setdiff1d(np.arange(len(study.weight)), study.test)
        np.testing.assert_array_equal(study.weight[others], study.persons.weight[others])


def test_gaps_of_persons_are_no_numbers(folders):
    known = census_design.read_persons(folders["persons"], "full")
    taken = known.take(np.arange(len(known.region)))
    numbers = [c for c in known.frame if c not in known.categorical]
    assert (taken[numbers].isna() == (known.frame[numbers] == census_design.MISSING)).all(axis=None)
    assert taken["PINCP"].isna().any()


def test_persons_are_drawn_by_weight():
    """Of two regions in turn; nobody of weight 0."""
    people = SimpleNamespace(region=np.array([0, 0, 1, 1, 1]), regions=range(2))
    weight = np.array([1.0, 9.0, 2.0, 0.0, 6.0])
    rows = census_design.draw_per_region(people, weight, 4000, np.array([1, 0]), np.random.default_rng(0)).reshape(
        2, 4000
    )
    shares = [np.bincount(part, minlength=5) / 4000 for part in rows]
    np.testing.assert_allclose(shares, [[0, 0, 0.25, 0, 0.75], [0.1, 0.9, 0, 0, 0]], atol=0.03)


class Traced:
    """A study whose vectors tell which person, and of which region, was drawn."""

    def __init__(self, study):
        self.persons, self.weight, self.labels, self.test = study.persons, study.weight, study.labels, study.test
        self.n_classes = int(study.labels.max()) + 1

    def vectors(self, rows):
        return np.column_stack([rows, self.persons.region[rows]]).astype(np.float64)


def test_bags_have_the_names_the_labels_and_the_weights_of_their_persons(folders):
    study = Traced(census_design.hidden_design(folders["persons"], "full", "SEX", 40, 3))
    names = study.persons.regions["name"].to_numpy()
    orders = {census_design.hidden_bags(study, 2, "stream", seed)[0].bag_names for seed in range(8)}
    assert len(orders) > 2  # regions come in random order
    seed = next(s for s in range(8) if census_design.hidden_bags(study, 2, "stream", s)[0].bag_names != tuple(names))
    found, y = census_design.hidden_bags(study, 30, "stream", seed)
    rows, region = found.X.astype(int).T
    assert y.tolist() == study.labels[rows].tolist()
    assert [found.bag_names[b] for b in found.bag_of] == names[region].tolist()
    assert not set(rows) & set(study.test)
    tested = census_design.tested_persons(study)
    assert tested.X[:, 0].astype(int).tolist() == study.test.tolist()
    for b in range(len(tested)):
        here = tested.X[tested.offsets[b] : tested.offsets[b + 1]].astype(int)
        assert len(set(here[:, 1])) == 1
        assert tested.counts[b].tolist() == np.bincount(study.labels[here[:, 0]], minlength=2).tolist()
    voters = census_design.tested_voters(study, 2016)
    np.testing.assert_array_equal(voters.weights, study.persons.weight[study.test])
    votes = study.persons.regions.set_index("name")
    shares = (votes["D_2016"] / (votes["D_2016"] + votes["R_2016"])).to_numpy()
    np.testing.assert_allclose(voters.target, shares[voters.X[voters.offsets[:-1], 1].astype(int)])


@pytest.mark.parametrize("hidden", ["DIS", "SEX", "HICOV", "COVERAGE", "RAC1P"])
def test_columns_that_a_label_is_made_of_are_hidden_too(hidden, folders, monkeypatch):
    """Also where they are hardly correlated with it."""
    monkeypatch.setattr(census_design.DenseEncoder, "drop_correlated", lambda encoder, frame, labels: [])
    forget()
    study = census_design.hidden_design(folders["persons"], "full", hidden, 40, 3)
    forget()
    left_out = {a for a, k in zip(study.encoder.attributes, study.encoder.mask, strict=True) if not k}
    assert left_out == set(census_design.HIDDEN[hidden][1])
