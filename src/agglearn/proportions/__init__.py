"""Learning with label proportions (Sun 2019, chapter 3): exact inference under known counts, and other methods."""

from agglearn.proportions.alternating import AlternatingMeanMapClassifier
from agglearn.proportions.boosting import CardinalityBoosting
from agglearn.proportions.cardinality import CardinalityClassifier, NormalApproximationClassifier
from agglearn.proportions.ecological import EcologicalInference
from agglearn.proportions.feature_map import FeatureMapClassifier
from agglearn.proportions.group_shares import group_shares
from agglearn.proportions.individual import IndividualClassifier
from agglearn.proportions.margin_rivals import IndependentTables, LeastSquaresTables, LinearProgrammeTables
from agglearn.proportions.means import (
    EasyLLPClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
    MeanMapClassifier,
)
from agglearn.proportions.posterior import cardinality_posterior, class_posteriors
from agglearn.proportions.records_adapter import BagLearnerOnRecords

__all__ = [
    "AlternatingMeanMapClassifier",
    "BagLearnerOnRecords",
    "CardinalityBoosting",
    "CardinalityClassifier",
    "EasyLLPClassifier",
    "EcologicalInference",
    "FeatureMapClassifier",
    "IndependentTables",
    "IndividualClassifier",
    "InverseCalibrationClassifier",
    "LeastSquaresTables",
    "LinearProgrammeTables",
    "MeanEmbeddingClassifier",
    "MeanMapClassifier",
    "NormalApproximationClassifier",
    "cardinality_posterior",
    "class_posteriors",
    "group_shares",
]
