"""Seeds of learners: one repeats, two differ, the global random state plays no part, and no two samplers share a stream.

Every learner that draws has a row: what it draws under a seed. `test_contracts.py` shows that the others draw nothing.
"""

import itertools
import random
from operator import attrgetter

import numpy as np
import pytest
from observed import BAGS, BOTH, CLASSES, CLOUDS, COUNTED, FLOWS, FRAME, MOVES, RECORDS, SUMS, VECTORS, learners

from agglearn import collective, distribution, labelsums, maxent, proportions, vocabulary
from agglearn.collective import ChainModel
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables, FlowInstances, with_gaussian_noise
from agglearn.proportions.base import BagClassifier, validation_likelihood
from agglearn.vocabulary import OptimalQuantizer, Quantizer

TABLES = ContingencyTables.from_records(FRAME[["job", "home", "y"]], "y")
NOISY = with_gaussian_noise(TABLES, 2.0, 0)
COUNTS = np.random.default_rng(2).integers(10, 50, 120)
ONES = np.random.default_rng(3).binomial(COUNTS, 0.3)
YEARS = FlowInstances((MOVES,))
SMALL = {"features": (4, 4), "regressor": (4,), "steps": 10, "batch_size": 8, "device": "cpu"}


PLACES = np.array([[[30.0, 20], [10, 40], [25, 5]], [[35.0, 15], [15, 35], [20, 10]]])  # margins of three places


def folds(model, bags):
    """What a classifier of bags draws: which bags are held out, the first part of them."""
    seen, right = [], BagClassifier._choose_l2

    def spied(model, bags, fitter, score=None, *more):
        score = score or validation_likelihood
        return right(model, bags, fitter, lambda held, theta: seen.append(held.X[:, 0]) or score(held, theta), *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BagClassifier, "_choose_l2", spied)
        model.fit(bags)
    return seen[0]


def held_out_bags(model, bags):
    """Which bags choose the number of stages."""
    seen = []

    def boost(bags, held_out, n_stages):
        seen.append(held_out)
        model.n_stages_ = 0

    model._boost = boost
    model.fit(bags)
    return seen[0].X


def predictions(model, records):
    return model.fit(records).predict_proba(FRAME)


def first_subset(model, tables):
    return next(iter(model.fit(tables).models_.values())).theta_


def errors(model, flows):
    model.fit(flows)
    return [model.gibbs_error_, model.map_error_, model.reference_error_]


CHAINS = {"n_chains": 20, "max_iter": 3}
GRID = {"base": maxent.MaxEntClassifier(**CHAINS), "values": (1.0, 64.0)}
FOURIER, EIGHT = distribution.RandomFourierEmbedding(3), OptimalQuantizer(8)
RUNS_OF_BOTH = {"n_runs": 2, "n_moves": 400, "stages": 4, "n_references": 2, "reference_moves": 800}
SEEDED = {  # learner → its options, what it is fitted to, and what it draws under a seed: an attribute, or a function of the learner
    collective.FlowReconstruction: ({"method": "gibbs", "options": {"n_moves": 400}}, FLOWS, "edge_tables_"),
    collective.GibbsVersusMAP: (RUNS_OF_BOTH, FLOWS, errors),
    collective.MobilityEM: ({"n_iter": 0, "start": "random", "learner": "em"}, YEARS, "theta_"),
    distribution.BagOfWordsEmbedding: ({"n_words": 5, "max_iter": 1}, CLOUDS, "centres_"),
    distribution.DeepSetsClassifier: (SMALL, CLASSES, "weights_"),
    distribution.DeepSetsRegressor: (SMALL, CLOUDS, "weights_"),
    distribution.EmbeddingClassifier: (
        {"embedding": FOURIER, "regressor": distribution.MultinomialLogistic()}, CLASSES, "embedding_.frequencies_"),
    distribution.EmbeddingRegressor: (
        {"embedding": FOURIER, "regressor": distribution.LinearRidge()}, CLOUDS, "embedding_.frequencies_"),
    distribution.FisherVectorEmbedding: ({"n_components": 5, "max_iter": 1}, CLOUDS, "means_"),
    distribution.KernelRidge: ({"landmarks": 4}, (VECTORS, VECTORS[:, 0]), "landmarks_"),
    distribution.MultinomialLogistic: ({}, (VECTORS, VECTORS[:, 0] > 0), "score_"),
    distribution.OrthogonalRandomEmbedding: ({"n_frequencies": 3}, CLOUDS, "frequencies_"),
    distribution.PointNetClassifier: (SMALL, CLASSES, "weights_"),
    distribution.RandomFourierEmbedding: ({"n_frequencies": 3}, CLOUDS, "frequencies_"),
    labelsums.BoostedTreesSkyline: ({"max_iter": 20}, RECORDS, predictions),
    labelsums.LabelledGradientDescent: ({"max_iter": 3, "batch_size": 8}, RECORDS, "coef_"),
    labelsums.AggregateSearch: (GRID, TABLES, "scores_"),
    labelsums.RecordSearch: (GRID | {"base": labelsums.WALRClassifier(), "parameter": "l2"}, RECORDS, "scores_"),
    labelsums.TablesAndSampleClassifier: ({"base": maxent.NaiveBayesClassifier(), "trees": False}, BOTH, "scores_"),
    labelsums.WALRClassifier: ({"solver": "hybrid", "max_iter": 3, "batch_size": 8}, SUMS, "coef_"),
    maxent.FeatureSubsets: ({"base": GRID["base"], "size": 2}, TABLES, first_subset),
    maxent.LogisticSkyline: ({"quadratic": False, "max_iter": 5}, RECORDS, "path_"),
    maxent.MaxEntClassifier: (CHAINS, TABLES, "theta_"),
    maxent.NaiveBayesClassifier: (CHAINS | {"kind": "pcd"}, TABLES, "theta_"),
    maxent.NoiseAwareMaxEntClassifier: (CHAINS, NOISY, "theta_"), maxent.JointMaxEntClassifier: (CHAINS, BOTH, "theta_"),
    proportions.AlternatingMeanMapClassifier: ({"max_iter": 2}, BAGS, folds),
    proportions.CardinalityClassifier: ({"max_iter": 2}, BAGS, folds),
    proportions.MeanEmbeddingClassifier: ({}, BAGS, folds),
    proportions.MeanMapClassifier: ({}, BAGS, folds),
    proportions.EasyLLPClassifier: ({}, BAGS, folds),
    proportions.CardinalityBoosting: ({}, BAGS, held_out_bags),
    proportions.NormalApproximationClassifier: ({"max_iter": 2}, BAGS, folds),
    proportions.BagLearnerOnRecords: (
        {"learner": proportions.MeanMapClassifier(l2=1.0)}, COUNTED, "learner_.random_state"),
    proportions.FeatureMapClassifier: (
        {"learner": proportions.MeanMapClassifier(), "embedding": FOURIER, "l2": [1.0], "scale": [1.0]}, BAGS,
        "embedding_.frequencies_"),
    proportions.EcologicalInference: ({}, tuple(PLACES), "low_"),
    vocabulary.LogisticOnClusters: ({"quantizer": EIGHT}, RECORDS, "scores_"),
    vocabulary.NetworkOnClusters: ({"quantizer": EIGHT, "trials": 1, "epochs": 1, "batch_size": 64}, RECORDS, "scores_"),
    vocabulary.SubmodularQuantizer: ({"budget": 20, "epsilon": 0.9}, (COUNTS, ONES), "information_"),
}  # fmt: skip


