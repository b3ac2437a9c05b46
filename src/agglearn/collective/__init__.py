"""Collective graphical models: inference and learning about individuals from noisy counts of a population (Sun 2019)."""

from agglearn.collective.cliques import from_cliques
from agglearn.collective.estimators import (
    FlowReconstruction,
    GibbsBesideMap,
    MigrationEM,
    MobilityBaseline,
    MobilityEM,
    NoisyCounts,
    SharedTableEM,
    TunedReconstruction,
)
from agglearn.collective.inference import METHODS, Inference, infer
from agglearn.collective.laws import FreeTables, HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.learning import Learned, fit_em, fit_lbfgs
from agglearn.collective.model import ChainModel, TreeModel

__all__ = [
    "METHODS",
    "ChainModel",
    "FlowReconstruction",
    "FreeTables",
    "GibbsBesideMap",
    "HomogeneousPotentials",
    "Inference",
    "Learned",
    "LogLinearTransitions",
    "MigrationEM",
    "MobilityBaseline",
    "MobilityEM",
    "NoisyCounts",
    "SharedTableEM",
    "TreeModel",
    "TunedReconstruction",
    "fit_em",
    "fit_lbfgs",
    "from_cliques",
    "infer",
]
