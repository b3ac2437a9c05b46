"""Noise models: gradients, conjugates and laws against numbers computed another way."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from agglearn.collective import gibbs_kernels, kernels
from agglearn.collective import noise as laws_of_noise
from agglearn.collective.noise import NoiseModel, noise_model
from agglearn.errors import ConfigError, DataError

Y = np.array([0.0, 1.0, 2.5, 7.0])
SMOOTH = {"poisson": {"rate": 0.7}, "gaussian": {"scale": 1.3}}
ALL = SMOOTH | {"laplace": {"scale": 0.6}}


LAWS = {
    "poisson": lambda z: stats.poisson(0.7 * z),
    "gaussian": lambda z: stats.norm(z, 1.3),
    "laplace": lambda z: stats.laplace(z, 0.6),
}
DRAWS = 40_000


def test_every_noise_has_a_law():
    kinds = {type(noise_model(name)) for name in (*LAWS, "exact")}
    assert kinds == {k for k in vars(laws_of_noise).values() if isinstance(k, type) and NoiseModel in k.__mro__[1:]}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("z", [0.4, 9.0])
def test_the_loss_is_minus_the_logarithm_of_the_law(name, z):
    given, law = ALL[name], LAWS[name]
    y = np.arange(13.0)
    log = law(z).logpmf if name == "poisson" else law(z).logpdf
    np.testing.assert_allclose(noise_model(name, **given).loss(y, np.full(13, z)), -log(y))


@pytest.mark.parametrize("name", LAWS)
def test_counts_are_drawn_by_the_law(name):
    """Mean and variance; the smallest mistake noticed is 5 % of the scale or the rate, which is planted."""
    given, law = ALL[name], LAWS[name]

    def differs(made: dict) -> bool:
        drawn = noise_model(name, **made).sample(np.full(DRAWS, 30.0), np.random.default_rng(0))
        variance, kurtosis = law(30.0).var(), law(30.0).stats("k")
        far = abs(drawn.mean() - law(30.0).mean()) > 5 * math.sqrt(variance / DRAWS)
        return bool(far or abs(drawn.var() / variance - 1) > 5 * math.sqrt((2 + kurtosis) / DRAWS))

    assert not differs(given)
    assert differs({k: 1.05 * v for k, v in given.items()})


@pytest.mark.parametrize("name", LAWS)
def test_the_variance_is_that_of_an_estimate_of_the_true_count(name):
    """Of y/rate. Where it depends on the true count, this is taken for (y + 1)/rate."""
    given, law = ALL[name], LAWS[name]
    y = np.array([0.0, 3.0, 20.0])
    rate = given.get("rate", 1.0)
    expected = [law((v + 1) / rate if name == "poisson" else v).var() / rate**2 for v in y]
    np.testing.assert_allclose(np.broadcast_to(noise_model(name, **given).variance(y), 3), expected)


@pytest.mark.parametrize("name", list(ALL))
def test_gradients_are_derivatives(name):
    noise, z, h = noise_model(name, **ALL[name]), np.array([0.3, 2.0, 2.0, 9.0]), 1e-5
    np.testing.assert_allclose((noise.loss(Y, z + h) - noise.loss(Y, z - h)) / (2 * h), noise.gradient(Y, z), rtol=1e-6)


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


def check(kernel, wanted):
    """A compiled function of the kind of noise, an observed and a true count is that of each noise model."""
    for kind, (name, parameters) in enumerate(ALL.items(), 1):
        for y, n in itertools.product(Y, (0.2, 1.0, 2.0, 4.0, 11.0)):
            expected = wanted(noise_model(name, **parameters), np.array([y]), np.array([n])).item()
            assert kernel(kind, y, next(iter(parameters.values())), n) == pytest.approx(expected)


COMPILED = {
    "slope": (kernels.loss_gradient, lambda noise, y, n: noise.gradient(y, n)),
    "ratio": (gibbs_kernels.log_ratio_noise, lambda noise, y, n: noise.loss(y, n) - noise.loss(y, n + 1)),
}


@pytest.mark.parametrize("kernel", COMPILED)
def test_compiled_functions_are_those_of_the_noise_models(kernel):
    right, wanted = COMPILED[kernel]
    check(right, wanted)
    for wrong in (lambda kind, y, s, n: right(kind, n, s, y), lambda kind, y, s, n: right(kind, y, s, n + 1)):
        with pytest.raises(AssertionError):
            check(wrong, wanted)


def test_bad_noise_is_named():
    with pytest.raises(ConfigError, match="noise: 'uniform' is not known"):
        noise_model("uniform")
    with pytest.raises(DataError, match="scale must be a positive number"):
        noise_model("laplace", scale=0)
