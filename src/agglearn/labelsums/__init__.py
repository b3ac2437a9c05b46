"""Logistic regression from features and sums of features over records with label 1. Other steps of the ladder."""

from agglearn.labelsums.baselines import BaseRateClassifier, BoostedTreesSkyline
from agglearn.labelsums.labelled import LabelledGradientDescent, SklearnLogistic
from agglearn.labelsums.selection import AggregateSearch, RecordSearch
from agglearn.labelsums.walr import WALRClassifier
from agglearn.labelsums.with_sample import TablesAndSampleClassifier

__all__ = [
    "AggregateSearch",
    "BaseRateClassifier",
    "BoostedTreesSkyline",
    "LabelledGradientDescent",
    "RecordSearch",
    "SklearnLogistic",
    "TablesAndSampleClassifier",
    "WALRClassifier",
]
