"""Methods that learn nothing and measure what they were given: random numbers, and what other runs have left behind."""

import os
import random
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.tasks import Measurement, Task, Truth

counter = []


@dataclass(frozen=True)
class Nothing(Observation):
    noise = None

    @classmethod
    def load(cls, folder):
        return cls()


@dataclass(frozen=True)
class Zero(Truth):
    @classmethod
    def load(cls, folder):
        return cls()

    def units(self):
        return []


class Reading(Task):
    MEASURES: ClassVar = dict.fromkeys(("numpy", "python", "runs", "state"), ("", "lower"))
    truth = Zero

    def observe(self, source, kind, params, seed):
        return Nothing(), Zero()

    def measure(self, estimator, truth, measures):
        for name in measures:
            yield Measurement(name, getattr(estimator, name + "_"))


class Drawing(Estimator):
    observes = Nothing

    def _fit(self, observation):
        counter.append(1)
        self.numpy_, self.python_, self.runs_ = np.random.random(), random.random(), len(counter)  # noqa: NPY002
        self.state_ = self.random_state % 2**52


class Unsavable(Drawing):
    def save(self, folder):
        folder.mkdir()
        (folder / "half").write_text("of it")
        raise TypeError("a lock cannot be saved")


class Costly(Drawing):
    def _fit(self, observation):
        started = time.process_time()
        held = np.ones(100 * 2**17)  # 100 MiB
        while time.process_time() - started < 0.2:
            held[:1000].sum()
        super()._fit(observation)


class Failing(Drawing):
    def _fit(self, observation):
        if "MENDED" not in os.environ:
            raise ValueError("not yet")
        super()._fit(observation)
