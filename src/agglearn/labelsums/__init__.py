"""Logistic regression from public features and one, possibly noisy, sum of features over records with label 1; the ladder of
observations from the base rate to all records, and model choice without records."""

from agglearn.labelsums.baselines import BaseRateClassifier, BoostedTreesSkyline
from agglearn.labelsums.labelled import LabelledDescent, RecordsLogistic
from agglearn.labelsums.selection import SelectedByAggregates, TunedOnRecords
from agglearn.labelsums.walr import WALRClassifier

__all__ = [
    "BaseRateClassifier",
    "BoostedTreesSkyline",
    "LabelledDescent",
    "RecordsLogistic",
    "SelectedByAggregates",
    "TunedOnRecords",
    "WALRClassifier",
]
