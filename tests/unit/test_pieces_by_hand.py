"""Pieces of learners against a few numbers on paper."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.collective import gibbs
from agglearn.collective.population import population_size
from agglearn.collective.reconstruction import _seconds_to_lowest
from agglearn.distribution import DeepSetsRegressor
from agglearn.distribution.embedding import first_instances, sampled, total_weights
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import DataError
from agglearn.labelsums import LabelledDescent, labelled
from agglearn.maxent import updates
from agglearn.observations import Bags, ContingencyTables, FlowCounts, LabelledBags, LabelSums, Records
from agglearn.proportions import AlternatingMeanMapClassifier, IndividualClassifier
from agglearn.vocabulary import DistributedSubmodularQuantizer, OptimalQuantizer, SubmodularQuantizer
from agglearn.vocabulary.shrinkage import shrunk_sums

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
        assert other.outside().tolist() == [bool(v) for v in outside]


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
    part = first_instances(bags, 2)
    assert (part.X[:, 0].tolist(), part.weights.tolist(), part.target.tolist()) == ([0, 1, 3, 4], [1, 2, 4, 5], [0, 1])
    assert total_weights(part).tolist() == [3, 9]
    assert total_weights(Bags(bags.X, bags.offsets)).tolist() == [3, 3]
    some = Bags(bags.X, bags.offsets, weights=np.array([0.0, 1, 1, 0, 1, 1]))
    assert sampled(some, 4, "s")[:, 0].tolist() == [1, 2, 4, 5]  # nobody of weight 0
    assert set(sampled(some, 2, "s")[:, 0].tolist()) < {1, 2, 4, 5}


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
    assert shrunk_sums(n, c, 20).tolist() == pytest.approx([10 * (1 + 5) / 30, 30 * (9 + 5) / 50])


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
    trace = lambda *pairs: [(k, s, f, 0.0) for k, (s, f) in enumerate(pairs)]  # noqa: E731
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
            right["side"] = self.right
            return super().run(rng)

    monkeypatch.setattr(labelled, "Descent", Kept)
    LabelledDescent("noise_per_step", 1.0, 1e-5, max_iter=100).fit(records)
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
    updates.gradients(*(np.array(v, float) for v in (d, c, d_hat, c_hat, mu, theta)), *l2, rescaled, clip, both, *out)
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
    energy, noise = updates.advance(gradient, curvature, expected, weights, velocity, 0.1, 0.8, total, 2.0, 1000.0)
    assert total.tolist() == [0.5, 2.0]  # 9 is cut to 2
    assert (energy, noise) == pytest.approx((8 * 0.25 + 10 * 4, 2 / 8 + 5 / 10))
    np.testing.assert_allclose(velocity, [0.4 - 0.05, -0.4 - 0.2])
    np.testing.assert_allclose(weights, [1.35, -1000.0])  # no weight is beyond the largest


def test_the_model_of_one_feature_is_the_table():
    """Without penalties the optimum has the table's own rates: expectations are on the scale of the records."""
    from agglearn.maxent import MaxEntClassifier

    frame = pd.DataFrame({"a": list("uuuuvvvvvvvv"), "y": [1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0]})
    frame = pd.concat([frame] * 50, ignore_index=True)
    tables = ContingencyTables.from_records(frame, "y")
    model = MaxEntClassifier(2000, l2_mu=0.0, l2_theta=0.0, max_iter=200, random_state=0).fit(tables)
    p = model.predict_proba(pd.DataFrame({"a": ["u", "v"]}))[:, 1]
    np.testing.assert_allclose(p, [0.75, 0.25], atol=0.03)
