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
    sql, errors = require("pyspark.sql", "spark"), require("pyspark.errors", "spark")
    try:
        return sql.SparkSession.getActiveSession() or sql.SparkSession.builder.appName("agglearn").getOrCreate()
    except (errors.PySparkException, RuntimeError) as error:
        raise NotAvailable(f"Spark does not start ({' '.join(str(error).split())}); is Java 17 installed?") from None
