"""Seeds of learners: one repeats, two differ, the global random state plays no part, and runs share no stream.

Every learner of the package has a row: what it draws under a seed, or that it draws nothing.
"""

import contextlib
import itertools
import json
import random

import numpy as np
import pytest
from observed import BOTH, COUNTED, FLOWS, FRAME, MOVE, MOVES, NESTS, RECORDS, SUMS
from test_estimator_conventions import learners

from agglearn import collective, distribution, labelsums, maxent, proportions, vocabulary
from agglearn.collective import ChainModel
from agglearn.observations import (
    Bags,
    ContingencyTables,
    FlowInstances,
    LabelledBags,
    with_gaussian_noise,
)
from agglearn.proportions.base import BagClassifier, validation_likelihood
from agglearn.tasks import Classification, Measurement
from agglearn.vocabulary import OptimalQuantizer, Quantizer
from agglearn_workflow.plan import Run, canonical
from agglearn_workflow.runs import execution

TABLES = ContingencyTables.from_records(FRAME[["job", "home", "y"]], "y")
NOISY = with_gaussian_noise(TABLES, 2.0, 0)
X = np.random.default_rng(0).normal(size=(160, 2))
LABELS = (X[:, 0] + np.random.default_rng(1).normal(size=160) > 0).astype(int)
POSITIVES = np.add.reduceat(LABELS, np.arange(0, 160, 4))
BAGS = Bags(X, np.arange(0, 161, 4), POSITIVES)
CLOUDS = Bags(X, np.arange(0, 161, 4), target=X[::4, 0])
CLASSES = Bags(X, np.arange(0, 161, 4), target=(X[::4, 0] > 0).astype(int))
VECTORS = np.random.default_rng(1).normal(size=(60, 3))
COUNTS = np.random.default_rng(2).integers(10, 50, 120)
ONES = np.random.default_rng(3).binomial(COUNTS, 0.3)
YEARS = FlowInstances((MOVES,))
SMALL = {"features": (4, 4), "regressor": (4,), "steps": 10, "batch_size": 8, "device": "cpu"}


@contextlib.contextmanager
def held_out():
    """Bags on which a choice of λ was scored."""
    seen, right = [], BagClassifier._choose_l2

    def spied(model, bags, fitter, score=None, *more):
        score = score or validation_likelihood
        return right(model, bags, fitter, lambda held, theta: seen.append(held.X[:, 0]) or score(held, theta), *more)

    BagClassifier._choose_l2 = spied
    try:
        yield seen
    finally:
        BagClassifier._choose_l2 = right


PLACES = (
    np.array([[30.0, 20], [10, 40], [25, 5]]),
    np.array([[35.0, 15], [15, 35], [20, 10]]),
)  # margins of three places


def folds(model):
    """What a classifier of bags draws: which bags are held out, the first part of them."""
    with held_out() as seen:
        model.fit(BAGS)
    return seen[0]


def held_out_bags(model):
    """Which bags choose the number of stages."""
    seen = []

    def boost(bags, held_out, n_stages):
        seen.append(held_out)
        model.n_stages_ = 0

    model._boost = boost
    model.fit(BAGS)
    return seen[0].X


def deep_sets(model, bags):
    weights = model.fit(bags).weights_
    return np.concatenate([w.ravel() for w in weights.values()])


def of_clusters(model):
    return model.fit(RECORDS).scores_


def reached(s):
    model = collective.GibbsVersusMAP(
        n_runs=2, n_moves=400, stages=4, random_state=s, n_references=2, reference_moves=800
    )
    fitted = model.fit(FLOWS)
    return [fitted.gibbs_error_, fitted.map_error_, fitted.reference_error_]


