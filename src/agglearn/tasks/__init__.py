"""Tasks: which observations learners get, and how they are judged."""

from agglearn.tasks.bags import BagClassification
from agglearn.tasks.base import Task, TaskInput, Truth
from agglearn.tasks.classification import Classification, SubsetClassification
from agglearn.tasks.compression import Compression
from agglearn.tasks.distribution import DistributionRegression
from agglearn.tasks.ecological import EcologicalTables
from agglearn.tasks.flows import FlowInference, FlowLearning
from agglearn.tasks.measures import Measurement

__all__ = [
    "BagClassification",
    "Classification",
    "Compression",
    "DistributionRegression",
    "EcologicalTables",
    "FlowInference",
    "FlowLearning",
    "Measurement",
    "SubsetClassification",
    "Task",
    "TaskInput",
    "Truth",
]
