"""
Votes of groups from county totals
==================================

Counties publish how many people voted for a party. A census describes the people of each county. Who voted how is
secret. Learning with label proportions estimates the vote of each group from the totals.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from agglearn.observations import Bags
from agglearn.proportions import CardinalityClassifier

# %%
# A simulated country: 150 counties of 80 people, who differ in education, age, sex and place. Counties differ in who
# lives there. How a person votes depends on the person only.

rng = np.random.default_rng(0)
n_counties, n_people = 150, 80
county = np.repeat(np.arange(n_counties), n_people)


def trait(name, spread):
    """Whether each person has a trait: counties differ in how common it is."""
    common = 1 / (1 + np.exp(-rng.normal(0, spread, n_counties)))
    return pd.Series(rng.random(len(county)) < common[county], name=name).astype(float)


people = pd.concat([trait("graduate", 0.9), trait("over 50", 0.7), trait("woman", 0.2), trait("town", 1.5)], axis=1)
effects = np.array([0.9, -0.7, 0.4, 0.8])
votes = rng.random(len(people)) < 1 / (1 + np.exp(0.7 - people @ effects))

# %%
# What is published: the people without their votes, and one total per county.

totals = votes.groupby(county).sum()
bags = Bags.from_groups(people, county, counts=totals)
print(f"{len(bags)} counties, votes between {totals.min() / n_people:.0%} and {totals.max() / n_people:.0%}")

# %%
# The model gives each person a probability. Group means of it are the estimated shares. The simple way stands beside
# it: take each person for an average voter of the county.

model = CardinalityClassifier(random_state=0).fit(bags)
guesses = {
    "learned from totals": model.predict_proba(people)[:, 1],
    "average of the county": totals.to_numpy()[county] / n_people,
}
groups = {
    f"{name}: {word}": (people[name] == value).to_numpy() for name in people for value, word in ((1, "yes"), (0, "no"))
}
truth = np.array([votes[members].mean() for members in groups.values()])
shares = {name: np.array([guess[members].mean() for members in groups.values()]) for name, guess in guesses.items()}
errors = {name: abs(share - truth).mean() for name, share in shares.items()}
for name, error in errors.items():
    print(f"{name}: mean error {100 * error:.1f} percentage points")

# %%
# The learned shares lie within a point of the truth. The average of the county pulls all groups together, because
# each county holds people of every group.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
place = np.arange(len(groups))
axes.scatter(truth, place, color="black", marker="|", s=300, label="truth")
for (name, share), marker in zip(shares.items(), "os", strict=True):
    axes.scatter(share, place, marker=marker, label=name)
axes.set_yticks(place, list(groups))
axes.xaxis.set_major_formatter("{x:.0%}")
axes.set(xlabel="share of votes", title="Votes of eight groups, from county totals")
axes.invert_yaxis()
figure.legend(loc="outside lower center", ncols=3)
plt.show()
