"""Moments of label sums by the written-out Hessian, and the noise of every step."""

import math

import numpy as np
import pytest
from samples import people
from scipy import sparse

from agglearn.encoding import FeatureMap
from agglearn.labelsums import LabelledGradientDescent, labelled, walr
from agglearn.linear.sum_logistic import curvature, prior_variance
from agglearn.observations import (
    Records,
)


@pytest.mark.parametrize("noise_scale", [0.0, 5.0])
def test_moments_of_sums_by_the_written_out_hessian(noise_scale):
    rng, n = np.random.default_rng(3), 400
    x = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    sums = x.T @ (rng.random(n) < 1 / (1 + np.exp(-x @ [0.8, -0.6, 0.5, 0.7, -0.5]))) + rng.normal(0, noise_scale, 5)
    rate = sums[-1] / n
    hessian = rate * (1 - rate) * x.T @ x
    variance = np.diag(hessian)[:-1] + noise_scale**2
    gap = (sums - rate * x.sum(axis=0))[:-1]
    squares = (hessian[:-1, :-1] ** 2).sum(axis=1)  # the intercept has no prior
    expected = (gap**2 / variance - 1).sum() / (squares / variance).sum()
    matrix = sparse.csr_array(x)
    assert 4 * rate * (1 - rate) * curvature(matrix, np.ones(n))[:-1] == pytest.approx(np.diag(hessian)[:-1])
    assert prior_variance(matrix, sums, noise_scale, probes=3000) == pytest.approx(expected, rel=0.02)


def test_every_step_has_noise_of_its_own(monkeypatch):
    right, records = {}, Records.from_records(people(200), "y")

    class Kept(walr.Descent):
        def run(self, rng):
            right["side"] = self.label_term
            return super().run(rng)

    monkeypatch.setattr(walr, "Descent", Kept)
    LabelledGradientDescent("noise_per_step", 1.0, 1e-5, max_iter=100).fit(records)
    mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
    exact = mapped.matrix(records.frame).T @ records.y
    noise = np.array([200 * right["side"](t, None) - exact for t in range(300)])
    assert len(np.unique(noise.round(6), axis=0)) == 300
    once = labelled.analytic_gaussian_scale(math.sqrt(mapped.largest(2)), 1.0, 1e-5)
    assert noise.std() == pytest.approx(once * math.sqrt(100), rel=0.05)
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.05
