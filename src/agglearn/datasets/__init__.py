"""Data sets: fetched, packaged, simulated."""

from agglearn.datasets.base import Dataset, Population, RecordStore, Simulated, Stored
from agglearn.datasets.census import Census
from agglearn.datasets.simulated import Categorical, LogLinear, Xor
from agglearn.datasets.tabular import Packaged, Tabular

__all__ = [
    "Categorical",
    "Census",
    "Dataset",
    "LogLinear",
    "Packaged",
    "Population",
    "RecordStore",
    "Simulated",
    "Stored",
    "Tabular",
    "Xor",
]
