"""Pieces of learners against a few numbers on paper."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import people
from scipy import sparse

from agglearn.collective import ChainModel, PublishedCounts, SharedTableEM, gibbs, learning
from agglearn.collective.migration import commuting_potentials, migration_features
from agglearn.collective.population import population_size
from agglearn.collective.reconstruction import _seconds_to_lowest
from agglearn.collective.results import Iterate, Recorder
from agglearn.distribution import DeepSetsRegressor
from agglearn.distribution.embedding import sample_instances, total_weights, truncate_bags
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import DataError
from agglearn.labelsums import LabelledGradientDescent, labelled
from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import penalties
from agglearn.maxent import MaxEntClassifier, NaiveBayesClassifier, pcd_step
from agglearn.observations import (
    Bags,
    ContingencyTables,
    FlowCounts,
    FlowInstances,
    LabelledBags,
    LabelSums,
    Records,
    with_gaussian_noise,
)
from agglearn.observations.thinning import thin_tables
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    IndividualClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
)
from agglearn.proportions.alternating import label_highest
from agglearn.proportions.base import counts_likelihood, one_vs_rest_counts, probabilities
from agglearn.proportions.means import bag_means, proportions_of
from agglearn.vocabulary import DistributedSubmodularQuantizer, OptimalQuantizer, SubmodularQuantizer
from agglearn.vocabulary.allocation import allocate
from agglearn.vocabulary.quantizer import whole_budget
from agglearn.vocabulary.rate_order import Ranking
from agglearn.vocabulary.shrinkage import shrink_sums

# -- observations -----------------------------------------------------------------------------------------------------


def test_weighted_label_sums():
    x = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 0.0, -1.0]})
    sums = LabelSums.from_records(x, [1, 0, 1], weights=np.array([2.0, 5.0, 0.5]))
    assert dict(zip(sums.names, sums.sums, strict=True)) == {"a": 4.0, "b": 0.5, "intercept": 2.5}
    # the most that labels can give: a 2 + 10 + 2, b 1 + 0 − 0.5, seven and a half of weight
    for moved, outside in (
        ([14.0, 1.0, 7.5], [0, 0, 0]),
        ([14.1, -0.6, 7.6], [1, 1, 1]),
        ([0.0, -0.5, -0.1], [0, 0, 1]),
    ):
        other = LabelSums(sums.map, x, sums.names, np.array(moved), sums.weights)
        assert other.infeasible_coordinates().tolist() == [bool(v) for v in outside]


def test_pairs_that_never_occurred_fill_no_coordinate():
    frame = pd.DataFrame({"a": list("uuv"), "b": list("xyx")})
    encoder = FrameEncoder.fit(frame)
    mapped = FeatureMap.fit("quadratic", encoder, frame)
    names = mapped.names
    x = mapped.matrix(pd.DataFrame({"a": list("vuw"), "b": list("yxx")})).toarray()
    filled = [[names[j] for j in np.flatnonzero(row)] for row in x]
    assert filled == [
        ["a = v", "b = y", "intercept"],
        ["a = u", "b = x", "a = u & b = x", "intercept"],
        ["b = x", "intercept"],
    ]


def test_labels_of_weighted_bags_add_up_by_weight():
    bags = Bags(np.zeros((3, 1)), [0, 2, 3], np.array([[0.5, 2.0], [3.0, 0.0]]), weights=np.array([2.0, 0.5, 3.0]))
    assert LabelledBags(bags, np.array([1, 0, 0])).y.tolist() == [1, 0, 0]
    with pytest.raises(DataError, match="by its labels"):
        LabelledBags(bags, np.array([0, 1, 0]))


def test_population_sizes():
    counts = np.array([[2.0, 4.0], [6.0, 2.0]])
    assert population_size(FlowCounts(node_counts=counts, rate=0.5)) == (6 + 8) / 2 / 0.5
    assert population_size(FlowCounts(node_counts=counts, noise="gaussian", rate=0.5)) == 7
    assert population_size(FlowCounts(node_counts=counts, population_size=11)) == 11
    some = counts.copy()
    some[0, 0] = np.nan
    assert population_size(FlowCounts(node_counts=some)) == 8
    with pytest.raises(DataError, match="population_size"):
        population_size(FlowCounts(node_counts=some[:1]))


def test_first_instances_keep_their_weights():
    bags = Bags(np.arange(6.0)[:, None], [0, 3, 6], weights=np.array([1.0, 2, 3, 4, 5, 6]), target=np.array([0.0, 1.0]))
    part = truncate_bags(bags, 2)
    assert (part.X[:, 0].tolist(), part.weights.tolist(), part.target.tolist()) == ([0, 1, 3, 4], [1, 2, 4, 5], [0, 1])
    assert total_weights(part).tolist() == [3, 9]
    assert total_weights(Bags(bags.X, bags.offsets)).tolist() == [3, 3]
    some = Bags(bags.X, bags.offsets, weights=np.array([0.0, 1, 1, 0, 1, 1]))
    assert sample_instances(some, 4, "s")[:, 0].tolist() == [1, 2, 4, 5]  # nobody of weight 0
    assert set(sample_instances(some, 2, "s")[:, 0].tolist()) < {1, 2, 4, 5}


# -- proportions ------------------------------------------------------------------------------------------------------


def test_the_labels_of_least_loss_are_kept():
    """Losses of 3, 1 and 2: the weights of the second round."""
    script = iter([(np.array([[-1.0, 0.0]]), 3.0), (np.array([[1.0, 0.0]]), 1.0), (np.array([[-2.0, 0.0]]), 2.0)])
    problem = SimpleNamespace(
        x=np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32), offsets=np.array([0, 2, 4]), moments=lambda soft: soft,
        minimum=lambda moments, theta, steps: next(script), fit=lambda moments, theta: theta,
    )  # fmt: skip
    model = AlternatingMeanMapClassifier(max_iter=3, tol=0.0)
    theta, losses = model._alternate(problem, np.array([1, 1]), np.array([[0.5, 0.0]]))
    assert losses == [3.0, 1.0, 2.0]
    assert theta.tolist() == [[1.0, 0.0]]


def test_an_oracle_of_the_first_bags_has_their_labels():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    counts = np.add.reduceat(y, np.arange(0, 40, 4))
    some = IndividualClassifier(n_bags=4).fit(LabelledBags(Bags(x, np.arange(0, 41, 4), counts), y))
    first = IndividualClassifier().fit(LabelledBags(Bags(x[:16], np.arange(0, 17, 4), counts[:4]), y[:16]))
    np.testing.assert_allclose(some.coef_, first.coef_)


# -- distribution -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_predictions_of_networks_have_the_units_of_their_targets():
    """The same bags with targets in other units, as 100 + 10·t: predictions follow."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) + np.repeat(rng.normal(size=20), 4)[:, None]
    target = x[:, 0].reshape(20, 4).mean(axis=1)
    found = []
    for t in (target, 100 + 10 * target):
        model = DeepSetsRegressor((4, 4), (4,), steps=10, batch_size=8, device="cpu", random_state=0)
        found.append(model.fit(Bags(x, np.arange(0, 81, 4), target=t)).predict(Bags(x, np.arange(0, 81, 4))))
    np.testing.assert_allclose(found[1], 100 + 10 * found[0], rtol=1e-4)
    assert np.std(found[0]) > 0.05 * np.std(target)


