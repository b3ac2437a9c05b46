"""Computation on many machines with Apache Spark: aggregation of any number of records, Gibbs chains, and compression.

PySpark is an optional extra (`make spark`). Executors need this package too. In the active session,
`MaxEntClassifier(engine="spark")` moves its chains on executors, and `DistributedSubmodularQuantizer(engine="spark")`
runs its machines there.
"""

from agglearn.optional import active_session
from agglearn.spark.aggregation import aggregate

__all__ = ["active_session", "aggregate"]
