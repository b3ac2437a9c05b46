"""Intervals hold the truth as often as they say, in worlds drawn by the penalty; planted wrong intervals do not.

Fixed seeds. The mean coverage of R worlds passes within five standard errors of 93 to 97 %, a false-alarm rate below
1e-6 for coverage in that range.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from intervals import bags, sums, tables

pytestmark = pytest.mark.slow

CASES = [
    (sums, 0.3, 120, {"l2": 2.0, "deviation": 0.5}), (sums, 3.0, 120, {"l2": 2.0, "deviation": 0.5}),
    (sums, 0.1, 300, {"l2": "moments", "deviation": 0.5}), (sums, 3.0, 120, {"l2": "moments", "deviation": 0.5}),
    (bags, 1.0, 100, {"l2": 2.0, "deviation": 0.5}), (bags, 0.1, 100, {"l2": "held_out", "deviation": 0.5}),
    (tables, 1.0, 40, {"l2": 3.125, "deviation": 0.4}), (tables, 1.0, 40, {"l2": "moments", "deviation": 0.4}),
]  # fmt: skip


def without_noise(model) -> None:
    """Let a model of label sums forget the noise."""
    model._evidence = replace(model._evidence, noise=None)


def without_bias(model) -> None:
    """Let a model take its penalty for unbiased, as the plain sandwich does."""
    original = model._solution
    model._solution = lambda: replace(s := original(), prior=np.zeros_like(s.prior))


def without_quantile(model) -> None:
    """Let a model whose λ was chosen from the data take the prior for the most likely one."""
    original = model._solution
    model._solution = lambda: replace(original(), upper=None)


def coverage(world, epsilon, replicates: int, options: dict, level: float = 0.95, plant=None) -> tuple[float, float]:
    """Mean over worlds of the share of covered rows, and its standard error."""
    shares = []
    for seed in range(replicates):
        model, rows, truth = world(seed, epsilon, **options)
        if plant:
            plant(model)
        low, high = model.predict_interval(rows, level).T
        shares.append(((low <= truth) & (truth <= high)).mean())
    return float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(replicates))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}-{c[3]['l2']}")
def test_intervals_hold_the_truth_as_often_as_they_say(case):
    mean, error = coverage(*case)
    assert 0.93 - 5 * error < mean < 0.97 + 5 * error
    assert error < 0.02


@pytest.mark.parametrize(("plant", "l2"), [(without_noise, 0.05), (without_bias, 2.0)])
def test_intervals_that_forget_the_noise_or_the_penalty_are_caught(plant, l2):
    """A weak penalty, since the bias of a strong one makes up for much of the noise."""
    mean, error = coverage(sums, 0.3, 80, {"l2": l2, "deviation": 0.5}, plant=plant)
    assert mean < 0.93 - 5 * error


def test_intervals_of_a_penalty_from_the_data_need_more_than_the_likeliest_prior():
    mean, error = coverage(sums, 0.1, 120, {"l2": "moments", "deviation": 0.5}, plant=without_quantile)
    assert mean < 0.93 - 5 * error


def test_another_level_is_held_too():
    mean, error = coverage(*CASES[1], level=0.5)
    assert abs(mean - 0.5) < 0.02 + 5 * error
