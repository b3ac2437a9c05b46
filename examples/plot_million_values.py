"""
Compress a vocabulary of a million values
=========================================

An identifier such as a site or a device has very many values. A learner needs few. Values with similar label rates
are put into one cluster, so that the clusters still tell nearly as much about the label as the values did.
"""

import matplotlib.pyplot as plt
import numpy as np

from agglearn.vocabulary import BucketingQuantizer, FrequencyQuantizer, OptimalQuantizer, SubmodularQuantizer

# %%
# A simulated feature of one million values, in 200 million records. The counts follow a power law, the click rates a
# Beta distribution with the mean 0.25. Only counts and clicks per value are needed, so all of it fits into 16 MB.

rng = np.random.default_rng(0)
n_values, n_records = 1_000_000, 200_000_000
popularity = np.arange(1, n_values + 1) ** -0.5
counts = 1 + rng.multinomial(n_records - n_values, popularity / popularity.sum())
clicks = rng.binomial(counts, rng.beta(5, 15, n_values))
print(f"{n_values:,} values, {counts.sum():,} records, {clicks.sum() / counts.sum():.1%} of them clicks")

# %%
# The measure is the mutual information with the label, in nats per record. What clusters lose of it is shown below.
# The submodular method is the paper's. The optimum is exact for one feature. Two simple ways stand beside them:
# equally wide buckets of the label rate, and the most frequent values with a cluster of their own.

budgets = [2, 4, 8, 16, 32, 64]
methods = {
    "most frequent values": FrequencyQuantizer,
    "buckets of the label rate": BucketingQuantizer,
    "submodular": SubmodularQuantizer,
    "optimum": OptimalQuantizer,
}
lost = {name: [] for name in methods}
for name, method in methods.items():
    for budget in budgets:
        lost[name].append(method(budget=budget, random_state=0).fit(counts, clicks).relative_loss_)
    print(f"{name:26}", *(f"{loss:8.4%}" for loss in lost[name]))

# %%
# Sixteen clusters in the place of a million values keep nearly all of the information.

quantizer = SubmodularQuantizer(budget=16, random_state=0).fit(counts, clicks)
size = np.bincount(quantizer.labels_, counts, 16)
rate = np.bincount(quantizer.labels_, clicks, 16) / size

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, losses in lost.items():
    left.plot(budgets, losses, marker="o", label=name)
left.set(xscale="log", yscale="log", xlabel="clusters", ylabel="share of the information lost", title="Loss by budget")
left.set_xticks(budgets, budgets)
left.minorticks_off()
left.legend()
right.bar(range(16), rate, color="tab:green")
right.set(xlabel="cluster", ylabel="click rate", title="Click rates of 16 clusters, submodular")
plt.show()
