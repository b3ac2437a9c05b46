"""The privacy boundary: an estimator that searches everything it can reach must not find labels or records."""

import gc
import inspect
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from samples import write_election

from agglearn import observations, tasks
from agglearn.datasets import BirdMigration, GaussianBags, RecordStore, Tabular
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.estimator import Estimator
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums, Margins, Records
from agglearn.tasks import BagClassification, Classification, Compression, SubsetClassification, Task, TaskInput

N = 300  # records; no table, vocabulary or list of bins is that long


def forbidden_records(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Records written to `folder`: what no learner from aggregates may get hold of."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"age": rng.normal(40, 10, N), "job": rng.choice(["cook", "nurse"], N)})
    frame["zone"] = rng.integers(0, 9, N)
    frame["y"] = (rng.random(N) < 0.4).astype(np.int8)
    frame.to_csv(folder / "private.csv", index=False)
    return frame.drop(columns="y"), frame["y"].to_numpy()


class Thief(Estimator):
    """Walks everything that is reachable from its observation and keeps what it should not have found."""

    observes = ContingencyTables
    frame, y, folder = None, None, None  # what it looks for, set by the test

    def __init__(self, random_state=None):
        self.random_state = random_state

    def _fit(self, observation):
        self.found_, todo, seen = [], [observation], {}
        while todo:
            thing = todo.pop()
            if id(thing) not in seen:
                seen[id(thing)] = thing
                self._judge(thing)
                todo += inside(thing)
        self.visited_ = len(seen)

    def _judge(self, thing):
        if isinstance(thing, str | Path) and self._leads_to_records(str(thing)):
            self.found_.append(f"a path, {thing}")
        for values in columns(thing):
            if len(values) == N and same(values, self.y):
                self.found_.append("the labels")
            if any(len(values) == N and same(values, self.frame[c]) for c in self.frame):
                self.found_.append("a column of the records")

    def _leads_to_records(self, text: str) -> bool:
        """Whether a text names the records' file or folder, or a file in it."""
        return str(self.folder) in text or ("private" in text and text != "private")  # a field of NoiseSpec


def inside(thing) -> list:
    """Everything directly within a value that the interpreter knows (items, fields, slots, closures), but no code."""
    if isinstance(thing, np.ndarray):
        return [thing.base, *(thing.flat if thing.dtype == object else ())]
    if isinstance(thing, pd.DataFrame):
        return [*(thing[c].to_numpy() for c in thing), thing.attrs]
    held = [] if isinstance(thing, str | bytes | int | float | Path) else gc.get_referents(thing)
    return [r for r in held if not isinstance(r, type | ModuleType) and not inspect.isroutine(r)]


def columns(thing) -> list:
    """The vectors in a value that could be labels or a feature."""
    if isinstance(thing, np.ndarray) and thing.ndim >= 1:
        return [thing.ravel(), *(thing.T if thing.ndim == 2 else [])]
    if isinstance(thing, pd.Series | pd.Index):
        return [thing.to_numpy()]
    return [np.array(thing, dtype=object)] if isinstance(thing, list | tuple) and len(thing) == N else []


def same(values, wanted) -> bool:
    """Whether two vectors are equal, in this order, in another, or with labels exchanged."""
    a, b = (pd.Series(list(v)).astype(str) for v in (as_plain(values), as_plain(wanted)))
    return bool((a == b).all()) or sorted(a) == sorted(b)


def as_plain(values):
    try:
        return np.asarray(values).astype(float)
    except (TypeError, ValueError):
        return np.asarray(values)


@pytest.fixture
def hidden(tmp_path, monkeypatch):
    """Prepared records, and a thief who knows what to look for."""
    folder = tmp_path / "private"
    folder.mkdir()
    frame, y = forbidden_records(folder)
    entry = {"title": "t", "class": "agglearn.datasets.Tabular", "label": {"column": "y"}, "split": 0.5}
    dataset = Tabular.from_entry(entry)
    dataset.parse({"private.csv": folder / "private.csv"}, folder)
    monkeypatch.setattr(Thief, "folder", folder)
    monkeypatch.setattr(Thief, "frame", frame)
    monkeypatch.setattr(Thief, "y", y)
    return frame, y, entry, RecordStore.open(folder)


def learners_see() -> list[type[observations.Observation]]:
    """Every observation type but those that hold labels: for oracles, and samples in the clear."""
    found = [kind for kind in observations.Observation.__subclasses__() if kind.__module__.startswith("agglearn")]
    return [kind for kind in found if kind not in (Records, observations.LabelledBags, observations.TablesAndSample)]


def flows_of(frame) -> list[FlowCounts]:
    """The records as paths of two steps: zone, job."""
    moved = np.zeros((1, 9, 9))
    np.add.at(moved[0], (frame["zone"].to_numpy(), pd.factorize(frame["job"])[0]), 1)
    one = FlowCounts(edge_counts=moved, noise="laplace", population_size=N)
    return [one, FlowCounts(node_counts=[moved[0].sum(1), moved[0].sum(0)])]


def tables_of(frame, y, folder) -> list[ContingencyTables]:
    whole = frame.assign(y=y)
    whole.to_parquet(folder / "private.parquet", row_group_size=50)
    made = [ContingencyTables.from_records(whole, "y", **how) for how in ({}, {"pairs": "none", "binning": "width"})]
    return [*made, ContingencyTables.from_parquet(folder / "private.parquet", "y")]


def bags_of(frame, y, folder) -> list[Bags]:
    x, groups = np.column_stack([frame.age, frame.job == "cook"]), np.arange(N) % 7
    made = Bags(x, np.arange(0, N + 1, 10), y.reshape(-1, 10).sum(axis=1))
    return [made, Bags.from_groups(x, groups, {b: y[groups == b].sum() for b in range(7)})]


def label_sums_of(frame, y, folder) -> list[LabelSums]:
    mapped = LabelSums.from_map(FeatureMap.fit("onehot", FrameEncoder.fit(frame), frame), frame, y)
    return [mapped, LabelSums.from_records(frame[["age", "zone"]], y), mapped.private(1.0, 1e-6)]


def halves_of(frame, y, folder) -> list[Halves]:
    encoder, cut = FrameEncoder.fit(frame), (slice(N // 2), slice(N // 2, N))
    return [Halves(*(ContingencyTables.from_codes(encoder, encoder.encode(frame[p]), y[p]) for p in cut))]


def margins_of(frame, y, folder) -> list[Margins]:
    """How many of each zone have each job, and how many have each label."""
    jobs, labels = pd.crosstab(frame["zone"], frame["job"]), pd.crosstab(frame["zone"], y)
    weighted = Margins.from_frames(jobs.to_numpy(), labels.to_numpy(), jobs.index < 4, jobs.index / 9 + 1)
    return [Margins.from_frames(jobs, labels), weighted]


# Observations of every way to make them. Covariates in bags and features of label sums are public and may be found.
MADE = {
    Bags: bags_of,
    ContingencyTables: tables_of,
    CountedBags: lambda frame, y, folder: [
        CountedBags.from_records(FrameEncoder.fit(frame), frame, y, 10, np.random.default_rng(0))
    ],
    FlowCounts: lambda frame, y, folder: flows_of(frame),
    observations.FlowInstances: lambda frame, y, folder: [observations.FlowInstances(tuple(flows_of(frame)))],
    Halves: halves_of,
    LabelSums: label_sums_of,
    Margins: margins_of,
}


def public(kind, frame) -> pd.DataFrame:
    """The columns that are no secret: the covariates of instances in bags, and beside label sums, are given."""
    return frame[[]] if kind in (Bags, CountedBags, LabelSums) else frame


@pytest.mark.parametrize("kind", learners_see())
def test_nothing_is_found_in_what_learners_get(kind, hidden, monkeypatch):
    frame, y, _, store = hidden
    monkeypatch.setattr(Thief, "frame", public(kind, frame))
    assert kind in MADE, f"say above how {kind.__name__} is made, so that it is searched too"
    made = MADE[kind](frame, y, store.folder)
    made[0].save(store.folder.parent / "shown")
    for observation in [*made, kind.load(store.folder.parent / "shown")]:
        thief = type("T", (Thief,), {"observes": kind})().fit(observation)
        assert thief.found_ == []
        assert thief.visited_ > (50 if kind is ContingencyTables else 5)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (BagClassification, Bags), (Classification, ContingencyTables), (Classification, CountedBags),
        (Classification, Halves), (Classification, LabelSums), (Compression, ContingencyTables),
        (SubsetClassification, ContingencyTables),
    ],
)  # fmt: skip
def test_nothing_is_found_in_what_a_task_gives(kind, task, hidden, monkeypatch):
    _, _, entry, store = hidden
    seen, truth = task().observe(TaskInput("hidden", entry, {}, store), kind, {}, 0)
    train = {"frame": store.features(), "y": store.labels()}
    held_out = {"frame": getattr(truth, "frame", train["frame"][[]]), "y": getattr(truth, "y", train["y"])}
    for looked_for in (train, held_out):
        monkeypatch.setattr(Thief, "frame", public(kind, looked_for["frame"]))
        monkeypatch.setattr(Thief, "y", looked_for["y"])
        monkeypatch.setattr(f"{__name__}.N", len(looked_for["y"]))
        assert type("T", (Thief,), {"observes": kind})().fit(seen).found_ == []


def steal(kind, observation, secret, monkeypatch, folder=Path("nowhere")) -> list[str]:
    """What is found of some secret numbers."""
    values = np.asarray(secret, float).ravel()
    monkeypatch.setattr(f"{__name__}.N", len(values))
    for name, wanted in (("folder", folder), ("frame", pd.DataFrame({"secret": values})), ("y", values)):
        monkeypatch.setattr(Thief, name, wanted)
    return type("T", (Thief,), {"observes": kind})().fit(observation).found_


@pytest.mark.parametrize("task", [tasks.FlowInference, tasks.FlowLearning])
@pytest.mark.parametrize("kind", [FlowCounts, observations.FlowInstances])
@pytest.mark.parametrize("on", ["node", "edge", "node_sums"])
def test_true_flows_are_not_found_in_noisy_ones(task, kind, on, monkeypatch):
    source = TaskInput("birds", {}, {}, BirdMigration(side=3, steps=5, years=2).draw(0))
    seen, truth = task().observe(source, kind, {"evidence": on, "noise": "laplace", "scale": 2.0}, 0)
    for true in (truth.edge_tables[0], truth.edge_tables[0].sum(axis=2)):
        assert steal(kind, seen, true, monkeypatch) == []
        leaky = FlowCounts(node_counts=np.ones((2, 2)), context={"extra": np.asarray(true, float).ravel()})
        assert steal(FlowCounts, leaky, true, monkeypatch)


def test_true_cross_tables_are_not_found_in_margins(tmp_path, monkeypatch):
    """The cells of all districts are as many as the counts of groups, and those of one district as many as the units."""
    votes = np.random.default_rng(3).integers(1, 1000, (6, 2, 3))  # the secret cells of each unit
    tables = write_election(tmp_path, votes, ["north"] * 3 + ["south"] * 3)
    seen, truth = tasks.EcologicalTables().observe(
        TaskInput("election", {}, {}, RecordStore.open(tmp_path)), Margins, {}, 0
    )
    assert truth.tables.tolist() == tables.tolist()
    for secret in (votes, *votes, tables, *tables):
        assert steal(Margins, seen, secret, monkeypatch, tmp_path) == []
        leaky = Margins.from_frames(votes.sum(axis=2), votes.sum(axis=1))
        object.__setattr__(leaky, "extra", secret)
        assert steal(Margins, leaky, secret, monkeypatch, tmp_path)


def test_targets_of_test_bags_are_not_found_in_bags_to_learn_from(monkeypatch):
    source = TaskInput("gaussian_bags", {}, {}, GaussianBags(n_bags=20, n_validation=0, n_test=30, bag_size=4).draw(0))
    seen, truth = tasks.DistributionRegression().observe(source, Bags, {}, 0)
    assert steal(Bags, seen, truth.bags.target, monkeypatch) == []
    leaky = Bags(truth.bags.X, truth.bags.offsets, target=truth.bags.target)
    assert steal(Bags, leaky, truth.bags.target, monkeypatch)


def test_every_task_is_searched():
    known, todo = set(), [Task]
    while todo:
        todo += (found := todo.pop().__subclasses__())
        known |= {t for t in found if t.__module__.startswith("agglearn")}
    public_tasks = {t for t in known if not t.__name__.startswith("_")}
    searched = {BagClassification, Classification, Compression, SubsetClassification, tasks.DistributionRegression}
    searched |= {tasks.EcologicalTables, tasks.FlowInference, tasks.FlowLearning}
    assert public_tasks == searched, "name the new task in the parameters above"


@pytest.mark.parametrize("leak", ["array", "list", "path", "closure", "nested", "view", "shuffled"])
def test_the_thief_finds_what_is_smuggled(hidden, leak):
    frame, y, _, store = hidden
    tables = ContingencyTables.from_records(frame.assign(y=y), "y")

    class Reader:
        __slots__ = ("read",)

    reader = Reader()
    reader.read = (lambda labels: lambda: labels)(y).__closure__
    smuggled = {
        "array": y, "list": list(map(int, y)), "path": str(store.folder / "labels.parquet"), "closure": reader,
        "nested": {"a": [({"b": frame[["job"]]},)]}, "view": y.copy()[:10], "shuffled": np.sort(y),
    }[leak]  # fmt: skip
    object.__setattr__(tables, "extra", smuggled)
    assert Thief().fit(tables).found_