SEEDED = {  # learner → what it draws under a seed
    collective.FlowReconstruction: lambda s: collective.FlowReconstruction("gibbs", {"n_moves": 400}, random_state=s)
        .fit(FLOWS).edge_tables_,
    collective.GibbsVersusMAP: reached,
    collective.MobilityEM: lambda s: collective.MobilityEM(n_iter=0, start="random", learner="em", random_state=s)
        .fit(YEARS).theta_,
    distribution.BagOfWordsEmbedding: lambda s: distribution.BagOfWordsEmbedding(5, 1, random_state=s).fit(CLOUDS).centres_,
    distribution.DeepSetsClassifier: lambda s: deep_sets(distribution.DeepSetsClassifier(**SMALL, random_state=s), CLASSES),
    distribution.DeepSetsRegressor: lambda s: deep_sets(distribution.DeepSetsRegressor(**SMALL, random_state=s), CLOUDS),
    distribution.EmbeddingClassifier: lambda s: distribution.EmbeddingClassifier(
        distribution.RandomFourierEmbedding(3), distribution.MultinomialLogistic(), random_state=s
    ).fit(CLASSES).embedding_.frequencies_,
    distribution.EmbeddingRegressor: lambda s: distribution.EmbeddingRegressor(
        distribution.RandomFourierEmbedding(3), distribution.LinearRidge(), random_state=s
    ).fit(CLOUDS).embedding_.frequencies_,
    distribution.FisherVectorEmbedding: lambda s: distribution.FisherVectorEmbedding(5, 1, random_state=s)
        .fit_transform(CLOUDS),
    distribution.KernelRidge: lambda s: distribution.KernelRidge(landmarks=4, random_state=s)
        .fit(VECTORS, VECTORS[:, 0]).landmarks_,
    distribution.MultinomialLogistic: lambda s: distribution.MultinomialLogistic(random_state=s)
        .fit(VECTORS, VECTORS[:, 0] > 0).score_,
    distribution.OrthogonalRandomEmbedding: lambda s: distribution.OrthogonalRandomEmbedding(3, random_state=s)
        .fit(CLOUDS).frequencies_,
    distribution.PointNetClassifier: lambda s: deep_sets(distribution.PointNetClassifier(**SMALL, random_state=s), CLASSES),
    distribution.RandomFourierEmbedding: lambda s: distribution.RandomFourierEmbedding(3, random_state=s)
        .fit(CLOUDS).frequencies_,
    labelsums.BoostedTreesSkyline: lambda s: labelsums.BoostedTreesSkyline(20, random_state=s).fit(RECORDS)
        .predict_proba(FRAME),
    labelsums.LabelledGradientDescent: lambda s: labelsums.LabelledGradientDescent(max_iter=3, batch_size=8, random_state=s)
        .fit(RECORDS).coef_,
    labelsums.AggregateSearch: lambda s: labelsums.AggregateSearch(
        maxent.MaxEntClassifier(20, max_iter=3), values=(1.0, 64.0), random_state=s
    ).fit(TABLES).scores_,
    labelsums.RecordSearch: lambda s: labelsums.RecordSearch(
        labelsums.WALRClassifier(), "l2", (1.0, 64.0), random_state=s
    ).fit(RECORDS).scores_,
    labelsums.TablesAndSampleClassifier: lambda s: labelsums.TablesAndSampleClassifier(
        maxent.NaiveBayesClassifier(), trees=False, random_state=s
    ).fit(BOTH).scores_,
    labelsums.WALRClassifier: lambda s: labelsums.WALRClassifier("hybrid", max_iter=3, batch_size=8, random_state=s)
        .fit(SUMS).coef_,
    maxent.FeatureSubsets: lambda s: next(iter(maxent.FeatureSubsets(
        maxent.MaxEntClassifier(20, max_iter=3), 2, random_state=s
    ).fit(TABLES).models_.values())).theta_,
    maxent.LogisticSkyline: lambda s: maxent.LogisticSkyline(quadratic=False, max_iter=5, random_state=s)
        .fit(RECORDS).path_[:3],
    maxent.MaxEntClassifier: lambda s: maxent.MaxEntClassifier(20, max_iter=3, random_state=s).fit(TABLES).theta_,
    maxent.NaiveBayesClassifier: lambda s: maxent.NaiveBayesClassifier("pcd", n_chains=20, max_iter=3, random_state=s)
        .fit(TABLES).theta_,
    maxent.NoiseAwareMaxEntClassifier: lambda s: maxent.NoiseAwareMaxEntClassifier(20, max_iter=3, random_state=s)
        .fit(NOISY).theta_,
    proportions.AlternatingMeanMapClassifier: lambda s: folds(
        proportions.AlternatingMeanMapClassifier(max_iter=2, random_state=s)),
    proportions.CardinalityClassifier: lambda s: folds(
        proportions.CardinalityClassifier(max_iter=2, random_state=s)),
    proportions.MeanEmbeddingClassifier: lambda s: folds(
        proportions.MeanEmbeddingClassifier(random_state=s)),
    proportions.MeanMapClassifier: lambda s: folds(proportions.MeanMapClassifier(random_state=s)),
    proportions.EasyLLPClassifier: lambda s: folds(proportions.EasyLLPClassifier(random_state=s)),
    proportions.CardinalityBoosting: lambda s: held_out_bags(proportions.CardinalityBoosting(random_state=s)),
    proportions.NormalApproximationClassifier: lambda s: folds(
        proportions.NormalApproximationClassifier(max_iter=2, random_state=s)),
    proportions.BagLearnerOnRecords: lambda s: proportions.BagLearnerOnRecords(proportions.MeanMapClassifier(l2=1.0), random_state=s)
        .fit(COUNTED).learner_.random_state,
    proportions.FeatureMapClassifier: lambda s: proportions.FeatureMapClassifier(
        proportions.MeanMapClassifier(), distribution.RandomFourierEmbedding(4), [1.0], [1.0], random_state=s
    ).fit(BAGS).embedding_.frequencies_,
    vocabulary.LogisticOnClusters: lambda s: of_clusters(
        vocabulary.LogisticOnClusters(OptimalQuantizer(8), random_state=s)),
    vocabulary.NetworkOnClusters: lambda s: of_clusters(
        vocabulary.NetworkOnClusters(OptimalQuantizer(8), trials=1, epochs=1, batch_size=64, random_state=s)),
    proportions.EcologicalInference: lambda s: proportions.EcologicalInference(random_state=s).fit(*PLACES).low_,
    vocabulary.SubmodularQuantizer: lambda s: vocabulary.SubmodularQuantizer(20, epsilon=0.9, random_state=s)
        .fit(COUNTS, ONES).information_,
}  # fmt: skip


