"""
Flows between states under Laplace noise
========================================

Each week an office publishes how many people travelled from state to state. Laplace noise protects single trips and
drowns small flows. A model of one pattern for all weeks recovers them, because the noise of the weeks cancels out and
the pattern does not.
"""

import matplotlib.pyplot as plt
import numpy as np

from agglearn.collective import SharedTableEM
from agglearn.observations import FlowCounts, FlowInstances

# %%
# Ten simulated states on a map. Few people travel far, and large states exchange most travellers.

rng = np.random.default_rng(0)
n_states, n_weeks, travellers = 10, 8, 100_000
place = rng.uniform(0, 10, (n_states, 2))
size = np.sort(rng.lognormal(0, 1, n_states))[::-1]
distance = np.linalg.norm(place[:, None] - place[None], axis=2)
pattern = np.outer(size, size) * np.exp(-distance / 1.5)
weeks = rng.multinomial(travellers, (pattern / pattern.sum()).ravel(), n_weeks).reshape(n_weeks, 1, n_states, n_states)
print(f"{(weeks < 100).mean():.0%} of the flows are below 100 travellers a week")

# %%
# Published is each flow with Laplace noise of scale 1/ε, so that one trip more or less hardly shows. Here ε is 0.02.

epsilon = 0.02
noisy = weeks + rng.laplace(0, 1 / epsilon, weeks.shape)
published = FlowInstances(
    tuple(
        FlowCounts(edge_counts=week, noise="laplace", scale=1 / epsilon, population_size=travellers) for week in noisy
    )
)
model = SharedTableEM(n_iter=20).fit(published)
learned = np.array(model.edge_tables_)

# %%
# The error of the small flows, those below 100 travellers. The simple way is to set negative numbers to zero.

estimates = {"as published": noisy, "negative ones set to zero": np.maximum(noisy, 0), "learned": learned}
small = weeks < 100
errors = {name: abs(estimate - weeks)[small].sum() / weeks[small].sum() for name, estimate in estimates.items()}
for name, error in errors.items():
    print(f"{name:26} relative error of small flows {error:.2f}")

# %%
# The first week. On the line an estimate is right.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.2), sharex=True, sharey=True, layout="constrained")
for axis, name in zip(axes, ("negative ones set to zero", "learned"), strict=True):
    axis.scatter(weeks[0] + 1, estimates[name][0] + 1, s=10)
    axis.plot([1, weeks.max()], [1, weeks.max()], color="black", linewidth=0.8)
    axis.set(
        xscale="log", yscale="log", xlabel="true flow + 1", title=f"{name}\nerror of small flows {errors[name]:.2f}"
    )
axes[0].set_ylabel("estimated flow + 1")
plt.show()
