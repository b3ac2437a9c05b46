"""
Learn from tables and predict
=============================

A maximum-entropy model learns a classifier from contingency tables of pairs of features. The records themselves are
needed to count them, and never again. Here the result is compared with a logistic regression that had all records.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from agglearn.maxent import MaxEntClassifier
from agglearn.observations import ContingencyTables

# %%
# Ten measurements of 569 tumours come with scikit-learn. The label is 1 where a tumour is benign.

frame = load_breast_cancer(as_frame=True).frame.filter(regex="^mean|target")
train, test = train_test_split(frame, random_state=0)
features, labels = test.drop(columns="target"), test["target"]

# %%
# Numbers are binned at their deciles. One table is made per feature and per pair of features. A cell of a table holds
# the number of records and the number of records with label 1.

tables = ContingencyTables.from_records(train, label="target")
print(f"{len(tables.tables)} tables of {tables.total:g} records, {len(tables.pairs)} of them for pairs of features")

# %%
# The model is learned from the tables alone. It predicts for raw records and bins them as the tables did.

model = MaxEntClassifier(random_state=0).fit(tables)
probabilities = model.predict_proba(features)[:, 1]

on_records = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.drop(columns="target"), train["target"])
auc_tables = roc_auc_score(labels, probabilities)
auc_records = roc_auc_score(labels, on_records.predict_proba(features)[:, 1])
print(f"AUC from tables {auc_tables:.3f}, from records {auc_records:.3f}")

# %%
# One of the tables, as the learner gets it, and the ROC curves on the held-out records.

first, second = "mean radius", "mean texture"
counts, label_sums = tables.dense(tables.names.index(first), tables.names.index(second))
share = np.divide(label_sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
image = left.imshow(share.T, origin="lower", cmap="viridis", vmin=0, vmax=1)
figure.colorbar(image, ax=left, label="share of benign tumours")
left.set(xlabel=f"{first}, decile", ylabel=f"{second}, decile", title="One of 45 tables of pairs")
RocCurveDisplay.from_predictions(labels, probabilities, name="maximum entropy, tables", ax=right)
RocCurveDisplay.from_estimator(on_records, features, labels, name="logistic regression, records", ax=right)
right.set(title=f"{len(test)} held-out records")
plt.show()
