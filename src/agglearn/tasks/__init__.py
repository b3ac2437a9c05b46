"""Tasks: which observations learners get, and how they are judged.

A task is imported on first use, since most jobs need one.
"""

import importlib
from typing import TYPE_CHECKING

from agglearn.tasks.base import Measurement, Task, TaskInput, Truth

if TYPE_CHECKING:  # read by tools, and by `agglearn_workflow.digests`
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
    "SubsetClassification",
    "Task",
    "TaskInput",
    "Truth",
]
_MODULES = {
    "BagClassification": "bags",
    "Classification": "classification",
    "Compression": "compression",
    "DistributionRegression": "distribution",
    "FlowInference": "flows",
    "FlowLearning": "flows",
    "SubsetClassification": "classification",
}


def __getattr__(name: str) -> type[Task]:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
