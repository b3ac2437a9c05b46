"""Learning from contingency tables with a maximum-entropy model (Gilotte, Ben Yahmed, Rohde 2022), and baselines."""

from agglearn.maxent.best_pair import BestPairClassifier
from agglearn.maxent.exact import ExactMaxEntClassifier
from agglearn.maxent.joint import JointMaxEntClassifier
from agglearn.maxent.model import MaxEntClassifier
from agglearn.maxent.naive_bayes import NaiveBayesClassifier
from agglearn.maxent.noise_aware import ExactNoiseAwareMaxEntClassifier, NoiseAwareMaxEntClassifier
from agglearn.maxent.skyline import LogisticSkyline
from agglearn.maxent.subsets import FeatureSubsets

__all__ = [
    "BestPairClassifier",
    "ExactMaxEntClassifier",
    "ExactNoiseAwareMaxEntClassifier",
    "FeatureSubsets",
    "JointMaxEntClassifier",
    "LogisticSkyline",
    "MaxEntClassifier",
    "NaiveBayesClassifier",
    "NoiseAwareMaxEntClassifier",
]
