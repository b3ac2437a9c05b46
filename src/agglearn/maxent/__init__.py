"""Learning from contingency tables with a maximum-entropy model (Gilotte, Ben Yahmed, Rohde 2022), and its baselines."""

from agglearn.maxent.model import MaxEntClassifier
from agglearn.maxent.skyline import LogisticSkyline

__all__ = ["LogisticSkyline", "MaxEntClassifier"]
