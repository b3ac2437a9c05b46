"""Every class that chooses a parameter: what was chosen is what is used, and it was judged by units that were not fitted.

The score of every value can be planted here, so that each value of a grid is chosen in turn. Then the model must be the one
that has this value given from the start. A class whose description speaks of a choice needs a row, or a reason for none.
The rows stand in `choices/`, a module for each package.
"""

import re
import warnings

import numpy as np
import pytest
from choices.base import PLAIN, TARGET, X, records
from choices.collective import Fastest
from choices.distribution import Embedded, EmbeddedClasses, Multinomial, Ridge, Width, plant_losses
from choices.labelsums import BagLearnerOnRecords, ByAggregates, ByThinning
from choices.maxent import BestPair, Path
from choices.proportions import EM, AlternatingMeanMap, MeanEmbedding, MeanEmbeddings, MeanMap, Normal, Scoring
from choices.vocabulary import ClusterClassifier, NetworkOnClusters
from observed import learners

from agglearn import collective, distribution, labelsums, maxent, proportions, vocabulary
from agglearn.errors import DataError, GridEdge
from agglearn.estimator import choose_best
from agglearn.maxent import skyline
from agglearn.observations import CountedBags

CHOICES = {
    proportions.MeanMapClassifier: [MeanMap], proportions.MeanEmbeddingClassifier: [MeanEmbedding, MeanEmbeddings],
    proportions.AlternatingMeanMapClassifier: [AlternatingMeanMap], proportions.CardinalityClassifier: [Scoring, EM],
    proportions.NormalApproximationClassifier: [Normal], distribution.LinearRidge: [Ridge],
    distribution.KernelRidge: [Width], distribution.MultinomialLogistic: [Multinomial],
    distribution.EmbeddingRegressor: [Embedded], distribution.EmbeddingClassifier: [EmbeddedClasses],
    vocabulary.LogisticOnClusters: [ClusterClassifier], vocabulary.NetworkOnClusters: [NetworkOnClusters],
    maxent.LogisticSkyline: [Path], maxent.BestPairClassifier: [BestPair],
    labelsums.AggregateSearch: [ByAggregates, ByThinning], labelsums.RecordSearch: [BagLearnerOnRecords],
    collective.TunedReconstruction: [Fastest],
}  # fmt: skip
REASONS = {  # why there is no row for a class that speaks of a choice
    distribution.FisherVectorEmbedding: "EmbeddingRegressor chooses, which has a row",
    distribution.DeepSetsRegressor: "tested beside the class and in `networks`: the weights of the least loss on bags set apart",
    distribution.DeepSetsClassifier: "trains as DeepSetsRegressor does",
    distribution.PointNetClassifier: "trains as DeepSetsRegressor does",
    labelsums.LabelledGradientDescent: "chooses nothing; a class beside it does",
    maxent.FeatureSubsets: "subsets are drawn, and all are reported",
    maxent.MaxEntClassifier: "an estimate by moments, no choice by a score",
    maxent.NoiseAwareMaxEntClassifier: "as MaxEntClassifier",
    maxent.JointMaxEntClassifier: "as MaxEntClassifier",
    maxent.ExactNoiseAwareMaxEntClassifier: "as MaxEntClassifier",
    vocabulary.Quantizer: "clusters are what is learned, not a setting",
    **{q: "clusters are what is learned, not a setting" for q in learners() if issubclass(q, vocabulary.Quantizer)},
    labelsums.WALRClassifier: "an estimate by moments, no choice by a score",
    collective.GibbsVersusMAP: "reports when one is as near as the other, and uses neither",
    proportions.InverseCalibrationClassifier: "takes its settings as they are",
    proportions.EasyLLPClassifier: "chooses as MeanMapClassifier does, which has a row, with λ times the mean size of a bag",
    proportions.CardinalityBoosting: "tested beside the class: the number of stages is that of the best held-out likelihood",
    proportions.IndividualClassifier: "takes λ as it is",
    proportions.BagLearnerOnRecords: "its learner chooses",
    labelsums.TablesAndSampleClassifier: "takes the mean of all candidates",
    proportions.FeatureMapClassifier: "tested beside the class, with a learner that records its bags",
}
SPEAKS = re.compile(r"\b(chosen?|chooses?|choosing|best|held[- ]out|tuned?|early stopping)\b")
ALL = [row for rows in CHOICES.values() for row in rows]


@pytest.mark.parametrize("kind", learners(), ids=lambda k: k.__name__)
def test_who_speaks_of_a_choice_has_a_row_or_a_reason(kind):
    text = " ".join(c.__doc__ or "" for c in kind.__mro__ if c.__module__.startswith("agglearn."))
    assert kind in CHOICES or kind in REASONS or not SPEAKS.search(text)