def clusters(kind, **more):
    return lambda s: kind(20, **more, random_state=s).fit(COUNTS, ONES).labels_


UNSEEDED = {  # learner → what it learns, whatever the seed
    collective.MigrationEM: lambda s: collective.MigrationEM(n_iter=1, random_state=s).fit(FlowInstances((NESTS,))).theta_,
    collective.MobilityBaseline: lambda s: collective.MobilityBaseline(5, random_state=s).fit(YEARS).theta_,
    collective.PublishedCounts: lambda s: collective.PublishedCounts(random_state=s).fit(YEARS).edge_tables_[0],
    collective.ShrunkenTables: lambda s: collective.ShrunkenTables(random_state=s).fit(FlowInstances((MOVE, MOVE)))
        .edge_tables_[0],
    collective.SharedTableEM: lambda s: collective.SharedTableEM(n_iter=1, random_state=s)
        .fit(FlowInstances((MOVE,))).theta_,
    collective.TunedReconstruction: lambda s: collective.TunedReconstruction(
        "nlbp-feasible", values=(0.5,), options={"max_iter": 5}, random_state=s).fit(FLOWS).edge_tables_,
    distribution.LinearRidge: lambda s: distribution.LinearRidge(random_state=s).fit(VECTORS, VECTORS[:, 0]).coef_,
    distribution.MomentEmbedding: lambda s: distribution.MomentEmbedding(random_state=s).fit_transform(CLOUDS),
    labelsums.BaseRateClassifier: lambda s: labelsums.BaseRateClassifier(random_state=s).fit(TABLES).rate_,
    labelsums.SklearnLogistic: lambda s: labelsums.SklearnLogistic(random_state=s).fit(RECORDS).coef_,
    maxent.BestPairClassifier: lambda s: maxent.BestPairClassifier(random_state=s).fit(TABLES).scores_,
    maxent.ExactMaxEntClassifier: lambda s: maxent.ExactMaxEntClassifier(random_state=s).fit(TABLES).theta_,
    maxent.ExactNoiseAwareMaxEntClassifier: lambda s: maxent.ExactNoiseAwareMaxEntClassifier(
        max_iter=2, random_state=s).fit(NOISY).theta_,
    proportions.IndividualClassifier: lambda s: proportions.IndividualClassifier(random_state=s)
        .fit(LabelledBags(BAGS, LABELS)).coef_,
    proportions.InverseCalibrationClassifier: lambda s: proportions.InverseCalibrationClassifier(random_state=s)
        .fit(BAGS).coef_,
    proportions.IndependentTables: lambda s: proportions.IndependentTables(random_state=s).fit(*PLACES).tables_,
    proportions.LeastSquaresTables: lambda s: proportions.LeastSquaresTables(random_state=s).fit(*PLACES).tables_,
    proportions.LinearProgrammeTables: lambda s: proportions.LinearProgrammeTables(random_state=s).fit(*PLACES).tables_,
    vocabulary.AgglomerativeQuantizer: clusters(vocabulary.AgglomerativeQuantizer),
    vocabulary.BucketingQuantizer: clusters(vocabulary.BucketingQuantizer),
    vocabulary.DistributedSubmodularQuantizer: clusters(vocabulary.DistributedSubmodularQuantizer),
    vocabulary.DivisiveQuantizer: clusters(vocabulary.DivisiveQuantizer),
    vocabulary.FrequencyQuantizer: clusters(vocabulary.FrequencyQuantizer),
    vocabulary.OptimalQuantizer: clusters(vocabulary.OptimalQuantizer),
}  # fmt: skip
ABSTRACT = (Quantizer, distribution.Embedding)
FOLDED = [q for q in learners() if issubclass(q, Quantizer) and q is not Quantizer and q.uses_labels]


