"""Rules that make a data file of ours from a publisher's files: the routes of kind `build`.

Each is called as `rule(inputs, out, **params)`: `inputs` maps the names that the route gives to paths or binary streams,
`out` is the file to write, `params` are the route's. An input that has not the publisher's format is a DataError.
"""

from agglearn.datasets.builds.archives import first_lines, tar_archive
from agglearn.datasets.builds.census import person_columns, puma_counties
from agglearn.datasets.builds.grids import occupancy_grids

__all__ = ["first_lines", "occupancy_grids", "person_columns", "puma_counties", "tar_archive"]
