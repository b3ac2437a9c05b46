"""Rules that make a data file: the routes of kind `build`. A wrong format of an input is a DataError."""

from agglearn.datasets.builds.census import person_columns, puma_counties
from agglearn.datasets.builds.grids import occupancy_grids
from agglearn.datasets.builds.packing import first_lines, pack_tar

__all__ = ["first_lines", "occupancy_grids", "pack_tar", "person_columns", "puma_counties"]
