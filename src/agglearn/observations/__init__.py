"""Observations: the only things that learners are given."""

from agglearn.observations.base import NoiseSpec, Observation
from agglearn.observations.flows import FlowCounts, FlowInstances
from agglearn.observations.noise import with_gaussian_noise
from agglearn.observations.records import Records
from agglearn.observations.tables import ContingencyTables, Table

__all__ = [
    "ContingencyTables",
    "FlowCounts",
    "FlowInstances",
    "NoiseSpec",
    "Observation",
    "Records",
    "Table",
    "with_gaussian_noise",
]
