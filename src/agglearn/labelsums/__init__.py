"""Logistic regression from public features and the sum of features over records with label 1, exact or noisy.

Also the other steps of the ladder of observations, from the base rate to all records, and model choice without records.
"""

from agglearn.labelsums.baselines import BaseRateClassifier, BoostedTreesSkyline
from agglearn.labelsums.labelled import LabelledGradientDescent, SklearnLogistic
from agglearn.labelsums.selection import AggregateSearch, RecordSearch
from agglearn.labelsums.walr import WALRClassifier

__all__ = [
    "AggregateSearch",
    "BaseRateClassifier",
    "BoostedTreesSkyline",
    "LabelledGradientDescent",
    "RecordSearch",
    "SklearnLogistic",
    "WALRClassifier",
]