def draw(kind, seed) -> np.ndarray:
    """What a learner draws under a seed."""
    options, observed, what = SEEDED[kind]
    model, observed = kind(**options, random_state=seed), observed if isinstance(observed, tuple) else (observed,)
    return flat(what(model, *observed) if callable(what) else attrgetter(what)(model.fit(*observed)))


FOLDED = [q for q in learners() if issubclass(q, Quantizer) and q is not Quantizer and q.uses_labels]


def flat(result) -> np.ndarray:
    parts = list(result.values()) if isinstance(result, dict) else result
    return np.concatenate([np.ravel(part) for part in parts]) if isinstance(parts, list) else np.ravel(parts)


def name(kind) -> str:
    return kind.__name__


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEEDED, ids=name)
def test_a_seed_repeats_and_two_differ(kind):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    first, other = draw(kind, 1), draw(kind, 2)
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(first, draw(kind, 1))
    assert not np.array_equal(first, other)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002  (nothing was drawn from it)


@pytest.mark.parametrize("kind", FOLDED, ids=name)
def test_folds_of_records_are_drawn_by_the_seed(kind):
    """Records that are clustered for a learner are clustered by the other folds, which the seed draws."""
    frame = FRAME[["age", "zone"]]
    found = [kind(12, random_state=s).fit_transform(frame, FRAME["y"]) for s in (1, 2, 1)]
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])


def test_learners_inside_learners_have_streams_of_their_own():
    parts = distribution.RandomFourierEmbedding(3), distribution.KernelRidge(landmarks=4)
    model = distribution.EmbeddingRegressor(*parts, random_state=1).fit(CLOUDS)
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
    draw(collective.GibbsVersusMAP, 1)
    assert len(seen) == len(set(seen)) == 4
    problem, how = (ChainModel(np.zeros((2, 2, 2))), FLOWS, 30), {"method": "gibbs", "n_moves": 400}
    tables = [flat(right(*problem, **how, random_state=s).edge_tables) for s in seen]
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(tables, 2))


def test_samples_that_judge_a_value_are_drawn_by_the_seed(monkeypatch):
    """Without them every seed would share the error of one sample; all values of one fit are judged by the same."""
    seeds = []
    monkeypatch.setattr(maxent.MaxEntClassifier, "held_out_score", lambda *held, seed, **_: seeds.append(seed) or 0.0)
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
    """Chains begin and move apart, and no two sweeps are alike. `spark/test_spark.py` has blocks of chains."""
    layout = WeightIndex.from_tables(TABLES)

    def moved(seed, iterations=(1,)):
        chains = Chains(layout, 64, 0.0, seed)
        chains.set_weights(np.zeros(len(layout.d)), np.zeros(len(layout.d)))
        for i in iterations:
            chains.sweep(i)
        return chains.positions.copy()

    whole = moved(1)
    assert len(np.unique(whole, axis=0)) > 1
    assert not np.array_equal(whole, moved(2))
    assert not np.array_equal(moved(1, iterations=(1, 2)), moved(1, iterations=(1, 3)))
