"""What every learner keeps to. A new class is found by itself: it is fitted to the first sample of what it observes."""

import functools
import inspect
import io
import json
import re
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from observed import BAGS, CLASSES, CLOUDS, FLOWS, FRAME, LABELS, MOVE, MOVES, NESTS, X, bags_of, learners, sums_of
from sklearn.base import ClassifierMixin, clone
from test_random_learners import PLACES, SEEDED

import agglearn
from agglearn import observations, progress
from agglearn.distribution import Embedding, LinearRidge, MomentEmbedding, MultinomialLogistic
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.maxent import MaxEntClassifier
from agglearn.proportions import MeanMapClassifier
from agglearn.vocabulary import OptimalQuantizer, Quantizer

COLUMNS = ["job", "home", "zone"]
TABLES = observations.ContingencyTables.from_records(FRAME[[*COLUMNS, "y"]], "y", categorical=COLUMNS)
RECORDS = observations.Records.from_records(FRAME[[*COLUMNS, "y"]], "y", categorical=COLUMNS)
SUMS, COUNTED = sums_of(RECORDS), bags_of(RECORDS)
SAMPLES = {  # what a class observes → samples of it; a learner takes one of them
    observations.ContingencyTables: [TABLES],
    observations.Records: [RECORDS],
    observations.LabelSums: [SUMS],
    observations.CountedBags: [COUNTED],
    observations.TablesAndSample: [observations.TablesAndSample(TABLES, RECORDS)],
    observations.Bags: [BAGS, CLOUDS, CLASSES],
    observations.LabelledBags: [observations.LabelledBags(BAGS, LABELS)],
    observations.FlowCounts: [FLOWS],
    observations.Margins: [observations.Margins.from_frames(*PLACES)],
    observations.FlowInstances: [
        observations.FlowInstances(instances) for instances in ((MOVES,), (NESTS,), (MOVE,), (MOVE, MOVE))
    ],
}
SAMPLES[agglearn.observations.Observation] = [TABLES, observations.Halves(TABLES, TABLES), BAGS]
NEEDED = {  # parameters without a default, by name
    "base": MaxEntClassifier(n_chains=40, max_iter=3), "learner": MeanMapClassifier(l2=1.0),
    "quantizer": OptimalQuantizer(5), "embedding": MomentEmbedding(), "budget": 5,
}  # fmt: skip
BASES = (Embedding, Quantizer)  # to be subclassed
REGRESSORS = {False: LinearRidge(), True: MultinomialLogistic()}
QUICK = {"max_iter": 3, "n_iter": 1, "n_chains": 40, "steps": 5, "n_moves": 200, "n_runs": 2, "reference_moves": 400}
QUICK |= {"stages": 2, "n_words": 4, "n_components": 2, "n_frequencies": 4, "batch_size": 16, "landmarks": 5}


def build(kind: type[Estimator]) -> Estimator:
    """A learner with few iterations and a seed."""
    parameters = inspect.signature(kind).parameters
    given = {n: NEEDED[n] for n, p in parameters.items() if p.default is p.empty and n in NEEDED}
    given |= {"regressor": REGRESSORS[kind.classifies]} if "regressor" in parameters and "embedding" in given else {}
    return kind(**given, **{n: v for n, v in QUICK.items() if n in parameters}, random_state=3)


@functools.cache
def fitted(kind: type[Estimator]):
    """A learner, fitted to the first sample that its class takes, and this sample."""
    refusals = []
    for sample in SAMPLES[kind.observes]:
        try:
            return build(kind).fit(sample), sample
        except ValueError as error:  # ours and those of scikit-learn
            refusals.append(error)
    raise AssertionError(f"{kind.__name__} takes no sample of {kind.observes.__name__}: {refusals}")


def learned(model: Estimator) -> dict:
    """Learned state by name."""
    return {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}


def answers(model: Estimator, sample) -> dict:
    """What a fitted model says of the sample that it was fitted to."""
    x = FRAME
    if isinstance(sample, observations.Bags | observations.LabelledBags):
        x = X if isinstance(model, ClassifierMixin) and "predict_counts" in dir(model) else sample
    asked = [n for n in ("predict_proba", "predict", "transform", "subset_predict_proba") if hasattr(model, n)]
    out = {n: getattr(model, n)(x) for n in asked}
    lasting = {n: v for n, v in learned(model).items() if n != "trace_" and not n.endswith("seconds_")}  # times differ
    return {n: dict(v) if isinstance(v, Iterator) else v for n, v in (out or lasting).items()}


