"""
A method of one's own in a comparison
=====================================

The workflow compares methods on the same data, splits and seeds. A method of one's own is a class, and three lines of
YAML put it beside the others. Everything below happens in an empty folder.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

folder = Path(tempfile.mkdtemp())

# %%
# The method: a decision by the one feature whose table tells most about the label. It names what it observes, writes
# ``_fit``, and predicts for raw records.

method = '''
import numpy as np

from agglearn.estimator import RecordClassifier
from agglearn.observations import ContingencyTables


class OneFeature(RecordClassifier):
    """The label rate by the feature that tells most about the label."""

    observes = ContingencyTables

    def __init__(self, random_state=None):
        self.random_state = random_state

    def _fit(self, tables):
        rate = tables.positives / tables.total
        counted = [tables.dense(i) for i in range(len(tables.names))]
        rates = [(label_sums + rate) / (counts + 1) for counts, label_sums in counted]
        spread = [(counts * (r - rate) ** 2).sum() for (counts, _), r in zip(counted, rates)]
        self.feature_ = int(np.argmax(spread))
        self.rates_ = rates[self.feature_]
        self.encoder_, self.classes_ = tables.encoder, np.array([0, 1])

    def predict_proba(self, X):
        p = self.rates_[self.encoder_.encode(X)[:, self.feature_]]
        return np.column_stack([1 - p, p])
'''
(folder / "methods").mkdir()
(folder / "methods/own.py").write_text(method)

# %%
# The comparison: an experiment on two data sets that need no download. The last three lines are the method's.

experiment = """
source: own
title: A method of one's own
task: agglearn.tasks.Classification
datasets: {fair: {}, breast_cancer: {}}
observe:
  tables: {type: agglearn.observations.ContingencyTables}
seeds: [0, 1, 2]
measures: [nllh, auc]
table: {rows: [dataset], columns: [method], measure: [nllh, auc]}
methods:
  maxent:
    name: maximum entropy
    class: agglearn.maxent.MaxEntClassifier
    observe: tables
    params: {n_chains: 300}
  naive_bayes: {name: naive Bayes, class: agglearn.maxent.NaiveBayesClassifier, observe: tables}
  one_feature:
    name: one feature
    class: own.OneFeature
    observe: tables
"""
settings = """
code: [methods]
tracking: {uri: none}
"""
(folder / "config/experiments").mkdir(parents=True)
(folder / "config/experiments/own_comparison.yaml").write_text(experiment)
(folder / "config/config.yaml").write_text(settings)

# %%
# On the command line this is ``agglearn reproduce own_comparison``. Names, parameters and data sets are checked
# before anything runs.

command = [sys.executable, "-m", "agglearn", "reproduce", "own_comparison", "--cores", "1"]
finished = subprocess.run(command, cwd=folder, capture_output=True, text=True)
print("exit status", finished.returncode)

# %%
# The table has means over three random splits, with intervals.

table = pd.read_csv(folder / "results/tables/own_comparison.csv")
print(table.pivot(index=["dataset", "measure"], columns="method", values="mean").round(3).to_string())

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for axis, (dataset, rows) in zip(axes, table.query("measure == 'auc'").groupby("dataset"), strict=True):
    errors = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
    axis.errorbar(rows["mean"], rows["method"], xerr=errors, fmt="o", capsize=4)
    axis.set(title=dataset, xlabel="AUC on test records")
    axis.margins(y=0.3)
plt.show()