# -- vocabularies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quantizer", [SubmodularQuantizer(16), DistributedSubmodularQuantizer(16, 0.3)], ids=lambda q: type(q).__name__
)
def test_features_that_are_alike_get_alike_shares(quantizer):
    """One budget for two features of the same counts: about half of the clusters each, and most of the information."""
    rng = np.random.default_rng(0)
    n = rng.integers(20, 60, 60)
    c = rng.binomial(n, np.linspace(0.05, 0.95, 60))
    counts, sums = {"a": n, "b": n}, {"a": c, "b": c}
    found = quantizer.set_params(random_state=0).fit(counts, sums)
    sizes = [int(labels.max()) + 1 for labels in found.labels_.values()]
    assert sum(sizes) == 16
    assert abs(sizes[0] - sizes[1]) <= 4
    assert found.information_ > 0.95 * OptimalQuantizer(16).fit(counts, sums).information_


def test_rates_are_drawn_to_the_base_rate():
    n, c = np.array([10.0, 30.0]), np.array([1.0, 9.0])
    assert shrink_sums(n, c, 20).tolist() == pytest.approx([10 * (1 + 5) / 30, 30 * (9 + 5) / 50])


def test_a_record_is_clustered_by_the_labels_of_other_folds():
    """Values seen once: no other fold tells of them, so that all are in the cluster of values never seen."""
    frame = pd.DataFrame({"a": [f"v{i}" for i in range(40)]})
    y = np.arange(40) % 2
    quantizer = OptimalQuantizer(2, random_state=0)
    clusters = quantizer.fit_transform(frame, y)
    assert quantizer.labels_["a"].max() == 1  # by their own labels they fall apart
    assert set(clusters[:, 0]) == {quantizer.unseen_["a"]}


