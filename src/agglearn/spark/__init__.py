"""Aggregation, Gibbs chains and compression with Apache Spark (`make spark`). Executors need this package too."""

from agglearn.optional import active_session
from agglearn.spark.aggregation import aggregate

__all__ = ["active_session", "aggregate"]