def assert_same(a, b) -> None:
    """Compare arrays, and lists and dicts of them."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_array_equal(a, b)


# JAX compiles their networks, or they fit a learner many times.
SLOW = ("AggregateSearch", "AlternatingMeanMapClassifier", "NetworkOnClusters", "TablesAndSampleClassifier")
SLOW += ("DeepSetsClassifier", "DeepSetsRegressor", "PointNetClassifier")
OBSERVERS = [
    pytest.param(c, marks=[pytest.mark.slow] * (c.__name__ in SLOW), id=c.__name__)
    for c in learners()
    if hasattr(c, "observes") and c not in BASES
]


@pytest.fixture(params=OBSERVERS)
def kind(request):
    return request.param


def test_parameters_are_kept_and_copied(kind):
    model = build(kind)
    given = {n: repr(v) for n, v in model.get_params().items()}
    assert {n: repr(v) for n, v in clone(model).get_params().items()} == given
    assert {n: repr(v) for n, v in fitted(kind)[0].get_params().items()} == given


def test_other_observations_are_refused(kind):
    for observed, (sample, *_) in SAMPLES.items():
        if not issubclass(observed, kind.observes) and not isinstance(sample, kind.observes):
            with pytest.raises(DataError, match=f"(learns from|needs) {kind.observes.__name__}, not"):
                build(kind).fit(sample)


def test_a_saved_model_answers_the_same(kind, tmp_path):
    model, sample = fitted(kind)
    model.save(tmp_path / "model")
    before = answers(model, sample)
    assert before
    assert_same(answers(Estimator.load(tmp_path / "model"), sample), before)


class Terminal(io.StringIO):
    """Standard error of a person."""

    def isatty(self) -> bool:
        return True


CLOSED = {  # one formula or one kernel, or the solver is another library's
    "BaseRateClassifier", "BoostedTreesSkyline", "InverseCalibrationClassifier", "MomentEmbedding",
    "NaiveBayesClassifier", "OrthogonalRandomEmbedding", "PublishedCounts", "RandomFourierEmbedding",
    "ShrunkenTables", "SklearnLogistic",
}  # fmt: skip


def test_a_fit_shows_its_progress_on_a_terminal_and_nothing_elsewhere(kind, monkeypatch):
    model, sample = clone(fitted(kind)[0]), fitted(kind)[1]
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with warnings.catch_warnings(action="ignore"):
        model.fit(sample)
        monkeypatch.setattr(sys, "stderr", file := io.StringIO())
        model.fit(sample)
    assert file.getvalue() == ""
    assert ("it/s" in terminal.getvalue()) == (kind.__name__ not in CLOSED)


HOSTILE = {
    "shorter": lambda c: c[:-1], "longer": lambda c: np.append(c, c[-1:] + 1),
    "equal": lambda c: np.repeat(c[:1], len(c)), "in another order": lambda c: c[::-1].copy(),
    "2-D": lambda c: c[None], "no axis": lambda c: np.array(1), "complex": lambda c: c.astype(complex),
    "no numbers": lambda c: np.full(len(c), np.nan),
}  # fmt: skip


def test_classes_of_a_stranger_are_refused(kind, tmp_path):
    fitted(kind)[0].save(tmp_path)
    arrays = dict(np.load(tmp_path / "model.npz"))
    for name in [n for n in arrays if n.endswith("classes_")]:
        for spoil in HOSTILE.values():
            np.savez(tmp_path / "model.npz", **{**arrays, name: spoil(arrays[name])})
            with pytest.raises(DataError, match=r"classes_"):
                Estimator.load(tmp_path)
        np.savez(tmp_path / "model.npz", **arrays)
        text = (tmp_path / "model.json").read_text()
        (tmp_path / "model.json").write_text(text.replace(json.dumps({"__array__": name}), '"evil"'))
        with pytest.raises(DataError, match=r"classes_"):
            Estimator.load(tmp_path)
        (tmp_path / "model.json").write_text(text)


def test_a_seed_repeats_itself_and_who_draws_nothing_learns_the_same_under_any(kind):
    model, sample = fitted(kind)
    again = build(kind).set_params(random_state=3 if kind in SEEDED else 4).fit(sample)
    assert_same(answers(again, sample), answers(model, sample))


def test_parameters_and_learned_attributes_are_documented(kind):
    text = " ".join(inspect.getdoc(c) or "" for c in kind.__mro__ if c.__module__.startswith("agglearn"))
    names = [*inspect.signature(kind).parameters, *learned(fitted(kind)[0])]
    missing = [n for n in names if n != "random_state" and not re.search(rf"\b{re.escape(n)}", text)]
    assert not missing
