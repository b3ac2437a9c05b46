"""
Logistic regression from one label sum
======================================

Features may be public while labels are secret. A logistic regression needs only one vector of the labels: the sum of
the features over the records with label 1. With it the coefficients are those that all labels give.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from statsmodels.datasets import fair

from agglearn.labelsums import WALRClassifier
from agglearn.observations import LabelSums
from agglearn.privacy import draw_seeded

# %%
# A survey of 6,366 women on extramarital affairs comes with statsmodels. Its questions bound the answers, so each
# feature can be scaled to [0, 1] without a look at the data.

frame = fair.load_pandas().data
bounds = {
    "rate_marriage": (1, 5), "age": (17.5, 42), "yrs_married": (0.5, 23), "children": (0, 5.5), "religious": (1, 4),
    "educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6),
}  # fmt: skip
features = pd.DataFrame({name: (frame[name] - low) / (high - low) for name, (low, high) in bounds.items()})
labels = (frame["affairs"] > 0).astype(int)

# %%
# All that is told of 6,366 labels: nine numbers, the last of which counts the labels.

sums = LabelSums.from_records(features, labels, bounds=(0, 1))
print(pd.Series(sums.sums, sums.names).round(1).to_string())

# %%
# The same regression from all labels, from the exact sum, and from sums with noise that protects each label. The
# smaller the budget ε, the more noise. The draw is seeded here to keep the picture the same. A private release leaves
# it out.

delta = 1e-6
models = {
    "all labels": LogisticRegression(C=1.0, tol=1e-8).fit(features, labels),
    "one sum": WALRClassifier(l2=0.5, tol=1e-8).fit(sums),
    "one sum, ε = 3": WALRClassifier(l2=0.5).fit(sums.private(3.0, delta, draw=draw_seeded(0))),
    "one sum, ε = 0.3": WALRClassifier(l2=0.5).fit(sums.private(0.3, delta, draw=draw_seeded(0))),
}
coefficients = pd.DataFrame({name: np.ravel(model.coef_) for name, model in models.items()}, index=features.columns)
largest = abs(coefficients["one sum"] - coefficients["all labels"]).max()
print(coefficients.round(3).to_string())
print(f"largest difference between all labels and one sum: {largest:.1e}")

# %%
# The exact sum and all labels agree. Noise moves the coefficients, and most those of age and years of marriage, which
# go together.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
place = np.arange(len(coefficients))
axes.axvline(0, color="lightgray")
axes.scatter(coefficients["all labels"], place, color="black", marker="|", s=300, label="all labels")
for name, marker in (("one sum", "o"), ("one sum, ε = 3", "s"), ("one sum, ε = 0.3", "^")):
    axes.scatter(coefficients[name], place, marker=marker, label=name)
axes.set_yticks(place, coefficients.index)
axes.set(xlabel="coefficient, for a feature from 0 to 1", title="Nine numbers in the place of 6,366 labels")
axes.invert_yaxis()
figure.legend(loc="outside lower center", ncols=4)
plt.show()
