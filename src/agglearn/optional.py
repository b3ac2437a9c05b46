"""Packages that an extra of `pyproject.toml` installs. They are imported when they are first needed."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from agglearn.errors import NotAvailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require(module: str, extra: str) -> ModuleType:
    """A module of a package that an extra installs."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is installed, but one that it imports is not
        raise NotAvailable(f"{package} is not installed; install it with `pip install 'agglearn[{extra}]'`") from None


def active_session() -> "SparkSession":
    """The active Spark session, or a new one with the settings of the environment."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise NotAvailable("PySpark is not installed; `make spark` installs it") from None
    try:
        return SparkSession.getActiveSession() or SparkSession.builder.appName("agglearn").getOrCreate()
    except (PySparkException, RuntimeError) as error:
        raise NotAvailable(f"Spark does not start ({' '.join(str(error).split())}); is Java 17 installed?") from None
