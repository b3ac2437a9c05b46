"""Tasks: what is observed and how it is judged."""

from agglearn.tasks.bags import BagClassification
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.classification import Classification
from agglearn.tasks.compression import Compression
from agglearn.tasks.flows import FlowInference, FlowLearning
from agglearn.tasks.subsets import SubsetClassification

__all__ = [
    "BagClassification",
    "Classification",
    "Compression",
    "FlowInference",
    "FlowLearning",
    "Measurement",
    "Source",
    "SubsetClassification",
    "Task",
    "Truth",
]
