"""Small computations against a few numbers on paper."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agglearn.datasets.fetching import LARGE, _Lines
from agglearn.datasets.point_clouds import read_off
from agglearn.encoding.dense import DenseEncoder
from agglearn.encoding.target import TargetEncoder
from agglearn.linear.sum_logistic import curvature, prior_variance
from agglearn.privacy.calibration import calibrated, discrete_gaussian_scales


def test_text_after_the_faces_of_a_mesh_is_left():
    text = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n0.5 0.5 0.5\n"
    vertices, triangles = read_off(text, "a.off")
    assert vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert triangles.tolist() == [[0, 1, 2]]


def test_one_number_is_calibrated_exactly():
    mechanism = calibrated("discrete_gaussian", 1.0, 1e-6, 2, 2, changes=[2])
    assert mechanism.scale == pytest.approx(discrete_gaussian_scales([1.0], [2], 1.0, 1e-6)[0])


def test_a_numeric_column_of_one_value_becomes_zeros():
    frame = pd.DataFrame({"a": [2.0, 2.0, 2.0], "b": [1.0, 2.0, 3.0]})
    encoder = DenseEncoder(frame, [])
    np.testing.assert_allclose(encoder.sparse(frame).toarray(), [[0, -(1.5**0.5)], [0, 0], [0, 1.5**0.5]], atol=1e-6)


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


def test_the_end_of_a_large_file_is_shown_at_once_and_no_part_of_it():
    terminal = io.StringIO()
    lines = _Lines(terminal)
    lines("small", LARGE, LARGE)
    lines("large", LARGE, 3 * LARGE)
    lines("unknown", LARGE, 0)
    assert terminal.getvalue() == ""
    lines("large", 3 * LARGE, 3 * LARGE)
    assert terminal.getvalue().startswith("fetching large: 100 % of")


def test_noisy_counts_below_one_are_taken_for_one():
    encoder = TargetEncoder.of_counts(
        "a", ("u", "v", "w"), np.array([0.0, -3.0, 16.0]), np.array([0, 2, 8]), 0.5, 50, 2.0
    )
    assert encoder.labels[1:] == ("1+ records, rate 0.333", "1+ records, rate 0.667", "16+ records, rate 0.5")
