"""
Three features and XOR: when pairs are not enough
=================================================

The third feature is the exclusive or of the first two. The label depends on the third alone, and a table of a pair
shows how. Still a model of all pairs is too sure of itself: no pair of features shows that only four of the eight
combinations occur.
"""

import matplotlib.pyplot as plt
import numpy as np

from agglearn.datasets import Xor
from agglearn.maxent import ExactMaxEntClassifier
from agglearn.observations import ContingencyTables

# %%
# The simulated records have P(label = 1) = 0.25 where ``x3`` is 0, and 0.75 where it is 1.

population = Xor(n=16_000).draw(seed=0)
records = population.frame.assign(label=population.y)
print(records.groupby("x3")["label"].mean())

# %%
# A model of all pairs spreads the records over all eight combinations. It meets the mean of each table, and misses
# each of the four combinations that occur.

pairs = ContingencyTables.from_records(records, label="label", categorical=["x1", "x2", "x3"])
states = population.frame.drop_duplicates().sort_values(["x1", "x2"])
from_pairs = ExactMaxEntClassifier(l2_mu=0.01, l2_theta=0.01).fit(pairs).predict_proba(states)[:, 1]

# %%
# The remedy: one more feature, the cross of the first two. Its tables with the others show what three features do
# together.


def with_cross(frame):
    return frame.assign(cross=frame["x1"] + frame["x2"])


crossed = ContingencyTables.from_records(
    with_cross(records), label="label", features=["x3", "cross"], categorical=["x3", "cross"]
)
from_cross = ExactMaxEntClassifier(l2_mu=0.01, l2_theta=0.01).fit(crossed).predict_proba(with_cross(states))[:, 1]
truth = np.where(states["x3"] == "1", 0.75, 0.25)
for name, predicted in (("pairs", from_pairs), ("with the cross", from_cross)):
    print(f"{name}: largest error {abs(predicted - truth).max():.3f}")

# %%
# The bars show the prediction for each combination, the lines the truth.

figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
place = np.arange(len(states))
axes.bar(place - 0.2, from_pairs, 0.4, label="tables of pairs")
axes.bar(place + 0.2, from_cross, 0.4, label="tables with the cross of x1 and x2")
axes.hlines(truth, place - 0.4, place + 0.4, color="black", label="truth")
axes.set_xticks(place, [f"x1={a}, x2={b}\nx3={c}" for a, b, c in states.to_numpy()])
axes.set(ylabel="P(label = 1)", ylim=(0, 1), title="What a model predicts where x3 = x1 xor x2")
figure.legend(loc="outside lower center", ncols=3)
plt.show()
