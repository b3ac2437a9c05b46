"""Learners that take noisy aggregates for exact ones say so, and experiments do it on purpose only."""

import json
import warnings

import numpy as np
import pytest
from samples import ROOT, people, shipped_config

from agglearn import maxent
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import NoiseIgnored
from agglearn.labelsums import AggregateSearch, BaseRateClassifier, WALRClassifier
from agglearn.maxent import (
    ExactNoiseAwareMaxEntClassifier,
    FeatureSubsets,
    MaxEntClassifier,
    NoiseAwareMaxEntClassifier,
)
from agglearn.observations import Bags, ContingencyTables, CountedBags, LabelSums
from agglearn.observations.release import release_bag_counts, release_tables
from agglearn.privacy import draw_seeded
from agglearn.proportions import AlternatingMeanMapClassifier, BagLearnerOnRecords, CardinalityClassifier
from agglearn.registry import build
from agglearn.vocabulary import OptimalQuantizer
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.plan import Plan
from agglearn_workflow.runs.execution import Source, execute_run, observe_runs
from arena.records import PrivateRecords

QUICK = {"n_chains": 200, "max_iter": 5}


@pytest.fixture(scope="module")
def observed() -> dict:
    """{kind: (exact, noisy)}."""
    frame = people(300)
    x, y = frame.drop(columns="y"), frame["y"].to_numpy()
    encoder = FrameEncoder.fit(x)
    tables = ContingencyTables.from_records(frame, "y", ["age", "job", "home"])
    sums = LabelSums.from_map(FeatureMap.fit("onehot", encoder, x), x, y)
    counted = CountedBags.from_records(encoder, x, y, 10, np.random.default_rng(0))
    draw = draw_seeded(0)
    return {
        ContingencyTables: (tables, release_tables(tables, 1.0, 1e-6, draw=draw)),
        LabelSums: (sums, sums.private(1.0, 1e-6, draw=draw)),
        CountedBags: (counted, release_bag_counts(counted, 1.0, draw=draw)),
        Bags: (counted.bags(), release_bag_counts(counted.bags(), 1.0, draw=draw)),
    }


IGNORING = [
    MaxEntClassifier(**QUICK), maxent.NaiveBayesClassifier(), maxent.BestPairClassifier(), BaseRateClassifier(),
    WALRClassifier(noise_aware=False), CardinalityClassifier(max_iter=2, e_step="tree"),
    BagLearnerOnRecords(AlternatingMeanMapClassifier(max_iter=2)),
]  # fmt: skip
ACCOUNTING = [
    NoiseAwareMaxEntClassifier(**QUICK), ExactNoiseAwareMaxEntClassifier(max_iter=1), WALRClassifier(),
    CardinalityClassifier(max_iter=2), BagLearnerOnRecords(CardinalityClassifier(max_iter=2)), OptimalQuantizer(5),
]  # fmt: skip
named = lambda estimator: type(estimator).__name__  # noqa: E731


@pytest.mark.parametrize("estimator", IGNORING, ids=named)
def test_whoever_takes_noise_for_exact_warns_once(estimator, observed):
    exact, noisy = observed[estimator.observes]
    with pytest.warns(NoiseIgnored, match=f"{named(estimator)} takes noisy .* for exact") as said:
        estimator.fit(noisy)
    assert sum(issubclass(w.category, NoiseIgnored) for w in said) == 1
    if estimator.observes is ContingencyTables:  # some of whose counts are below zero
        assert np.isfinite(estimator.predict_proba(people(50, seed=9))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseIgnored)
        estimator.fit(exact)


@pytest.mark.parametrize("estimator", ACCOUNTING, ids=named)
def test_whoever_accounts_for_noise_does_not_warn(estimator, observed):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseIgnored)
        for observation in observed[estimator.observes]:
            estimator.fit(observation)


@pytest.mark.parametrize("wrapped", [AggregateSearch, FeatureSubsets])
def test_a_learner_of_learners_warns_for_them(wrapped, observed):
    more = {"values": (16.0,)} if wrapped is AggregateSearch else {"size": 2}
    exact, noisy = observed[ContingencyTables]
    with pytest.warns(NoiseIgnored) as said:
        wrapped(MaxEntClassifier(**QUICK), **more).fit(noisy)
    assert sum(issubclass(w.category, NoiseIgnored) for w in said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseIgnored)
        wrapped(NoiseAwareMaxEntClassifier(**QUICK), **more).fit(noisy)
        wrapped(MaxEntClassifier(**QUICK), **more).fit(exact)  # halves of exact tables are noisy only in name


@pytest.mark.slow
def test_experiments_say_that_they_ignore_noise(tmp_path):
    bayes, aware = (
        {"class": "agglearn.maxent.NaiveBayesClassifier"},
        {"class": "agglearn.maxent.NoiseAwareMaxEntClassifier"},
    )
    aware |= {"params": QUICK}
    methods = {"silent": bayes, "stated": bayes | {"ignore_noise": True}}
    methods |= {"aware": aware, "in_vain": aware | {"ignore_noise": True}}
    trial = {
        "source": "maxent", "title": "noise", "task": "agglearn.tasks.Classification",
        "datasets": {"loglinear": {"n": 300}}, "seeds": [0], "measures": ["nllh"],
        "observe": {"tables": {"type": "agglearn.observations.ContingencyTables", "epsilon": 1}},
        "methods": {name: {"observe": "tables", **method} for name, method in methods.items()},
    }  # fmt: skip
    config = configuration.load(ROOT, {"experiments": {"trial": trial}, "run": ["trial"], "scale": "smoke"})
    plan, observed = Plan(config), tmp_path / "observed"
    sources = {"loglinear": Source.of(config, "loglinear")}
    observe_runs(plan.runs("trial"), plan.experiments["trial"], sources, observed, lambda *_: None)
    outcome = {}
    for run in plan.runs("trial"):
        (tmp_path / run.method).mkdir()
        outcome[run.method] = execute_run(run, observed / "loglinear", tmp_path / run.method)[:2]
    assert outcome["stated"] == outcome["aware"] == ("ok", None)
    assert outcome["silent"][0] == outcome["in_vain"][0] == "failed"
    assert "ignore_noise: true" in outcome["silent"][1]
    assert "accounts for noise" in outcome["in_vain"][1]


NOISE = ("epsilon", "gaussian_noise", "noise_share")


def noisy_methods() -> list:
    """(experiment, method, estimator, whether it states that it ignores noise) of all that may be given noise."""
    plan, found = Plan(shipped_config() | {"scale": "paper"}), {}
    for run in (run for name in plan.experiments for run in plan.runs(name)):
        if any(json.loads(run.observation_params).get(k) for k in NOISE) and run.experiment[:10] != "collective":
            recipe = {"class": run.settings["class"], "params": json.loads(run.params)}
            found[run.experiment, run.method] = build(recipe, random_state=0), run.settings["ignore_noise"]
    return [(*names, *what) for names, what in found.items()]


def test_shipped_experiments_state_what_they_do_with_noise():
    methods = noisy_methods()
    assert len({experiment for experiment, *_ in methods}) >= 8
    for name, method, estimator, stated in methods:
        if estimator.observes is PrivateRecords:  # records and a budget, without noise
            continue
        assert stated != estimator.accounts_for_noise, f"{name}: {method}"
