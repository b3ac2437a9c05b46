"""Learning from aggregated data."""

from importlib import metadata

try:
    __version__ = metadata.version("agglearn")
except metadata.PackageNotFoundError:  # imported from a folder of sources that is not installed
    __version__ = "0+unknown"
