"""
Who splits the ticket: an election
==================================

Each polling place publishes its votes for parties and its votes for candidates. How many voters of one party chose
the candidate of another is secret. Ecological inference estimates it from the margins, with intervals, and says
what no table that agrees with the margins can exceed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from agglearn.proportions import EcologicalInference

# %%
# A simulated district: 60 polling places, three parties, three candidates and the secret table of each place. In each
# place voters split their tickets a little differently.

rng = np.random.default_rng(4)
parties, candidates = ["Left", "Green", "Right"], ["Adams (Left)", "Brown (Green)", "Clark (Right)"]
loyalty = np.array([[0.85, 0.08, 0.07], [0.45, 0.45, 0.10], [0.06, 0.02, 0.92]])  # share of each candidate, by party
people = rng.integers(150, 900, 60)
shares = rng.dirichlet([3, 1.5, 3], 60)
secret = np.zeros((60, 3, 3))
for place, (n, share) in enumerate(zip(people, shares, strict=True)):
    for r, count in enumerate(rng.multinomial(n, share)):
        secret[place, r] = rng.multinomial(count, rng.dirichlet(100 * loyalty[r]))

# %%
# What is published: both margins of each polling place.

places = [f"place {k + 1}" for k in range(60)]
groups = pd.DataFrame(secret.sum(axis=2), index=places, columns=parties)
votes = pd.DataFrame(secret.sum(axis=1), index=places, columns=candidates)
print(groups.join(votes).head(3).to_string(float_format="{:.0f}".format))

# %%
# The estimate needs these two tables. Rows of the result are parties, columns candidates.

model = EcologicalInference(random_state=0).fit(groups, votes)
print(model.table().round().to_string(float_format="{:.0f}".format))

# %%
# In this simulation the truth is known. All voters in a wrong cell, in per cent, beside those of the guess that
# voters of all parties vote alike:

true = secret.sum(axis=0)
alike = groups.to_numpy().T @ (votes.to_numpy() / people[:, None])
for name, table in (("inferred", model.tables_[0]), ("alike", alike)):
    print(f"{name}: {50 * abs(table - true).sum() / true.sum():.1f} % in a wrong cell")

# %%
# The margins alone allow the light ranges. The intervals rest on an assumption: voters of a party vote nearly alike in
# all places. `sensitivity_` is large where places in which the largest party is strong say something else than the
# others.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
cells = np.arange(9)
low, high = (model.table(of=name).to_numpy().ravel() for name in ("low_", "high_"))
minimum, maximum = (model.table(of=name).to_numpy().ravel() for name in ("minimum_", "maximum_"))
axes.hlines(cells, minimum, maximum, color="0.85", linewidth=9, label="possible by the margins")
axes.hlines(cells, low, high, color="tab:blue", linewidth=3, label="interval of 95 %")
axes.scatter(model.tables_[0].ravel(), cells, color="tab:blue", zorder=3, label="inferred")
axes.scatter(true.ravel(), cells, color="black", marker="|", s=200, zorder=4, label="truth")
axes.set_yticks(cells, [f"{p} → {c.split()[0]}" for p in parties for c in candidates])
axes.set(xlabel="voters in the district", title="Party and candidate of the same voters, from 60 polling places")
axes.invert_yaxis()
figure.legend(loc="outside lower center", ncols=4)
plt.show()
