"""Collective graphical models: inference and learning about individuals from noisy counts of a population (Sun 2019)."""

from agglearn.collective.cliques import from_cliques
from agglearn.collective.inference import METHODS, Inference, infer
from agglearn.collective.model import ChainModel, TreeModel

__all__ = ["METHODS", "ChainModel", "Inference", "TreeModel", "from_cliques", "infer"]