# -- collective -------------------------------------------------------------------------------------------------------


def test_the_clock_of_tuning_stops_where_the_objective_stays():
    trace = lambda *pairs: [Iterate(k, s, f, 0.0) for k, (s, f) in enumerate(pairs)]  # noqa: E731
    runs = [SimpleNamespace(trace=t) for t in (
        trace((1.0, -9.0), (2.0, -10.0), (3.0, -9.5), (4.0, -10.0), (5.0, -10.0)), trace((0.5, -9.0), (1.0, -9.9)),
        trace((0.5, np.nan)), trace((7.0, -10.0 + 1e-8)),
    )]  # fmt: skip
    assert [_seconds_to_lowest(r.trace, runs) for r in runs] == [
        (4.0, -10.0), (math.inf, -9.9), (math.inf, math.inf), (7.0, -10.0 + 1e-8)
    ]  # fmt: skip


def test_stages_of_a_sampler_have_streams_of_their_own(monkeypatch):
    seeds, run = [], gibbs.Chain.run

    def spied(chain, n_moves, seed):
        seeds.append((n_moves, seed))
        run(chain, n_moves, seed)

    monkeypatch.setattr(gibbs.Chain, "run", spied)
    counts = FlowCounts(node_counts=np.array([[3.0, 3], [2, 4]]))
    model = gibbs.TreeModel([(0, 1)], [np.zeros((2, 2))])
    found = gibbs.infer_gibbs(model, counts, 6, trace=True, n_moves=100, burn_in=0.2, stages=4, random_state=1)
    assert [n for n, _ in seeds] == [20, 20, 20, 20, 20]
    assert len({s for _, s in seeds}) == 5
    assert [moves for _, moves, _ in found.details["means"]] == [40, 60, 80, 100]
    assert sum(t.sum() for t in found.edge_tables) == pytest.approx(6)


# -- label sums -------------------------------------------------------------------------------------------------------


def test_every_step_has_noise_of_its_own(monkeypatch):
    right, records = {}, Records.from_records(people(200), "y")

    class Kept(labelled.Descent):
        def run(self, rng):
            right["side"] = self.label_term
            return super().run(rng)

    monkeypatch.setattr(labelled, "Descent", Kept)
    LabelledGradientDescent("noise_per_step", 1.0, 1e-5, max_iter=100).fit(records)
    mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
    exact = mapped.matrix(records.frame).T @ records.y
    noise = np.array([200 * right["side"](t, None) - exact for t in range(300)])
    assert len(np.unique(noise.round(6), axis=0)) == 300
    once = labelled.analytic_gaussian_scale(math.sqrt(mapped.largest(2)), 1.0, 1e-5)
    assert noise.std() == pytest.approx(once * math.sqrt(100), rel=0.05)
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.05


# -- maximum entropy --------------------------------------------------------------------------------------------------


