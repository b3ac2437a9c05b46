"""What an attacker gains, and what several releases have spent, against distances of distributions that are summed up here."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from agglearn.errors import DataError
from agglearn.privacy import analytic_gaussian_scale, discrete_gaussian_delta, gaussian_epsilon, spending
from agglearn.privacy.mechanisms import Mechanism, discrete_gaussian
from agglearn.privacy.spending import COLUMNS, add_up, append_ledger, attacker_advantage, gaussian_rho, read_ledger


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-5), (3, 1e-6), (10, 1e-9)])
def test_the_gain_by_gaussian_noise_is_the_distance_of_two_normal_laws(epsilon, delta):
    sigma = analytic_gaussian_scale(1, epsilon, delta)
    distance = lambda x: abs(norm.pdf(x, 0, sigma) - norm.pdf(x, 1, sigma)) / 2  # noqa: E731
    reach = 40 * sigma
    truth = quad(distance, -reach, 0.5, limit=500)[0] + quad(distance, 0.5, reach, limit=500)[0]
    assert attacker_advantage(epsilon, gaussian_rho(epsilon, delta)) == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("sigma", [1.0, 3.0, 20.0])
def test_the_gain_by_discrete_gaussian_noise(sigma):
    _, p = discrete_gaussian(sigma)
    distance = abs(np.append(p, 0) - np.append(0, p)).sum() / 2
    assert attacker_advantage(0, 1 / (2 * sigma**2)) == pytest.approx(distance, rel=0.05)
    assert discrete_gaussian_delta([sigma], [1], 0.0) == pytest.approx(distance, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_answers_reach_the_gain_of_a_pure_epsilon_and_laplace_noise_stays_below(epsilon):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))  # an answer is the true one with this probability
    assert attacker_advantage(epsilon) == pytest.approx(2 * truth - 1)
    noise = Mechanism("discrete_laplace", 1 / epsilon)
    p = np.exp(-abs(np.arange(-300, 301)) / noise.scale)
    p /= p.sum()
    assert abs(np.append(p, 0) - np.append(0, p)).sum() / 2 <= attacker_advantage(epsilon) + 1e-12


def rows(*releases):
    """Rows of a ledger for (mechanism, ε, δ), all of which protect the same."""
    spent = [(e, d, gaussian_rho(e, d) if mechanism == "gaussian" else e**2 / 2) for mechanism, e, d in releases]
    start = ["2026-01-01T00:00:00+00:00", "tables", 'unit "user, id"']
    return pd.DataFrame([[*start, r[0], *s] for r, s in zip(releases, spent, strict=True)], columns=COLUMNS)


def test_one_release_has_its_own_epsilon_and_many_less_than_the_sum():
    assert add_up(rows(("gaussian", 1.0, 1e-6)))[1:] == (1.0, 1e-6)
    rho, epsilon, delta = add_up(rows(*[("gaussian", 1.0, 1e-6)] * 20))
    assert rho == pytest.approx(20 * gaussian_rho(1.0, 1e-6))
    assert delta == pytest.approx(2e-5)
    assert gaussian_epsilon(1 / math.sqrt(2 * rho), 1, delta) <= epsilon < 6
    assert add_up(rows(*[("laplace", 0.5, 0.0)] * 3))[1:] == (1.5, 0.0)  # without delta, zCDP has no epsilon


def test_a_ledger_is_read_as_it_was_written(tmp_path):
    path, first, second = tmp_path / "spent.csv", rows(("gaussian", 1.0, 1e-6)), rows(("laplace", 0.3, 0.0))
    assert read_ledger(path).empty
    append_ledger(path, first)
    assert len(append_ledger(path, second)) == 2
    pd.testing.assert_frame_equal(read_ledger(path), pd.concat([first, second], ignore_index=True))
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "change", [("laplace,0.3", "laplace,much"), (",0.3,", ",-0.3,"), ("rho", "roe"), (",0.0,", ",,")]
)
def test_a_damaged_ledger_is_refused(tmp_path, change):
    path = tmp_path / "spent.csv"
    append_ledger(path, rows(("laplace", 0.3, 0.0)))
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(
        DataError, match=r"spent.csv: is no ledger of `agglearn private`; mend it, or name another file"
    ):
        read_ledger(path)


def test_the_gain_in_words():
    said = spending.describe_attacker(attacker_advantage(1.0), "record")
    assert "whether a record is among the data is right in at most 73.1 of 100 guesses, where chance gives 50" in said
    assert "which of two labels a record has" in spending.describe_attacker(0.1, "label")
