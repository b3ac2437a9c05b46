"""Rules that make a data file: the routes of kind `build`. A wrong format of an input is a DataError."""

from agglearn.datasets.builds.archives import first_lines, tar_archive
from agglearn.datasets.builds.census import person_columns, puma_counties
from agglearn.datasets.builds.grids import occupancy_grids

__all__ = ["first_lines", "occupancy_grids", "person_columns", "puma_counties", "tar_archive"]