def gradients(d, c, d_hat, c_hat, mu, theta, l2=(3.0, 5.0), rescaled=True, clip=True, both=True):
    out = np.zeros((2, 2, len(mu)))
    pcd_step.gradients(*(np.array(v, float) for v in (d, c, d_hat, c_hat, mu, theta)), *l2, rescaled, clip, both, *out)
    return out


def test_gradients_of_weights():
    """Two cells: the model expects more records than there are, and fewer."""
    of = ([10.0, 40.0], [4.0, 10.0], [20.0, 30.0], [9.0, 6.0], [0.5, -1.0], [0.25, 2.0])
    g, h = gradients(*of)
    # 20 − 10 + 2·3·½ and 30 − 40 − 2·3; label sums at equal counts, the larger of d + 1 and d̂ + 1 brought down
    np.testing.assert_allclose(g[0], [20 - 10 + 3.0, 30 - 40 - 6.0])
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 - 10 * 31 / 41 + 20.0])
    np.testing.assert_allclose(h[0], [15 + 6, 35 + 6])
    np.testing.assert_allclose(h[1], [6.5 + 10, 8 + 10])
    g, h = gradients(*of, clip=False, both=False)
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 * 41 / 31 - 10 + 20.0])
    np.testing.assert_allclose(h, [[26, 36], [19, 16]])
    g, _ = gradients(*of, rescaled=False)
    np.testing.assert_allclose(g[1], [9 - 4 + 2.5, 6 - 10 + 20.0])


def test_steps_of_weights():
    weights, velocity, total = np.array([1.0, -999.9]), np.array([0.5, -0.5]), np.zeros(2)
    gradient, curvature, expected = np.array([4.0, 90.0]), np.array([8.0, 10.0]), np.array([2.0, 5.0])
    energy, noise = pcd_step.advance(gradient, curvature, expected, weights, velocity, 0.1, 0.8, total, 2.0, 1000.0)
    assert total.tolist() == [0.5, 2.0]  # 9 is cut to 2
    assert (energy, noise) == pytest.approx((8 * 0.25 + 10 * 4, 2 / 8 + 5 / 10))
    np.testing.assert_allclose(velocity, [0.4 - 0.05, -0.4 - 0.2])
    np.testing.assert_allclose(weights, [1.35, -1000.0])  # no weight is beyond the largest


def test_the_model_of_one_feature_is_the_table():
    """Without penalties the optimum has the table's own rates: expectations are on the scale of the records."""
    frame = pd.DataFrame({"a": list("uuuuvvvvvvvv"), "y": [1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0]})
    frame = pd.concat([frame] * 50, ignore_index=True)
    tables = ContingencyTables.from_records(frame, "y")
    model = MaxEntClassifier(2000, l2_mu=0.0, l2_theta=0.0, max_iter=200, random_state=0).fit(tables)
    p = model.predict_proba(pd.DataFrame({"a": ["u", "v"]}))[:, 1]
    np.testing.assert_allclose(p, [0.75, 0.25], atol=0.03)


# -- bags: means, shares, counts --------------------------------------------------------------------------------------

WEIGHED = Bags(
    np.array([[1.0], [5.0], [2.0], [4.0], [6.0]]), [0, 2, 5], np.array([[1.0, 2.0], [2.0, 4.0]]),
    weights=np.array([1.0, 2, 3, 0, 3]),
)  # fmt: skip


def test_means_and_shares_of_bags_go_by_weight():
    assert bag_means(WEIGHED)[:, 0].tolist() == pytest.approx([11 / 3, 24 / 6])
    assert bag_means(Bags(WEIGHED.X, WEIGHED.offsets))[:, 0].tolist() == [3, 4]
    np.testing.assert_allclose(proportions_of(WEIGHED), [[1 / 3, 2 / 3]] * 2)
    counts = Bags(WEIGHED.X, WEIGHED.offsets, np.array([[0, 1, 1], [2, 1, 0]]))
    assert one_vs_rest_counts(counts, 1).tolist() == [[1, 1], [2, 1]]
    assert one_vs_rest_counts(counts, 0).tolist() == [[2, 0], [1, 2]]


