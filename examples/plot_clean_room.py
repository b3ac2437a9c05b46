"""
Tables from a clean room: cells below a threshold
=================================================

A partner counts the records and shows no cell of few of them. What is not shown is not 0: it lies between 0 and the
threshold. A model that takes it so learns more than one that takes hidden cells for empty ones.
"""

import sqlite3
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables

# %%
# The partner's database: 6,000 visits with four features, and whether the visitor bought. It answers queries that
# count; nobody reads a row.

rng = np.random.default_rng(7)
sizes = {"country": 12, "device": 4, "page": 8, "hour": 6}


def draw_visits(n: int) -> pd.DataFrame:
    """Visits whose features have a few frequent and many rare values, and depend on a common taste."""
    taste, columns, score = rng.normal(size=n), {}, np.full(n, -1.2)
    for k, (name, size) in enumerate(sizes.items()):
        ranks = rng.geometric(2.5 / size, n) + np.round(taste).astype(int)
        codes = np.clip(ranks - 1, 0, size - 1)
        columns[name] = [f"{name}{c}" for c in codes]
        score += np.random.default_rng(k).normal(0, 0.9, size)[codes]
    return pd.DataFrame(columns).assign(bought=rng.random(n) < 1 / (1 + np.exp(-score)))


visits, new_visits = draw_visits(6000), draw_visits(6000)
database = sqlite3.connect(":memory:")
visits.astype({"bought": int}).to_sql("visits", database, index=False)


def count(threshold: int) -> pd.DataFrame:
    """The totals, and the cells of each feature and of each pair that have enough records. Empty: not grouped by."""
    groups = [(), *((name,) for name in sizes), *combinations(sizes, 2)]
    query = "SELECT {columns} COUNT(*) AS count, SUM(bought) AS label_sum FROM visits {by} HAVING COUNT(*) >= {t}"
    texts = [
        query.format(columns="".join(f"{c}, " for c in g), by=f"GROUP BY {', '.join(g)}" if g else "", t=threshold)
        for g in groups
    ]
    return pd.concat([pd.read_sql(text, database) for text in texts])


print(count(50)[[*sizes, "count", "label_sum"]].iloc[::25].to_string(index=False, na_rep=""))

# %%
# The same cells, with and without the statement that those below the threshold are hidden:

thresholds, scores = [10, 30, 50, 70], {"hidden cells are unknown": [], "hidden cells are taken for 0": []}
shown = []


def score(tables: ContingencyTables) -> float:
    """Normalised log-likelihood on new visits: 0 for the base rate, 1 for certainty."""
    model = NoiseAwareMaxEntClassifier(n_chains=2000, max_iter=100, random_state=0).fit(tables)
    return normalized_log_likelihood(new_visits["bought"], model.predict_proba(new_visits)[:, 1])


everything = score(ContingencyTables.from_frame(count(1)))
for threshold in thresholds:
    cells = count(threshold)
    shown.append(len(cells) / len(count(1)))
    scores["hidden cells are unknown"].append(score(ContingencyTables.from_frame(cells, threshold=threshold)))
    scores["hidden cells are taken for 0"].append(score(ContingencyTables.from_frame(cells)))
print(pd.DataFrame(scores, index=thresholds).assign(shown=shown).round(3).to_string())

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, marker in zip(scores, "os", strict=True):
    axes.plot(range(len(thresholds)), scores[name], marker=marker, label=name)
axes.axhline(everything, color="0.4", linewidth=1, linestyle="--", label="nothing is hidden")
axes.set_xticks(range(len(thresholds)), [f"{t}\n{s:.0%} shown" for t, s in zip(thresholds, shown, strict=True)])
axes.set(xlabel="threshold, and share of the cells that it leaves", ylabel="NLLH on new visits")
axes.set_title("A threshold costs little where the model knows of it", loc="left")
axes.legend()
plt.show()
