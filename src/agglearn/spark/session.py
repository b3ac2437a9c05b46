"""The Spark session to work in."""

from agglearn.errors import NotAvailable


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
