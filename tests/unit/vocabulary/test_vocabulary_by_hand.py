"""Priors, noise and columns of clusters against a few numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.observations import ContingencyTables, NoiseSpec, Records
from agglearn.vocabulary import LogisticOnClusters, OptimalQuantizer
from agglearn.vocabulary.quantizer import single_tables
from agglearn.vocabulary.shrinkage import beta_prior, remove_noise


def test_counts_without_noise_stay_as_they_are():
    frame = people(300)
    exact = ContingencyTables.from_records(frame[["job", "y"]], "y", categorical=["job"])
    noise = NoiseSpec("gaussian", 3.0, 1.0, 1e-6, "label")
    counts, sums = single_tables(replace(exact, noise=noise))["job"]
    np.testing.assert_array_equal(counts, exact.dense(0)[0])
    expected = remove_noise(*exact.dense(0), exact.total, exact.positives, (0.0, 9.0))[1]
    np.testing.assert_array_equal(sums, expected)


def test_rates_of_zero_and_one_have_a_weak_prior():
    a, b = beta_prior(np.full(40, 10.0), np.repeat([0.0, 10.0], 20))
    assert a == pytest.approx(b, rel=1e-3)
    assert a + b < 0.1


def test_every_feature_has_columns_of_its_own():
    """The label depends on one of two features: with shared columns both would count alike."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("uv"), 400), "b": rng.choice(list("xy"), 400)})
    y = (frame["a"] == "u").to_numpy() ^ (rng.random(400) < 0.05)
    records = Records.from_records(frame.assign(y=y.astype(int)), "y")
    model = LogisticOnClusters(OptimalQuantizer(4), l2=[0.05], random_state=0).fit(records)
    assert ((model.predict_proba(frame)[:, 1] > 0.5) == y).mean() > 0.9
