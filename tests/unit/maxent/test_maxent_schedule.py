"""Averaging, stopping and the notice of unstable steps on sequences whose answer is known."""

import math

import numpy as np
import pytest

from agglearn.maxent.model import WINDOW, DirectionMonitor, StoppingRule, effective_weights

M = 400


def run(schedule, theta_of_step, systematic=lambda step: None):
    step = 0
    while step < schedule.last:
        step += 1
        schedule.add(step, np.zeros(2), np.asarray(theta_of_step(step), dtype=float), systematic(step))
    return step


@pytest.mark.parametrize(
    ("average", "expected"),
    [(0.0, 100), (0.5, np.mean(range(51, 101))), (0.25, np.mean(range(76, 101))), (1.0, np.mean(range(1, 101)))],
)
def test_mean_over_the_last_share(average, expected):
    schedule = StoppingRule(100, average, 0.0, 0)
    assert run(schedule, lambda step: [step, 2 * step]) == 100
    assert np.allclose(schedule.result[1], [expected, 2 * expected])


@pytest.mark.parametrize(
    ("average", "at_least", "expected"), [(0.5, 0, 40), (0.75, 0, 80), (0.2, 0, 25), (0.5, 100, 120), (0.0, 100, 20)]
)
def test_once_settled_it_averages_and_ends(average, at_least, expected):
    schedule = StoppingRule(1000, average, 0.1, at_least)
    assert run(schedule, lambda step: [1 + 0.1**step, 1], lambda step: 0.009 if step == 20 else 1.0) == expected
    assert schedule.settled
    assert np.allclose(schedule.result[1], [1, 1], atol=1e-9)


def test_little_that_no_longer_falls_is_settled_and_much_is_not():
    def every_twenty(values):
        return lambda step: values[min(step // 20, len(values)) - 1] ** 2 if step % 20 == 0 else None

    falling, stalled, far = [0.7, 0.4, 0.2, 0.15, 0.09], [0.7, 0.4, 0.39, 0.38, 0.38], [0.9, 0.9, 0.9, 0.9, 0.9]
    ends = []
    for values in (falling, stalled, far):
        schedule = StoppingRule(1000, 0.5, 0.1, 0)
        ends.append((run(schedule, lambda step: [1, 1], every_twenty(values)), schedule.settled))
    assert ends == [(200, True), (160, True), (1000, False)]


def test_without_tolerance_it_goes_to_the_end():
    assert run(StoppingRule(300, 0.5, 0.0, 0), lambda step: [1, 1], lambda step: -1.0) == 300


def windows_of(move, steps, scale=1.0):
    """What `DirectionMonitor` say at the end of each window, and whether they ever noticed unrest."""
    windows, rng, said, unstable = DirectionMonitor((M, M), M), np.random.default_rng(0), [], False
    for step in range(1, steps + 1):
        moves = [move(step, rng), scale * rng.normal(size=M)]
        windows.sum += moves
        found = windows.add(step, [np.ones(M)] * 2, [np.sum(v**2) for v in moves], [scale**2 * M] * 2)
        said += [] if found is None else [found]
        unstable |= windows.unstable
    return said, unstable


def test_noise_alone_is_nearly_nothing_and_a_small_drift_within_it_is_seen():
    noise, unstable = windows_of(lambda step, rng: rng.normal(size=M), 300)
    assert max(noise) < 0.02
    assert not unstable
    drift, unstable = windows_of(lambda step, rng: 0.3 + rng.normal(size=M), 300)
    assert min(drift) > 0.06  # 0.3² = 0.09
    assert not unstable


def test_unstable_steps_are_noticed_and_fast_progress_is_not():
    assert windows_of(lambda step, rng: 9 * (-1) ** step + rng.normal(size=M), 100)[1]
    assert windows_of(lambda step, rng: 9 * math.sin(step / 2) + rng.normal(size=M), 100)[1]
    assert not windows_of(lambda step, rng: 50 * 0.8**step + rng.normal(size=M), 100)[1]
    assert not windows_of(lambda step, rng: 5 + 0.1 * rng.normal(size=M), 200, scale=0.1)[1]


def test_the_first_window_ends_with_its_last_step():
    monitor, ends = DirectionMonitor((1.0,), 3), []
    for step in range(1, 2 * WINDOW + 1):
        before = monitor.end
        monitor.add(step, [np.ones(3)], [1.0], [1.0])
        ends += [step] if monitor.end != before else []
    assert ends[0] == WINDOW


def test_effective_number_of_weights():
    assert np.isclose(effective_weights(np.array([1e9, 2.0, 0.0, -5.0]), 1.0), 1.5)
    assert effective_weights(np.zeros(3), 1.0) == 1.0
