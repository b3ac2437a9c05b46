"""Packages that an extra of `pyproject.toml` brings, imported when they are first needed."""

import importlib

from agglearn.errors import NotAvailable


def require(module: str, extra: str):
    """Import a module of an optional package.

    Parameters
    ----------
    module : dotted name. extra : extra of agglearn that installs its package.

    Raises
    ------
    NotAvailable : the package is not installed; the text names the extra.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, but something that it needs is not
        raise NotAvailable(f"{package} is not installed; install it with `pip install 'agglearn[{extra}]'`") from None


def active_session():
    """The active Spark session, or a new one with the settings of the environment.

    Raises
    ------
    NotAvailable : PySpark is not installed, or Spark does not start (no Java, most often).
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise NotAvailable("PySpark is not installed; `make spark` installs it") from None
    try:
        return SparkSession.getActiveSession() or SparkSession.builder.appName("agglearn").getOrCreate()
    except (PySparkException, RuntimeError) as error:
        raise NotAvailable(f"Spark does not start ({' '.join(str(error).split())}); is Java 17 installed?") from None
