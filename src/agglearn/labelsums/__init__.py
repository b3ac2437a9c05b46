"""Logistic regression from public features and one, possibly noisy, sum of features over records with label 1."""

from agglearn.labelsums.labelled import LabelledDescent, RecordsLogistic
from agglearn.labelsums.walr import WALRClassifier

__all__ = ["LabelledDescent", "RecordsLogistic", "WALRClassifier"]
