"""Tasks: what is observed and how it is judged. Each is imported when first asked for: most jobs need one."""

import importlib
from typing import TYPE_CHECKING

from agglearn.tasks.base import Measurement, Source, Task, Truth

if TYPE_CHECKING:  # read by tools, and by `agglearn.inspection`
    from agglearn.tasks.bags import BagClassification
    from agglearn.tasks.classification import Classification, SubsetClassification
    from agglearn.tasks.compression import Compression
    from agglearn.tasks.distribution import DistributionRegression
    from agglearn.tasks.flows import FlowInference, FlowLearning

__all__ = [
    "BagClassification",
    "Classification",
    "Compression",
    "DistributionRegression",
    "FlowInference",
    "FlowLearning",
    "Measurement",
    "Source",
    "SubsetClassification",
    "Task",
    "Truth",
]
_HOMES = {
    "BagClassification": "bags",
    "Classification": "classification",
    "Compression": "compression",
    "DistributionRegression": "distribution",
    "FlowInference": "flows",
    "FlowLearning": "flows",
    "SubsetClassification": "classification",
}


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
