"""Bags of a survey: population totals, weights, class names, shares of groups with intervals."""

import numpy as np
import pandas as pd
import pytest

from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    CardinalityClassifier,
    MeanEmbeddingClassifier,
    group_shares,
)

X = np.arange(6.0)[:, None]
COUNTY = list("aaabbb")


def survey(n_counties=60, size=30, seed=0):
    """(persons with a group, county of each, secret vote): groups vote .8 and .3, counties differ in their mix."""
    rng = np.random.default_rng(seed)
    county = np.repeat(np.arange(n_counties), size)
    old = rng.random(len(county)) < rng.beta(1, 1, n_counties)[county]
    return old, county, rng.random(len(county)) < np.where(old, 0.8, 0.3)


def test_totals_of_the_population_are_scaled_to_the_sample():
    bags = Bags.from_groups(X, COUNTY, totals={"a": (34_840, 17_420), "b": (0, 9)})
    assert bags.counts.tolist() == [[2, 1], [0, 3]]
    weights = np.array([1, 2, 3, 1, 1, 2.0])
    weighted = Bags.from_groups(X, COUNTY, totals={"a": (200, 100), "b": (1, 3)}, weights=weights)
    assert weighted.counts.tolist() == [[4, 2], [1, 3]]


def test_instances_are_drawn_by_their_weight_inside_their_bag():
    weights = np.array([0, 1, 3, 2, 0, 0.0])
    bags = Bags.from_groups(X, COUNTY, totals={"a": (1, 2), "b": (1, 0)}, weights=weights)
    rng = np.random.default_rng(0)
    drawn = np.array([bags.draw(rng).X[:, 0] for _ in range(2000)])
    assert (drawn[:, 3:] == 3).all()
    assert np.mean(drawn[:, :3] == 2) == pytest.approx(0.75, abs=0.03)
    assert not (drawn[:, :3] == 0).any()
    once = bags.draw(rng)
    assert once.weights is None
    assert once.counts.tolist() == [[1, 2], [3, 0]]


def test_each_instance_is_drawn_once_where_weights_are_equal():
    bags = Bags.from_groups(X, COUNTY, counts={"a": (10.0, 5.0), "b": (5.0, 10.0)}, weights=np.full(6, 5.0))
    drawn = bags.draw(0)
    assert (drawn.X == X).all()
    assert drawn.counts.tolist() == [[2, 1], [1, 2]]


def test_a_bag_without_weight_is_refused():
    bags = Bags.from_groups(X, COUNTY, proportions={"a": 0.5, "b": 0.5}, weights=[1, 1, 1, 0, 0, 0])
    with pytest.raises(DataError, match="bag 'b': all weights are 0; leave the bag out"):
        bags.draw()


def test_learners_of_whole_instances_name_the_draw():
    bags = Bags.from_groups(X, COUNTY, totals={"a": (2, 4), "b": (1, 1)}, weights=[1, 2, 3, 1, 1, 2])
    with pytest.raises(DataError, match=r"draw them with bags.draw\(\)"):
        CardinalityClassifier().fit(bags)
    CardinalityClassifier(l2=1.0).fit(bags.draw(0))


def test_shares_of_groups_have_intervals_that_hold_the_truth():
    inside = []
    for seed in range(8):
        old, county, vote = survey(seed=seed)
        votes = {c: {"yes": 1000 * vote[county == c].sum(), "no": 1000 * (~vote[county == c]).sum()} for c in range(60)}
        totals = pd.DataFrame(votes).T
        weights = None if seed % 2 else np.full(len(county), 1000.0)
        bags = Bags.from_groups(pd.DataFrame({"old": old.astype(float)}), county, totals=totals, weights=weights)
        model, groups = CardinalityClassifier(l2=0.5), np.where(old, "old", "young")
        shares = group_shares(model, bags, groups, n_draws=40, random_state=0)
        assert shares.index.names == ["group", "class"]
        assert shares["share"].groupby(level="group").sum().to_numpy() == pytest.approx(1)
        for group, true in (("old", 0.8), ("young", 0.3)):
            row = shares.loc[(group, "yes")]
            assert row["share"] == pytest.approx(true, abs=0.08)
            inside.append(row["low"] < true < row["high"])
    assert np.mean(inside) > 0.75  # 95 % are meant, of 16


def test_groups_and_classes_must_fit_the_bags():
    bags = Bags.from_groups(X, COUNTY, counts={"a": 1, "b": 2})
    with pytest.raises(DataError, match="groups: needs a group for each of the 6 instances"):
        group_shares(CardinalityClassifier(), bags, ["x"] * 5)
    with pytest.raises(DataError, match="these bags have no counts"):
        group_shares(CardinalityClassifier(), Bags(X, [0, 3, 6], target=[1.0, 2.0]), ["x"] * 6)


@pytest.mark.parametrize("kind", [CardinalityClassifier, MeanEmbeddingClassifier, AlternatingMeanMapClassifier])
def test_a_model_predicts_the_names_of_the_columns_whatever_their_order(kind, tmp_path):
    _, county, vote = survey(seed=3)
    X = pd.DataFrame({"votes": vote + np.random.default_rng(0).normal(0, 0.3, len(vote))})
    counts = pd.DataFrame({"yes": vote, "no": ~vote}).groupby(county).sum()
    model = kind(l2=0.5).fit(Bags.from_groups(X, county, counts))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, np.where(vote, "yes", "no")) > 0.9
    turned = kind(l2=0.5).fit(Bags.from_groups(X, county, counts[["no", "yes"]]))
    assert (turned.predict_proba(X) == model.predict_proba(X)).all()
    model.save(tmp_path / "model")
    assert (kind.load(tmp_path / "model").predict(X) == model.predict(X)).all()


def test_names_of_classes():
    bags = Bags.from_groups(X, COUNTY, counts={"a": 1, "b": 2}, class_names=["voted", "abstained"])
    assert bags.classes.tolist() == ["abstained", "voted"]
    assert bags.counts.tolist() == [[1, 2], [2, 1]]  # the second name is that of the positives
    assert bags.take([1]).counts.tolist() == [[2, 1]]
    assert Bags.from_groups(X, COUNTY, counts={"a": 1, "b": 2}).classes.tolist() == [0, 1]
    for names in (["voted"], ["a", "b", "c"], ["a", "a"]):
        with pytest.raises(DataError, match="name each of the 2 columns of the counts once"):
            Bags.from_groups(X, COUNTY, counts={"a": 1, "b": 2}, class_names=names)
