"""Every mechanism against the definition of its law, and every calibration against the δ of its noise.

The smallest mistake of the scale that draws notice is 10 %, and 25 % for those of OpenDP, which take longer; mistakes of these sizes are
planted. A mechanism without a definition here fails.
"""

import math

import numpy as np
import pytest
from scipy import stats

from agglearn.privacy import (
    MECHANISMS,
    Mechanism,
    calibrate,
    discrete_gaussian_delta,
    draw_private,
    draw_seeded,
    gaussian_delta,
)
from agglearn.privacy.calibration import CALIBRATIONS

WHOLE = np.arange(-400, 401)
LAWS = {  # log-density at x up to a constant, and the statistic that the scale follows
    "gaussian": (lambda x, s: -(x**2) / (2 * s**2), np.square),
    "laplace": (lambda x, s: -abs(x) / s, abs),
    "discrete_gaussian": (lambda x, s: -(x**2) / (2 * s**2), np.square),
    "discrete_laplace": (lambda x, s: -abs(x) / s, abs),
}
FALSE_ALARM = 1e-6


def test_every_mechanism_has_a_law():
    assert set(LAWS) == set(MECHANISMS)


def moments(kind: str, scale: float, of) -> tuple[float, float]:
    """Mean and variance of a statistic of the noise, by summation: over whole numbers, or over a fine grid."""
    x = WHOLE.astype(float) if kind.startswith("discrete") else np.linspace(-40 * scale, 40 * scale, 800_001)
    p = np.exp(LAWS[kind][0](x, scale))
    p /= p.sum()
    mean = p @ of(x)
    return float(mean), float(p @ of(x) ** 2 - mean**2)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.5])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_variance_of_the_definition(kind, scale):
    """At small scales whole numbers vary otherwise than continuous ones do."""
    assert Mechanism(kind, scale).variance == pytest.approx(moments(kind, scale, lambda x: x)[1], rel=1e-6)
    root = 1 if kind.endswith("gaussian") else 2
    assert (abs(Mechanism(kind, scale).variance / (root * scale**2) - 1) > 0.01) == (
        kind.startswith("discrete") and scale < 4 - 3.5 * kind.endswith("gaussian")
    )


def differ(drawn: np.ndarray, kind: str, scale: float) -> bool:
    """Whether draws have another scale, by the mean of the statistic that is sufficient for it."""
    mean, variance = moments(kind, scale, LAWS[kind][1])
    z = (LAWS[kind][1](drawn).mean() - mean) / math.sqrt(variance / len(drawn))
    return bool(2 * stats.norm.sf(abs(z)) < FALSE_ALARM)


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize(("draw", "n", "mistake"), [(draw_seeded(4), 20_000, 1.1), (draw_private, 4000, 1.25)])
def test_scale_of_the_definition(draw, n, mistake, kind):
    drawn = draw(Mechanism(kind, 2.5), np.full(n, 7), "a") - 7
    assert not differ(drawn, kind, 2.5)
    assert differ(drawn, kind, 2.5 * mistake)
    assert differ(drawn, kind, 2.5 / mistake)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_opendp_is_asked_for_this_scale(kind, monkeypatch):
    """Exactly, where draws show large mistakes only."""
    import opendp.prelude as dp

    asked = []
    for name in ("laplace", "gaussian"):
        make = getattr(dp.m, f"make_{name}")
        spy = lambda *given, make=make, name=name, scale: asked.append((name, scale)) or make(*given, scale=scale)  # noqa: E731
        monkeypatch.setattr(dp.m, f"make_{name}", spy)
    draw_private(Mechanism(kind, 2.75), np.array([1, 2]))
    assert asked == [(kind.removeprefix("discrete_"), 2.75)]


EVERY = [(kind, calibration) for kind, some in CALIBRATIONS.items() for calibration in some]
LEAST = {"analytic", "exact"}


@pytest.mark.parametrize(("kind", "calibration"), EVERY)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-5), (0.9, 1e-8)])
def test_delta_of_the_calibrated_noise(kind, calibration, epsilon, delta):
    """Two numbers of which a neighbour changes one by 1 and one by 2."""
    scale = calibrate(kind, epsilon, delta, 3, math.sqrt(5), calibration, [1, 2]).scale
    if kind == "gaussian":
        true = lambda s: gaussian_delta(s, math.sqrt(5), epsilon)  # noqa: E731
    else:
        true = lambda s: discrete_gaussian_delta([s, s], [1, 2], epsilon)  # noqa: E731
    assert true(scale) <= delta * (1 + 1e-9)
    assert (true(scale / 1.005) > delta) == (calibration in LEAST)  # the smallest mistake: half a per cent
    assert true(scale / 1.5) > delta
