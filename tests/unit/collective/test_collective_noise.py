"""Noise models: gradients, conjugates and laws against numbers computed another way."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from agglearn.collective import gibbs_kernels, kernels
from agglearn.collective.noise import noise_model
from agglearn.errors import ConfigError, DataError

Y = np.array([0.0, 1.0, 2.5, 7.0])
SMOOTH = {"poisson": {"rate": 0.7}, "gaussian": {"scale": 1.3}}
ALL = SMOOTH | {"laplace": {"scale": 0.6}}


@pytest.mark.parametrize("name", list(ALL))
def test_gradients_are_derivatives(name):
    noise, z, h = noise_model(name, **ALL[name]), np.array([0.3, 2.0, 2.0, 9.0]), 1e-5
    np.testing.assert_allclose((noise.loss(Y, z + h) - noise.loss(Y, z - h)) / (2 * h), noise.gradient(Y, z), rtol=1e-6)


@pytest.mark.parametrize("name", list(ALL))
def test_loss_is_the_logarithm_of_a_law(name):
    noise = noise_model(name, **ALL[name])
    for z in (0.5, 3.0):
        if name == "poisson":
            total = np.exp(-noise.loss(np.arange(60.0), np.full(60, z))).sum()
        else:
            total = quad(lambda y, z=z: float(np.exp(-noise.loss(y, z))), z - 40, z + 40, points=[z])[0]
        assert total == pytest.approx(1)


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("y", [1.0, 7.0])
def test_conjugate_is_the_supremum(name, y):
    noise, y = noise_model(name, **ALL[name]), np.array([y])
    low, high = noise.bounds(y)
    for share in (0.3, 0.8):
        dual = np.array([max(low[0], -2.0) * (1 - share) + share * min(high[0], 2.0)])
        best = minimize_scalar(
            lambda z, d=dual: (noise.loss(y, np.array([z])) - d * z).item(),
            bounds=(1e-9, 60), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        if name == "laplace" or best.x > 1e-6:
            assert noise.conjugate(y, dual).item() == pytest.approx(-best.fun, abs=1e-6)
        if name in SMOOTH:
            h = 1e-6
            slope = (noise.conjugate(y, dual + h) - noise.conjugate(y, dual - h)) / (2 * h)
            assert slope.item() == pytest.approx(noise.mean(y, dual).item(), rel=1e-5)
            bend = (noise.mean(y, dual + h) - noise.mean(y, dual - h)) / (2 * h)
            assert bend.item() == pytest.approx(noise.conjugate_curvature(y, dual).item(), rel=1e-4)


@pytest.mark.parametrize("name", ["exact", *ALL])
def test_where_the_loss_is_linear_its_slope_is_right(name):
    noise, y = noise_model(name, **ALL.get(name, {})), np.array([-1.0, 0.0, 2.0])
    linear, slope = noise.linear(y)
    if name == "exact":
        assert list(linear) == [False, True, False]
        return
    z = np.array([0.2, 1.5, 40.0])
    for k in np.flatnonzero(linear if name == "laplace" else linear & (y >= 0)):
        np.testing.assert_allclose(noise.gradient(np.full(3, y[k]), z), slope[k])


def check_slopes(slope):
    for kind, (name, parameters) in enumerate(ALL.items(), 1):
        noise = noise_model(name, **parameters)
        for y in Y:
            for z in (0.2, 2.0, 11.0):
                wanted = noise.gradient(np.array([y]), np.array([z])).item()
                assert slope(kind, y, next(iter(parameters.values())), z) == pytest.approx(wanted)


def test_compiled_slopes_are_the_gradients():
    check_slopes(kernels.loss_gradient)
    with pytest.raises(AssertionError):
        check_slopes(lambda kind, y, parameter, z: kernels.loss_gradient(kind, z, parameter, y))


def check_ratios(ratio):
    for kind, (name, parameters) in enumerate(ALL.items(), 1):
        noise = noise_model(name, **parameters)
        for y in (0.0, 1.0, 5.0):
            for n in (1.0, 4.0, 9.0):
                wanted = (
                    noise.loss(np.array([y]), np.array([n])) - noise.loss(np.array([y]), np.array([n + 1]))
                ).item()
                assert ratio(kind, y, next(iter(parameters.values())), n) == pytest.approx(wanted)


def test_compiled_ratios_are_those_of_the_laws():
    check_ratios(gibbs_kernels.log_ratio_noise)
    with pytest.raises(AssertionError):
        check_ratios(lambda kind, y, parameter, n: gibbs_kernels.log_ratio_noise(kind, y, parameter, n + 1))


def test_bad_noise_is_named():
    with pytest.raises(ConfigError, match="noise: 'uniform' is not known"):
        noise_model("uniform")
    with pytest.raises(DataError, match="scale must be a positive number"):
        noise_model("laplace", scale=0)
