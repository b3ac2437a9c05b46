"""Collective graphical models: inference and learning about individuals from noisy counts (Sun 2019)."""

from agglearn.collective.cliques import from_cliques
from agglearn.collective.em import MigrationEM, MobilityBaseline, MobilityEM, SharedTableEM
from agglearn.collective.inference import METHODS, Inference, infer
from agglearn.collective.learning import Learned, learn
from agglearn.collective.model import ChainModel, TreeModel
from agglearn.collective.movements import Movements, reconstruct
from agglearn.collective.parametric_models import FreeTables, HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.reconstruction import FlowReconstruction, GibbsVersusMAP, PublishedCounts, TunedReconstruction
from agglearn.collective.shrinkage import ShrunkenTables

__all__ = [
    "METHODS",
    "ChainModel",
    "FlowReconstruction",
    "FreeTables",
    "GibbsVersusMAP",
    "HomogeneousPotentials",
    "Inference",
    "Learned",
    "LogLinearTransitions",
    "MigrationEM",
    "MobilityBaseline",
    "MobilityEM",
    "Movements",
    "PublishedCounts",
    "SharedTableEM",
    "ShrunkenTables",
    "TreeModel",
    "TunedReconstruction",
    "from_cliques",
    "infer",
    "learn",
    "reconstruct",
]
