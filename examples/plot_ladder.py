"""
What noise costs: the ladder in miniature
=========================================

The same records are released in five ways, each with noise that protects a single label. A budget ε says how much a
release may tell of it: less is safer. The picture shows what each release is still worth to a learner.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from statsmodels.datasets import fair

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import NoiseIgnored
from agglearn.evaluation import normalized_log_likelihood
from agglearn.labelsums import WALRClassifier
from agglearn.maxent import LogisticSkyline, NaiveBayesClassifier, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables, CountedBags, LabelSums, Records
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import draw_seeded
from agglearn.proportions import BagLearnerOnRecords, CardinalityClassifier

# %%
# A survey of 6,366 women on extramarital affairs comes with statsmodels. The label is whether there was one.

frame = fair.load_pandas().data
features, label = frame.drop(columns="affairs").astype(str), (frame["affairs"] > 0).astype(int)
x, x_test, y, y_test = train_test_split(features, label.to_numpy(), test_size=0.3, random_state=0)
encoder = FrameEncoder.fit(x, categorical=x.columns)
delta = 1 / (10 * len(x))
print(
    f"{len(x)} records to release, {len(x_test)} to judge by, {encoder.sizes.sum()} values of {len(encoder.names)} features"
)

# %%
# What is released, for a budget, and what learns from it. Without a budget there is no noise. The noise here is drawn
# with a seed, so that the picture stays the same. A real release leaves ``draw`` out, and nobody can draw its noise
# again.


def release(budget):
    codes, draw = encoder.encode(x), draw_seeded(0)
    tables = {pairs: ContingencyTables.from_codes(encoder, codes, y, pairs=pairs) for pairs in ("none", "all")}
    sums = LabelSums.from_map(FeatureMap.fit("onehot", encoder, x), x, y)
    bags = CountedBags.from_records(encoder, x, y, size=10, rng=np.random.default_rng(0))
    if budget is not None:
        protect = {"adjacency": "label", "postprocessing": "project", "draw": draw}
        tables = {pairs: t.private(budget, delta, **protect) for pairs, t in tables.items()}
        sums = sums.private(budget, delta, draw=draw)
        bags = release_bag_counts(bags, budget, draw=draw)
    return {
        "tables of single features": (NaiveBayesClassifier(), tables["none"]),
        "tables of pairs": (
            NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=80, l2_theta=32.0, random_state=0),
            tables["all"],
        ),
        "label sums": (WALRClassifier(l2="moments"), sums),
        "bags of ten with counts": (BagLearnerOnRecords(CardinalityClassifier(l2=0.5), random_state=0), bags),
    }


# %%
# The score is the normalised log-likelihood on records that nobody released: 0 for the rate of the label alone,
# higher is better.


def score(model):
    return normalized_log_likelihood(y_test, model.predict_proba(x_test)[:, 1])


warnings.simplefilter("ignore", NoiseIgnored)  # two of the learners take noisy numbers for exact ones, and warn of it
budgets = [0.3, 1.0, 3.0, 10.0, None]
scores = {}
for budget in budgets:
    for name, (learner, observation) in release(budget).items():
        scores.setdefault(name, []).append(score(learner.fit(observation)))
records = score(LogisticSkyline(l2=32.0).fit(Records(encoder, x, y)))

for name, values in scores.items():
    print(f"{name:26}", *(f"{value:7.3f}" for value in values))
print(f"{'all records':26}", f"{records:7.3f}")

# %%
# At ε = 1 label sums and tables of pairs keep most of what all records are worth. Bags of ten need more budget.
# Tables of single features are worth less at any budget, as they do not show how features go together.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, values in scores.items():
    axes.plot(range(len(budgets)), values, marker="o", label=name)
axes.axhline(records, color="black", linestyle="dashed", label="all records, never released")
axes.set_xticks(range(len(budgets)), ["no noise" if b is None else f"ε = {b:g}" for b in budgets])
axes.set(ylabel="normalised log-likelihood", title="What a release is worth, by its budget")
axes.legend(loc="lower right")
plt.show()
