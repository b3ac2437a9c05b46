"""
Birds on a grid from noisy counts
=================================

Observers count birds in the cells of a grid, day by day. Nobody follows a single bird, and the counts are noisy. A
collective graphical model learns from the counts how birds decide where to fly, and reconstructs the flows between
cells.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from agglearn.collective import MigrationEM
from agglearn.datasets import BirdMigration
from agglearn.observations import FlowCounts, FlowInstances

# %%
# Simulated birds fly from the bottom left to the top right of a grid. Four parameters say how much they avoid
# distance, use the wind, aim for the goal, and dislike to stay. There are three years with winds of their own.

side, days, population = 6, 10, 2000
birds = BirdMigration(side=side, steps=days, population=population, theta=(3, 2, 4, 3), years=3).draw(seed=0)


def cells(flows):
    """(days, cells) true birds per cell, from the flows between successive days."""
    return np.vstack([flows[0].sum(axis=1), flows.sum(axis=1)])


# %%
# Each count that is observed is a Poisson number around the true one.

rng = np.random.default_rng(0)
years = [
    FlowCounts(node_counts=rng.poisson(cells(flows)), population_size=population, context=context)
    for flows, context in zip(birds.edge_tables, birds.context, strict=True)
]
model = MigrationEM(random_state=0).fit(FlowInstances(tuple(years)))
names = ("distance", "wind", "goal", "departure")
for name, learned, true in zip(names, model.theta_, birds.theta, strict=True):
    print(f"{name:10} learned {learned:5.2f}, true {true:5.2f}")

# %%
# The flows of the first year, all days together. A line is as wide as its flow.

true_flows, flows = birds.edge_tables[0], np.array(model.edge_tables_[0])
error = abs(flows - true_flows).sum() / true_flows.sum()
print(f"relative error of the flows of all days and pairs of cells: {error:.2f}")

row, column = np.divmod(np.arange(side**2), side)
day = days // 3


def draw(axes, tables, title):
    total = tables.sum(axis=0)
    start, end = np.nonzero((total > population / 200) & ~np.eye(side**2, dtype=bool))
    lines = np.stack([np.column_stack([column[start], row[start]]), np.column_stack([column[end], row[end]])], axis=1)
    axes.add_collection(LineCollection(lines, linewidths=8 * total[start, end] / population, color="tab:blue"))
    axes.scatter(column, row, s=6, color="black")
    axes.set(title=title, aspect="equal", xticks=[], yticks=[])


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
counted = left.imshow(years[0].node_counts[day].reshape(side, side), origin="lower", cmap="Blues")
figure.colorbar(counted, ax=left, label="birds")
left.set(title=f"What is observed: counts of day {day + 1}", xticks=[], yticks=[])
draw(middle, flows, "Learned flows")
draw(right, true_flows, "True flows")
plt.show()
