"""Data sets: fetched, packaged, simulated."""

from agglearn.datasets.base import BagPopulation, Dataset, Population, RecordStore, Simulated, Stored
from agglearn.datasets.census import Census
from agglearn.datasets.elections import CrossTabulatedElection
from agglearn.datasets.flows import BirdMigration, FlowPopulation, HumanMobility, StateFlows
from agglearn.datasets.gaussian_bags import GaussianBags
from agglearn.datasets.point_clouds import DigitClouds, PointClouds
from agglearn.datasets.published_tables import PublishedTables
from agglearn.datasets.simulated import (
    Categorical,
    ClickLog,
    ClickTables,
    LogLinear,
    SoftmaxLabels,
    TablePopulation,
    Xor,
)
from agglearn.datasets.tabular import Packaged, Streamed, Tabular

__all__ = [
    "BagPopulation",
    "BirdMigration",
    "Categorical",
    "Census",
    "ClickLog",
    "ClickTables",
    "CrossTabulatedElection",
    "Dataset",
    "DigitClouds",
    "FlowPopulation",
    "GaussianBags",
    "HumanMobility",
    "LogLinear",
    "Packaged",
    "PointClouds",
    "Population",
    "PublishedTables",
    "RecordStore",
    "Simulated",
    "SoftmaxLabels",
    "StateFlows",
    "Stored",
    "Streamed",
    "TablePopulation",
    "Tabular",
    "Xor",
]