def flat(result) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in result]) if isinstance(result, list) else np.ravel(result)


def name(kind) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", [k for k in learners() if k not in ABSTRACT], ids=name)
def test_every_learner_has_a_row(kind):
    assert (kind in SEEDED) != (kind in UNSEEDED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEEDED, ids=name)
def test_a_seed_repeats_and_two_differ(kind):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    first, other = flat(SEEDED[kind](1)), flat(SEEDED[kind](2))
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    again = flat(SEEDED[kind](1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002  (nothing was drawn from it)


@pytest.mark.parametrize("kind", UNSEEDED, ids=name)
def test_who_draws_nothing_learns_the_same(kind):
    np.testing.assert_array_equal(flat(UNSEEDED[kind](1)), flat(UNSEEDED[kind](2)))


@pytest.mark.parametrize("kind", FOLDED, ids=name)
def test_folds_of_records_are_drawn_by_the_seed(kind):
    """Records that are clustered for a learner are clustered by the other folds, which the seed draws."""
    frame = FRAME[["age", "zone"]]
    found = [kind(12, random_state=s).fit_transform(frame, FRAME["y"]) for s in (1, 2, 1)]
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])


def test_learners_inside_learners_have_streams_of_their_own():
    model = distribution.EmbeddingRegressor(
        distribution.RandomFourierEmbedding(3), distribution.KernelRidge(landmarks=4), random_state=1
    ).fit(CLOUDS)
    states = [1, model.embedding_.random_state, model.regressor_.random_state]
    assert len(set(states)) == 3
    clustered = vocabulary.LogisticOnClusters(vocabulary.SubmodularQuantizer(8), random_state=1).fit(RECORDS)
    assert clustered.quantizer_.random_state != 1
    base = maxent.MaxEntClassifier(20, max_iter=3)
    chosen = labelsums.AggregateSearch(base, values=(1.0, 64.0), random_state=5).fit(TABLES)
    assert chosen.model_.random_state == 5


def test_samplers_of_one_learner_have_streams_of_their_own(monkeypatch):
    """Runs that are judged, and runs that they are judged by."""
    seen, right = [], collective.reconstruction.infer

    def spied(*problem, method="dual-newton", **options):
        if method == "gibbs" or problem[3:] == ("gibbs",):
            seen.append(options["random_state"])
        return right(*problem, **options) if problem[3:] else right(*problem, method=method, **options)

    monkeypatch.setattr(collective.reconstruction, "infer", spied)
    reached(1)
    assert len(seen) == len(set(seen)) == 4
    tables = [
        flat(right(ChainModel(np.zeros((2, 2, 2))), FLOWS, 30, method="gibbs", n_moves=400, random_state=s).edge_tables)
        for s in seen
    ]
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(tables, 2))


def test_samples_that_judge_a_value_are_drawn_by_the_seed(monkeypatch):
    """Without them every seed would share the error of one sample; all values of one fit are judged by the same."""
    seeds = []
    monkeypatch.setattr(maxent.MaxEntClassifier, "held_out_score", lambda model, held, seed: seeds.append(seed) or 0.0)
    for state in (1, 2, 1):
        base = maxent.MaxEntClassifier(20, max_iter=3)
        labelsums.AggregateSearch(base, values=(1.0, 64.0), random_state=state).fit(TABLES)
    assert seeds[0] == seeds[1] == seeds[4] == seeds[5] != seeds[2] == seeds[3]
    assert 1 not in seeds  # nor those of the learner
    monkeypatch.undo()
    model = maxent.MaxEntClassifier(20, max_iter=3, random_state=0).fit(TABLES)
    scores = [model.held_out_score(TABLES, seed, 200) for seed in (1, 2, 1)]
    assert scores[0] == scores[2] != scores[1]