def classifier(*rows) -> MeanEmbeddingClassifier:
    """One with these weights (…, intercept), a row for each score."""
    model = MeanEmbeddingClassifier()
    model.classes_, model.feature_names_in_ = np.arange(3 if len(rows) > 1 else 2), []
    model._set(np.array(rows, float))
    return model


def test_expected_counts_go_by_weight():
    model = classifier([math.log(2), 0.0])  # odds 2 to the power of x
    p = [2.0**x / (1 + 2.0**x) for x in WEIGHED.X[:, 0]]
    expected = [p[0] + 2 * p[1], 3 * p[2] + 3 * p[4]]
    np.testing.assert_allclose(
        model.predict_counts(WEIGHED), [[3 - expected[0], expected[0]], [6 - expected[1], expected[1]]], rtol=1e-6
    )
    assert model.predict(WEIGHED.X).tolist() == [1, 1, 1, 1, 1]
    assert model.predict(-WEIGHED.X).tolist() == [0, 0, 0, 0, 0]


def test_one_class_against_the_rest_and_all_at_once():
    odds = lambda s: 1 / (1 + math.exp(-s))  # noqa: E731
    score = np.array([[0.5, -1.0, 2.0]])
    each = [odds(0.5), odds(-1), odds(2)]
    np.testing.assert_allclose(probabilities(score, 3), [[p / sum(each) for p in each]])
    whole = 1 + math.exp(0.5) + math.exp(-1)
    np.testing.assert_allclose(
        probabilities(score[:, :2], 3), [[1 / whole, math.exp(0.5) / whole, math.exp(-1) / whole]]
    )


def test_likelihood_of_counts():
    """Bags of two and of one: the mean over bags of log P(count), of each class where there are three."""
    p = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    likelihood = counts_likelihood(p, np.array([0, 2, 3]), np.array([[1, 1], [0, 1]]))
    assert likelihood == pytest.approx((math.log(0.25 * 0.5 + 0.75 * 0.5) + math.log(0.75)) / 2)
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375]])
    found = counts_likelihood(p, np.array([0, 2]), np.array([[1, 0, 1]]))
    of = lambda a, b, z: math.log([(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b][z])  # noqa: E731
    assert found == pytest.approx(of(0.5, 0.5, 1) + of(0.25, 0.125, 0) + of(0.25, 0.375, 1))


def test_highest_scores_are_positive_and_ties_go_to_the_earlier():
    score = np.array([0.5, 2.0, 2.0, 1.0, 3.0, 3.0, 3.0])
    assert label_highest(score, np.array([0, 4, 7]), np.array([2, 1])).tolist() == [0, 1, 1, 0, 1, 0, 0]
    assert label_highest(score, np.array([0, 4, 7]), np.array([0, 3])).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_inverse_calibration_fits_the_log_odds_of_means():
    """Bags of two equal instances whose log-odds are linear: a bag without a class counts as half an instance of it."""
    x = np.linspace(-1, 1, 12)
    share = 1 / (1 + np.exp(-(0.5 + 2 * x)))
    bags = Bags(
        np.repeat(x, 2)[:, None],
        np.arange(0, 25, 2),
        np.column_stack([1 - share, share]) * 200,
        weights=np.full(24, 100.0),
    )
    model = InverseCalibrationClassifier(C=100.0).fit(bags)
    assert (float(model.coef_[0, 0]), float(model.intercept_[0])) == pytest.approx((2, 0.5), abs=0.1)
    none = Bags(np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 2, 4], np.array([0, 2]))
    model = InverseCalibrationClassifier(C=1000.0).fit(none)
    p = model.predict_proba(np.array([[0.0], [1.0]]))[:, 1]
    np.testing.assert_allclose(p, [0.25, 0.75], atol=0.03)


