"""Observations: the only things that learners are given."""

from agglearn.observations.bags import Bags, LabelledBags
from agglearn.observations.base import NoiseSpec, Observation
from agglearn.observations.counted_bags import CountedBags
from agglearn.observations.flows import FlowCounts, FlowInstances
from agglearn.observations.gaussian_noise import tables_with_noisy_encoding, with_gaussian_noise
from agglearn.observations.halves import Halves
from agglearn.observations.label_sums import LabelSums
from agglearn.observations.margins import Margins
from agglearn.observations.records import Records
from agglearn.observations.sample import TablesAndSample
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables, fill_hidden, hide_cells
from agglearn.observations.units import Unit

__all__ = [
    "Bags",
    "ContingencyTables",
    "CountedBags",
    "FlowCounts",
    "FlowInstances",
    "Halves",
    "LabelSums",
    "LabelledBags",
    "Margins",
    "NoiseSpec",
    "Observation",
    "Records",
    "Table",
    "TablesAndSample",
    "Unit",
    "fill_hidden",
    "hide_cells",
    "tables_with_noisy_encoding",
    "with_gaussian_noise",
]
