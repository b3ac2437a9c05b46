"""Beyond one machine, with Apache Spark: aggregation of any number of records, Gibbs chains and
vocabulary compression on executors.

PySpark is an optional extra (`make spark`); executors need this package too. `aggregate` gives the tables that one
machine would give; `MaxEntClassifier(engine="spark")` moves its chains, and
`DistributedSubmodularQuantizer(engine="spark")` asks its machines, in the active session.
"""

from agglearn.optional import active_session
from agglearn.spark.aggregation import aggregate

__all__ = ["active_session", "aggregate"]
