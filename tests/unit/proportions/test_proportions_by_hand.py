"""Posteriors of impossible counts, and the attributes that a census hides."""

import numpy as np
import pandas as pd
import pytest

from agglearn import proportions
from agglearn.errors import DataError
from agglearn.observations import Bags, LabelledBags
from agglearn.proportions import IndividualClassifier
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.proportions.posterior import class_posteriors
from agglearn.tasks.census_design import HIDDEN


def test_impossible_counts_have_no_posterior():
    with pytest.raises(DataError, match="impossible"):
        tree_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 2])


def test_hidden_attributes_are_numbered_from_zero():
    frame = pd.DataFrame(
        {
            "DIS": [1, 2, 2, 2, 2], "SEX": [1, 2, 2, 1, 1], "HICOV": [1, 1, 1, 2, 2], "PRIVCOV": [1, 2, 1, 2, 2],
            "PUBCOV": [1, 1, 2, 2, 2], "SCHL": [17, 18, 20, 21, 22], "WKL": [1, 2, 3, 1, 1], "ANC": [1, 2, 4, 1, 1],
            "RAC1P": [1, 2, 6, 9, 1], "HISP": [1, 1, 1, 1, 2],
        }
    )  # fmt: skip
    assert {name: list(of(frame)) for name, (of, _) in HIDDEN.items()} == {
        "DIS": [1, 0, 0, 0, 0], "SEX": [0, 1, 1, 0, 0], "HICOV": [1, 1, 1, 0, 0], "COVERAGE": [2, 1, 2, 0, 0],
        "SCHL": [0, 1, 1, 2, 3], "WKL": [0, 1, 2, 0, 0], "ANC": [0, 1, 3, 0, 0], "RAC1P": [1, 2, 3, 4, 0],
    }  # fmt: skip


def test_bags_without_counts_are_refused_by_name():
    bags = LabelledBags(Bags(np.zeros((4, 1)), [0, 2, 4], target=np.array([0.5, 1.0])), np.array([0, 1, 0, 1]))
    with pytest.raises(DataError, match="counts"):
        IndividualClassifier(l2=1.0).fit(bags)


def test_posteriors_of_several_classes_are_public():
    assert proportions.class_posteriors is class_posteriors
