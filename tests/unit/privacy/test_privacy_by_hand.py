"""Calibration of a single number."""

import pytest

from agglearn.privacy.calibration import calibrate, discrete_gaussian_scales


def test_one_number_is_calibrated_exactly():
    mechanism = calibrate("discrete_gaussian", 1.0, 1e-6, 2, 2, changes=[2])
    assert mechanism.scale == pytest.approx(discrete_gaussian_scales([1.0], [2], 1.0, 1e-6)[0])