def test_the_mean_embedding_counts_every_bag_once():
    """A bag of one and a bag of nine weigh the same."""
    x = np.concatenate([[0.0], np.ones(9)])[:, None]
    bags = Bags(x, [0, 1, 10], np.array([[1, 0], [3, 6]]))
    model = MeanEmbeddingClassifier(l2=1e-6).fit(Bags(np.zeros((10, 1)), bags.offsets, bags.counts))
    assert model.predict_proba(np.zeros((1, 1)))[0, 1] == pytest.approx((0 + 6 / 9) / 2, abs=1e-3)


# -- vocabularies -----------------------------------------------------------------------------------------------------


def test_budgets_and_their_shares():
    n = {"a": np.array([10, 10, 10, 10]), "b": np.array([20, 20])}
    c = {"a": np.array([1, 2, 8, 9]), "b": np.array([10, 10])}
    rankings = [Ranking.from_counts(k, n[k].astype(float), c[k].astype(float)) for k in n]
    assert [whole_budget(b, rankings) for b in (2, 6, 0.5, 0.99)] == [2, 6, 3, 6]
    for wrong in (1, 7, 0.01):
        with pytest.raises(DataError, match="budget"):
            whole_budget(wrong, rankings)
    assert allocate(5, rankings, "uniform") == [3, 2]
    assert allocate(5, rankings, "information") == [4, 1]  # b tells nothing
    assert allocate(6, rankings, "uniform", np.array([2, 4])) == [2, 4]


def test_rare_values_are_one_cluster():
    n, c = np.array([50, 3, 40, 2, 60]), np.array([5, 3, 30, 1, 24])
    found = OptimalQuantizer(3, min_count=4).fit(n, c)
    assert found.labels_[1] == found.labels_[3] == found.unseen_
    exact = OptimalQuantizer(3, min_count=3).fit(n, c)
    assert exact.labels_[3] == exact.unseen_ != exact.labels_[1]  # 3 records are enough
    alone = OptimalQuantizer(5).fit(n, c)
    assert len(set(alone.labels_)) == 5
    assert alone.unseen_ == alone.labels_[4]  # whose rate, 0.4, is nearest to 63 of 155
    assert found.transform([1, 3, 7, -1]).tolist() == [found.unseen_] * 4


# -- collective -------------------------------------------------------------------------------------------------------


def test_features_of_a_step():
    """Cells 0 1 / 2 3 of a grid of two by two; the wind blows to the right."""
    f = migration_features(2, 2, np.array([[3.0, 0.0]]))[0]
    assert f[0, 0].tolist() == [0, 0, 0, 0]
    assert f[0, 1].tolist() == pytest.approx([-1, 1, math.sqrt(0.5), 1])
    assert f[1, 0].tolist() == pytest.approx([-1, -1, 0, 1])
    assert f[0, 3].tolist() == pytest.approx([-math.sqrt(2), math.sqrt(0.5), 1, 1])
    assert f[3, 0].tolist() == pytest.approx([-math.sqrt(2), -math.sqrt(0.5), 0, 1])
    assert f[2, 3].tolist() == pytest.approx([-1, 1, 1, 1])


