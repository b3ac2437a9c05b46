"""
Spark on one machine
====================

Records that no memory holds are counted where they lie. Spark counts the partitions of a data frame one by one and
adds the counts up. The tables are those that one machine would make. This example needs PySpark, which ``make spark``
installs, and Java 17 or newer.
"""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np

from agglearn.datasets import ClickLog
from agglearn.observations import ContingencyTables
from agglearn.spark import active_session, aggregate

# %%
# A simulated log of 20,000 records, in a Spark data frame of four partitions. A session of one's own, on a cluster
# or with settings, is used where there is one.

log = ClickLog(n_features=4, n_values=400, n=20_000).draw(seed=0)
records = log.frame.assign(click=log.y)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers need the packages of this environment
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")  # Java's second compiler pays for long jobs only
session = active_session()
session.sparkContext.setLogLevel("ERROR")
distributed = session.createDataFrame(records).repartition(4)
print(f"{len(records)} records in {distributed.rdd.getNumPartitions()} partitions")

# %%
# Only occupied cells travel to the driver. The tables have the same digest as those that pandas makes.

tables = aggregate(distributed, "click", pairs="all")
local = ContingencyTables.from_records(records, "click", pairs="all")
print(f"{len(tables.tables)} tables; the same as on one machine: {tables.digest == local.digest}")

# %%
# Counts and click rates of the values of the largest feature, from Spark.

counts, clicks = tables.dense(int(np.argmax(tables.encoder.sizes)))
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.scatter(counts, clicks / counts, s=12)
axes.axhline(tables.positives / tables.total, color="black", linewidth=0.8, label="all records")
axes.set(xscale="log", xlabel="records of a value", ylabel="click rate", title=f"{len(counts)} values of one feature")
axes.legend()
plt.show()
session.stop()
