"""Windows of directions."""

import numpy as np

from agglearn.maxent.model import WINDOW, DirectionMonitor


def test_the_first_window_ends_with_its_last_step():
    monitor = DirectionMonitor((1.0,), 3)
    ends = []
    for step in range(1, 2 * WINDOW + 1):
        before = monitor.end
        monitor.add(step, [np.ones(3)], [1.0], [1.0])
        ends += [step] if monitor.end != before else []
    assert ends[0] == WINDOW
