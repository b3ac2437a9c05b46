"""Averaging and stopping on sequences whose mean is known."""

import numpy as np
import pytest

from agglearn.maxent.schedule import Schedule


def run(schedule, theta_of_step):
    step = 0
    while step < schedule.last:
        step += 1
        schedule.add(step, np.zeros(2), np.asarray(theta_of_step(step), dtype=float))
    return step


@pytest.mark.parametrize(
    ("average", "expected"), [(0.0, 100), (0.5, np.mean(range(51, 101))), (1.0, np.mean(range(1, 101)))]
)
def test_mean_over_the_last_share(average, expected):
    schedule = Schedule(100, average, 0.0, np.ones(2))
    assert run(schedule, lambda step: [step, 2 * step]) == 100
    assert np.allclose(schedule.result[1], [expected, 2 * expected])


def test_settled_sequences_end_early_and_moving_ones_do_not():
    still, moving = (Schedule(1000, 0.5, 0.01, np.ones(2)) for _ in range(2))
    assert run(still, lambda step: [1 + 0.1**step, 1]) == 40  # settled at 20, averaged for as long again
    assert run(moving, lambda step: [step, 1]) == 1000
    assert np.allclose(still.result[1], [1, 1], atol=1e-9)


def test_cells_without_weight_do_not_keep_training_going():
    schedule = Schedule(1000, 0.0, 0.01, np.array([1.0, 0.0]))
    assert run(schedule, lambda step: [1, step]) == 20
