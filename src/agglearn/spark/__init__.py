"""Beyond one machine, with Apache Spark: aggregation of any number of records, and Gibbs chains on executors.

PySpark is an optional extra (`make spark`); executors need this package too. `aggregate` gives the tables that one
machine would give; `MaxEntClassifier(engine="spark")` moves its chains in the active session.
"""

from agglearn.spark.aggregation import aggregate
from agglearn.spark.session import active_session

__all__ = ["active_session", "aggregate"]
