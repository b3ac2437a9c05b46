"""Persons of a census: who is drawn, who is tested, and what is hidden with a label."""

import numpy as np
import pytest
from observed_sources import forget

from agglearn.tasks import census_design


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
    tested = census_design.held_out_bags(study)
    assert tested.X[:, 0].astype(int).tolist() == study.test.tolist()
    for b in range(len(tested)):
        here = tested.X[tested.offsets[b] : tested.offsets[b + 1]].astype(int)
        assert len(set(here[:, 1])) == 1
        assert tested.counts[b].tolist() == np.bincount(study.labels[here[:, 0]], minlength=2).tolist()
    voters = census_design.held_out_bags(study, 2016)
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