def of_rows(suits):
    """A test of the rows that suit it, as `case`."""
    rows = [pytest.param(row, id=row.__name__) for row in ALL if suits(row)]
    return pytest.mark.parametrize("case", rows, indirect=True)


@pytest.fixture
def case(request):
    warnings.simplefilter("ignore", GridEdge)
    return request.param()


def apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.slow
@of_rows(lambda row: True)
def test_the_value_chosen_is_the_one_used(case):
    """Values of the grid are chosen in turn: the model is the one that has the value from the start, and no other."""
    given = {}
    for value in case.grid[1:]:  # the first one where all are equal, below
        case.tries = []
        with pytest.MonkeyPatch.context() as patch:
            model = case.choose(patch, lambda v, value=value: -abs(np.log2(v + 1) - np.log2(value + 1)))
        assert case.chosen(model) == pytest.approx(value)
        if case.anew or not given:
            given = {v: case.numbers(case.fixed(v)) for v in case.grid}
        gaps = [apart(case.numbers(model), given[v]) for v in case.grid]
        at = case.grid.index(value)
        assert gaps[at] <= case.close
        assert min(g for k, g in enumerate(gaps) if k != at) > max(10 * gaps[at], 1e-4)


@of_rows(lambda row: not row.alike and (row.units or issubclass(row, ByAggregates)))  # those that hold something out
def test_values_are_judged_by_units_that_they_were_not_fitted_to(case):
    with pytest.MonkeyPatch.context() as patch:
        case.choose(patch)
    assert case.tries
    for one in case.tries:
        assert one.fitted
        assert one.judged
        assert not set(one.fitted) & set(one.judged)
        assert isinstance(case, ByThinning) or set(one.fitted) | set(one.judged) == set(case.units)
    by = {}
    for one in case.tries:
        by.setdefault(one.value, []).append(one.judged)
    assert len(by) >= 2
    assert len({tuple(v) for v in by.values()}) == 1  # all values by the same units


@of_rows(lambda row: not row.alike)
def test_of_equal_scores_the_first_is_taken_and_ends_are_stated(case):
    with pytest.MonkeyPatch.context() as patch:
        model = case.choose(patch, lambda v: 0.0)
    first = 2.0**skyline.FIRST if isinstance(case, Path) else case.grid[0]
    assert case.chosen(model) == first
    if case.edges:
        assert model.edges_
        with pytest.MonkeyPatch.context() as patch:
            middle = type(case)().choose(patch, lambda v: -abs(np.log2(v / case.grid[1])))
        own = {"Ridge": "strength", "Multinomial": "l2", "Width": "width"}.get(str(case), "scale")
        assert own in model.edges_
        assert own not in middle.edges_


DIVERGES = [MeanMap, Ridge, Multinomial, Embedded, ClusterClassifier, BestPair, ByAggregates, BagLearnerOnRecords]


@of_rows(DIVERGES.__contains__)
def test_a_value_that_diverged_is_never_chosen(case):
    with pytest.MonkeyPatch.context() as patch:
        model = case.choose(patch, lambda v: np.nan if v == case.grid[0] else -float(v))
    assert case.chosen(model) != case.grid[0]


def test_the_best_of_scores():
    assert choose_best([1.0, 3.0, 2.0]) == 1
    assert choose_best([3.0, 3.0, 2.0]) == 0
    assert choose_best([np.nan, -np.inf, 2.0]) == 2
    assert choose_best([np.nan, -np.inf]) == 1
    with pytest.raises(DataError, match="try others"):
        choose_best([np.nan, np.nan])


# -- details that belong to one class ---------------------------------------------------------------------------------


def test_a_learner_of_counted_bags_hands_its_choice_on():
    one = records(PLAIN)
    counted = CountedBags.from_records(one.encoder, one.frame, one.y, 4, np.random.default_rng(0))
    model = proportions.BagLearnerOnRecords(proportions.MeanMapClassifier(l2=3.0)).fit(counted)
    assert model.learner_.l2_ == 3.0
    direct = proportions.MeanMapClassifier(l2=3.0).fit(counted.bags())
    np.testing.assert_array_equal(model.learner_.coef_, direct.coef_)


def test_the_penalty_of_the_strengths_that_were_not_chosen_is_not_used():
    """A regression whose two best parameters differ: the width's own λ goes with it."""
    with pytest.MonkeyPatch.context() as patch:
        plant_losses(patch, [[5.0, 4.0], [3.0, 9.0]])
        model = distribution.KernelRidge([0.5, 2.0], strengths=[0.1, 10.0], random_state=0).fit(X[:60], TARGET)
    assert (model.multiple_, model.ridge_.strength_, model.score_) == (2.0, 0.1, 3.0)
    given = distribution.KernelRidge([2.0], strengths=[0.1], random_state=0).fit(X[:60], TARGET)
    np.testing.assert_array_equal(model.predict(X[:60]), given.predict(X[:60]))
