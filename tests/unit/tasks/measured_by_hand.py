"""What the tests of measures share: what a task measures, and plain arithmetic."""

import json
import math

from agglearn.tasks.base import Task


def about(**keys) -> str:
    """Keys of a measurement as JSON."""
    return json.dumps(keys)


def measured(task: type[Task], estimator, truth, measures=None) -> dict:
    """{(measure, JSON of the keys, step): value} of all measures that a task has, or of some."""
    found = list(task().measure(estimator, truth, list(task.MEASURES) if measures is None else measures))
    assert {key for m in found for key in m.keys or ()} <= set(task.KEYS)
    keys = [(m.measure, m.keys and about(**m.keys), m.step) for m in found]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, (m.value for m in found), strict=True))


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def log_loss(y, p) -> float:
    return -mean(math.log(q if label else 1 - q) for label, q in zip(y, p, strict=True))


def nllh(y, p) -> float:
    return 1 - log_loss(y, p) / log_loss(y, [mean(y)] * len(y))