def test_commuters_live_at_the_top_right_and_work_at_the_bottom_left():
    first, last, step = commuting_potentials(2, 4, 2.0, 1.0, 0.5)
    xy = [(k % 4, k // 4) for k in range(8)]
    for k, (x, y) in enumerate(xy):
        assert first[k] == pytest.approx(-((x - 2.5) ** 2 + (y - 1.0) ** 2) / 8)
        assert last[k] == pytest.approx(-((x - 0.5) ** 2 + (y - 0.0) ** 2) / 2)
        for j, (u, v) in enumerate(xy):
            assert step[k, j] == pytest.approx(-((x - u) ** 2 + (y - v) ** 2) / 0.5)


def test_distance_from_tables_that_fit_together():
    model = ChainModel(np.zeros((2, 2, 2)))
    first, second = np.array([[2.0, 1], [0, 3]]), np.array([[1.0, 1], [2, 3]])  # middle sums (2, 4) and (2, 5)
    # each edge is half a person from their mean; six, six and a half, and seven persons
    assert model.violation([first, second], 6) == pytest.approx(0.5 + 0.5 + 0.5 + 1)
    assert model.violation([first, first[::-1].T], 6) == pytest.approx(
        np.abs(first.sum(0) - first[::-1].T.sum(1)).sum()
    )
    lone = ChainModel(np.zeros((1, 2, 2)))
    assert lone.violation([first], 6) == 0
    assert lone.violation([first - np.array([[0, 2], [0, -2]])], 6) == pytest.approx(1)
    assert lone.violation([first], 5) == 2


def test_iterates_are_recorded_ever_more_rarely():
    problem = SimpleNamespace(
        objective_of=lambda at: float(at), M=1.0, model=SimpleNamespace(violation=lambda tables, m: 0.5)
    )
    record = Recorder(problem)
    for k in range(100):
        record(k)
    rows = record.finish()
    steps = [r[0] for r in rows]
    assert steps[:21] == list(range(21))
    assert steps[-1] == 99
    gaps = np.diff(steps)
    assert (gaps[:20] == 1).all()
    assert all(b <= max(a + 1, int(1.05 * a)) for a, b in itertools.pairwise(steps))
    assert [r[2:] for r in rows] == [(float(k), 0.5) for k in steps]
    assert (np.diff([r[1] for r in rows]) >= 0).all()


def test_published_tables_and_what_learning_starts_from():
    years = FlowInstances(tuple(
        FlowCounts(edge_counts=np.array([t]), noise="laplace", population_size=10)
        for t in ([[3.0, -1.0], [4.0, 2.0]], [[1.0, -2.0], [2.0, 0.0]])
    ))  # fmt: skip
    plain, cut = PublishedCounts().fit(years), PublishedCounts(clip=True).fit(years)
    assert [t[0].tolist() for t in plain.edge_tables_] == [[[3, -1], [4, 2]], [[1, -2], [2, 0]]]
    assert [t[0].tolist() for t in cut.edge_tables_] == [[[3, 0], [4, 2]], [[1, 0], [2, 0]]]
    start = SharedTableEM(n_iter=0, learner="em").fit(years)
    np.testing.assert_allclose(np.exp(start.theta_), np.maximum(np.array([4, 0, 6, 2]) / 12, 1e-12))
    assert [(k, theta.tolist()) for k, _, theta in start.trace_] == [(0, start.theta_.tolist())]
    assert start.evaluations_ == 0


def test_a_trace_of_learning_is_thinned_and_has_both_ends(monkeypatch):
    monkeypatch.setattr(learning, "infer", lambda *a, **k: SimpleNamespace(edge_tables=[], objective=0.0, details={}))
    law = SimpleNamespace(
        model=lambda theta, k: SimpleNamespace(log_partition=0.0), maximise=lambda theta, tables: theta + 1
    )
    found = learning.learn(law, [None], [1.0], np.zeros(1), learner="em", n_iter=7, trace_every=3)
    assert [(k, float(theta[0])) for k, _, theta in found.trace] == [(0, 0), (3, 3), (6, 6), (7, 7)]
    assert (float(found.theta[0]), found.evaluations) == (7, 7)


# -- label sums -------------------------------------------------------------------------------------------------------


def test_descent_by_hand():
    """One coordinate of ones and twos; labels 1 and 0: all rows, then mini-batches whose later half is averaged."""
    x = sparse.csr_array(np.array([[1.0], [2.0]]))
    sigmoid = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    how = {
        "x": x,
        "weights": np.array([1.0, 1.0]),
        "penalty": np.array([0.5]),
        "batch_size": None,
        "rate": 0.5,
        "steps": 3,
        "traced": 3,
    }
    right = np.array([0.5])
    theta, trace = Descent(label_term=lambda t, rows: right, **how).run(np.random.default_rng(0))
    at, seen = 0.0, []
    for _ in range(3):
        at -= 0.5 * ((sigmoid(at) + 2 * sigmoid(2 * at)) / 2 - 0.5 + 2 * 0.5 / 2 * at)
        seen.append(at)
    assert float(theta[0]) == pytest.approx(at)
    assert [(t, float(v[0])) for t, _, v, _ in trace] == [
        (1, pytest.approx(seen[0])),
        (2, pytest.approx(seen[1])),
        (3, pytest.approx(at)),
    ]
    drawn = []
    small = Descent(
        label_term=lambda t, rows: drawn.append(rows) or right, **(how | {"batch_size": 2, "steps": 4, "traced": 0})
    )
    theta, _ = small.run(np.random.default_rng(0))
    at, kept = 0.0, []
    for t, rows in enumerate(drawn, 1):
        left = np.mean([(r + 1) * sigmoid((r + 1) * at) for r in rows])
        at -= 0.5 * (1 + t) ** -0.5 * (left - 0.5 + 0.5 * at)  # a batch is as large as all rows
        kept.append(at)
    assert float(theta[0]) == pytest.approx(np.mean(kept[2:]))
    safe = Descent(label_term=None, **(how | {"rate": None}))._rates()
    assert safe.tolist() == pytest.approx([2 / ((1 + 4) / 4 + 2 * 0.5)])


def test_penalties_by_hand():
    x = sparse.csr_array(np.array([[1.0, 0.0, 1.0], [2.0, 1.0, 1.0]]))
    weights = np.array([1.0, 3.0])  # curvatures at 0: (1 + 12)/4, 3/4, 1
    assert penalties(0.5, x, weights, 0.0, True).tolist() == [0.5, 0.5, 0.0]
    assert penalties(0.5, x, weights, 2.0, True).tolist() == pytest.approx(
        [0.5 * (1 + 4 / 3.25), 0.5 * (1 + 4 / 0.75), 0.0]
    )
    assert penalties(0.5, x, weights, 0.0, False).tolist() == [0.5] * 3


def test_thinned_noise_is_shared_evenly():
    """Halves of noisy tables add up to them, state half of the variance each, and have it."""
    frame = pd.DataFrame({f"f{i}": np.random.default_rng(i).choice(list("uvwxyz"), 4000) for i in range(3)})
    tables = ContingencyTables.from_records(frame.assign(y=np.arange(4000) % 2), "y")
    noisy = with_gaussian_noise(tables, 200.0, 0)
    first, second = thin_tables(noisy, np.random.default_rng(0))
    assert first.noise.scale == second.noise.scale == pytest.approx(200 / math.sqrt(2))
    assert (first.total, first.positives) == (noisy.total / 2, noisy.positives / 2)
    gaps = []
    for key, table in noisy.tables.items():
        a, b = first.tables[key], second.tables[key]
        np.testing.assert_allclose(a.counts + b.counts, table.counts)
        np.testing.assert_allclose(a.label_sums + b.label_sums, table.label_sums)
        gaps.append((a.counts - tables.dense(*key)[0].ravel() / 2, b.counts - tables.dense(*key)[0].ravel() / 2))
    u, v = (np.concatenate(part) for part in zip(*gaps, strict=True))
    assert np.std(u) == pytest.approx(200 / math.sqrt(2), rel=0.15)
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.25


# -- naive Bayes ------------------------------------------------------------------------------------------------------


def test_naive_bayes_by_hand():
    frame = pd.DataFrame({"a": list("uuuvv"), "b": list("xyxyy"), "y": [1, 1, 0, 0, 0]})
    model = NaiveBayesClassifier(smoothing=0.5).fit(ContingencyTables.from_records(frame, "y"))
    rate = lambda ones, of, zeros, all_: math.log((ones + 0.5) / (of + 1)) - math.log((zeros + 0.5) / (all_ + 1))  # noqa: E731
    z = math.log(2 / 3) + rate(2, 2, 1, 3) + rate(1, 2, 2, 3)
    p = model.predict_proba(pd.DataFrame({"a": ["u"], "b": ["y"]}))[0, 1]
    assert p == pytest.approx(1 / (1 + math.exp(-z)))
    unseen = model.predict_proba(pd.DataFrame({"a": ["w"], "b": ["z"]}))[0, 1]
    assert unseen == pytest.approx(0.4)