def test_chains_and_sweeps_have_streams_of_their_own():
    """Chains begin and move apart, blocks of chains move as all of them do, and no two sweeps are alike."""
    from agglearn.maxent.engines.numba_chains import Chains
    from agglearn.maxent.weight_index import WeightIndex

    layout = WeightIndex.from_tables(TABLES)

    def moved(seed, n=64, iterations=(1,), **more):
        chains = Chains(layout, n, 0.0, seed, **more)
        chains.set_weights(np.zeros(len(layout.d)), np.zeros(len(layout.d)))
        for i in iterations:
            chains.sweep(i)
        return chains.positions.copy()

    whole = moved(1)
    assert len(np.unique(whole, axis=0)) > 1
    assert not np.array_equal(whole, moved(2))
    assert not np.array_equal(moved(1, iterations=(1, 2)), moved(1, iterations=(1, 3)))
    start = Chains(layout, 64, 0.0, 1).positions
    parts = [moved(1, 32, first=k, positions=start[k : k + 32].copy()) for k in (0, 32)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(
        moved(1, 32, first=0, positions=start[:32].copy()), moved(1, 32, first=32, positions=start[:32].copy())
    )


# -- runs -------------------------------------------------------------------------------------------------------------


def run(
    method="a", params="{}", seed=0, dataset="d", dataset_params="{}", observation_params="{}", experiment="e"
) -> Run:
    spec = {
        "class": "agglearn.labelsums.BaseRateClassifier", "task": "agglearn.tasks.Classification",
        "type": "agglearn.observations.ContingencyTables", "measures": ["brier"], "keep_model": "none", "ignore_noise": False,
    }  # fmt: skip
    return Run(experiment, dataset, dataset_params, "tables", observation_params, method, params, seed, canonical(spec))


RUNS = [
    run(), run(seed=1), run(method="b"), run(params='{"l2": 1}'), run(dataset="c"), run(dataset_params='{"n": 5}'),
    run(observation_params='{"epsilon": 1}'),
]  # fmt: skip


class Drawing:
    """A learner that draws from its own stream and from both global ones."""

    accounts_for_noise = False

    def __init__(self, random_state):
        self.rng = np.random.default_rng(random_state)

    def describe_ignored_noise(self, observation):
        return None

    def fit(self, observation):
        self.p = (self.rng.random() + np.random.random() + random.random()) / 3  # noqa: NPY002

    def predict_proba(self, frame):
        return np.tile([1 - self.p, self.p], (len(frame), 1))


@pytest.fixture
def observed(tmp_path):
    from agglearn.tasks.classification import HeldOutRows

    for one in RUNS:
        folder = tmp_path / one.slot
        for part in ("observation", "truth"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        TABLES.save(folder / "observation")
        HeldOutRows(FRAME[["job", "home"]], FRAME["y"].to_numpy(np.int8)).save(folder / "truth")
        (folder / "units.json").write_text(json.dumps({"tested": "t", "overlap": 0.0}))
    return tmp_path


def test_no_two_runs_share_a_stream(observed, monkeypatch, tmp_path):
    states = []
    monkeypatch.setattr(
        execution, "build", lambda value, random_state: states.append(random_state) or Drawing(random_state)
    )
    for one in [*RUNS, RUNS[0], run(experiment="another")]:
        assert execution.execute_run(one, observed, tmp_path)[0] == "ok"
    assert len(set(states)) == len(RUNS)
    assert states[-2:] == [states[0]] * 2  # a run again, and the same run in another experiment


def test_keys_are_stored_as_json_and_unknown_ones_refused(observed, monkeypatch, tmp_path):
    monkeypatch.setattr(execution, "build", lambda value, random_state: Drawing(random_state))
    for keys, expected in (
        ({"feature": "job", "modality": "é"}, '{"feature": "job", "modality": "é"}'),
        (None, None),
        ({"featur": "job"}, "Classification: brier has the keys featur, which KEYS lacks"),
    ):
        one = Measurement("brier", 0.5, keys)
        monkeypatch.setattr(Classification, "measure", lambda self, estimator, truth, measures, one=one: [one])
        outcome = execution.execute_run(RUNS[0], observed, tmp_path)
        assert expected == outcome.rows[0]["keys"] if outcome.status == "ok" else expected in outcome.reason


def test_a_run_is_the_same_in_any_order_and_any_batch(observed, monkeypatch, tmp_path):
    monkeypatch.setattr(execution, "build", lambda value, random_state: Drawing(random_state))

    def results(runs):
        found = {}
        for one in runs:
            status, _, trace, rows = execution.execute_run(one, observed, tmp_path)
            assert status == "ok", trace
            found[one.key] = [row["value"] for row in rows if row["measure"] == "brier"]
        return found

    first = results(RUNS)
    assert len({tuple(v) for v in first.values()}) == len(RUNS)
    assert results(RUNS[::-1]) == first
    assert results(RUNS[3:4]) == {RUNS[3].key: first[RUNS[3].key]}
