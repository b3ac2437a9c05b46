"""Bags of persons per region with label counts. Values per region (`keys`) pass through the whole workflow."""

import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from agglearn.datasets import Simulated
from agglearn.errors import NotAvailable, Stopped
from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.seeds import derive_generator
from agglearn.tasks import Measurement, Task, Truth
from agglearn.tasks.keys import NoKeys


class Regions(Simulated):
    """Persons with one covariate, whose mean differs between regions; the label depends on it."""

    n_regions: int = 8
    bag_size: int = 200

    def draw(self, seed: int):
        size, rng = self.bag_size, derive_generator("regions", seed)
        x = rng.normal(rng.normal(0, 1.5, (self.n_regions, 1)), 1, (self.n_regions, size))
        return x, rng.random(x.shape) < 1 / (1 + np.exp(-1.5 * x))


@dataclass(frozen=True)
class BagCounts(Observation):
    """Covariates (n_regions, bag_size) and the number of positive labels per region."""

    x: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Labels(Truth):
    x: np.ndarray
    y: np.ndarray

    def units(self):
        return [self.y]


class PersonLabels(Task):
    """Accuracy on persons, per region and over all."""

    MEASURES: ClassVar = {"accuracy": ("", "higher")}
    KEYS: ClassVar = ("region",)
    OBSERVATIONS: ClassVar = ((Regions, BagCounts, NoKeys, NoKeys),)
    truth: ClassVar = Labels

    def observe(self, source, kind, params, seed):
        x, y = source.data
        return kind(x, y.sum(1)), Labels(x, y)

    def measure(self, estimator, truth, measures):
        right = estimator.predict(truth.x) == truth.y
        for region, part in enumerate(right):
            yield Measurement("accuracy", float(part.mean()), keys={"region": region})
        yield Measurement("accuracy", float(right.mean()))


class MeanThreshold(Estimator):
    """Threshold on the covariate whose share of persons above matches the share of labels over all regions."""

    observes = BagCounts

    def _fit(self, observation):
        self.threshold_ = float(np.quantile(observation.x, 1 - observation.counts.sum() / observation.x.size))

    def predict(self, x):
        return x > self.threshold_


class Planted(MeanThreshold):
    """Methods that go wrong on purpose: one raises, one is killed, one hangs, one lacks a package, one stops at its limit.

    One is slow, one spawns processes, and nothing is wrong with `none`.
    """

    how: str = "raise"

    def _fit(self, observation):
        if self.how == "raise":
            raise ZeroDivisionError("matrix is singular")
        if self.how == "kill":
            os.kill(os.getpid(), 9)
        if self.how == "hang":
            time.sleep(600)
        if self.how == "lack":
            raise NotAvailable("pyspark is not installed")
        if self.how == "stop":
            raise Stopped("> 8 s")
        for _ in range(30 if self.how == "slow" else 0):
            time.sleep(0 if Path("hurry").exists() else 0.05)
        if self.how == "spawn":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                assert pool.map(abs, [-1, -2]) == [1, 2]
        super()._fit(observation)
