"""Learning from contingency tables with a maximum-entropy model (Gilotte, Ben Yahmed, Rohde 2022), and its baselines."""

from agglearn.maxent.model import MaxEntClassifier

__all__ = ["MaxEntClassifier"]
