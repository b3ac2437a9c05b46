"""Learning from aggregated data."""

from importlib import metadata

from agglearn import kernel_cache

try:
    __version__ = metadata.version("agglearn")
except metadata.PackageNotFoundError:  # imported from a folder of sources that is not installed
    __version__ = "0+unknown"

kernel_cache.choose()
