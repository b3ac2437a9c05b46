"""
An owner decides: what a release will cost
==========================================

Who owns records has to choose an aggregate and an ε before anything is released. A public survey that resembles the
secret one, a twin, answers: what each release is worth to a learner, and what it is worth to an attacker.
"""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import fair

from agglearn.cost.law import predict_cost
from agglearn.cost.measuring import measure_cost, summarise
from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables
from agglearn.privacy import draw_seeded
from agglearn.privacy.spending import attacker_advantage, gaussian_rho

# %%
# A survey of 6,366 women comes with statsmodels. One half is the twin, which everybody may see, the other half is secret.

survey = fair.load_pandas().data.astype(int, errors="ignore")
survey["affairs"] = (survey["affairs"] > 0).astype(int)
survey = survey.sample(frac=1, random_state=0, ignore_index=True)
twin, secret = survey[: len(survey) // 2], survey[len(survey) // 2 :]

# %%
# Before any data are touched, a law that was fitted to other data sets gives a first answer. It knows the size of the
# records, and the AUC that the owner hopes for. The error is kept by nine of ten predictions for data sets that it has
# not seen.

budgets = [0.3, 1.0, 3.0]
values = round(float(twin.drop(columns="affairs").nunique().mean()))
expected = predict_cost(len(twin), twin.shape[1] - 1, values, twin["affairs"].mean(), budgets, auc=0.75)
print(expected.to_string(index=False, float_format="{:.3f}".format))

# %%
# The twin says more. It is split five times. Four fifths are released with noise, models learn from the release, and
# the other fifth judges them. This run is not private, which does no harm to public records.

scores = measure_cost(twin, "affairs", epsilons=budgets)
cost = summarise(scores)
print(cost.to_string(index=False, float_format="{:.3f}".format))

# %%
# And what does an attacker gain, who knows all other records and guesses whether one woman took part? By chance 50 of
# 100 guesses are right.

delta = 1 / (10 * len(secret))
guesses = {e: 50 * (1 + attacker_advantage(e, gaussian_rho(e, delta))) for e in budgets}
for epsilon, right in guesses.items():
    print(f"ε = {epsilon:g}: {right:.1f} of 100 guesses are right")

# %%
# The features are secret, too, so label sums are no choice. Single tables and tables of pairs are level at ε = 3. The
# owner takes tables of pairs, which also show how features go together, and releases once. The noise is seeded here, so that this page stays the same. A real release leaves ``draw`` out. Women who were
# not in it show what the model has learned: about what the twin foretold.

learned, judging = secret[: int(0.8 * len(secret))], secret[int(0.8 * len(secret)) :]
tables = ContingencyTables.from_records(learned, "affairs").private(
    3.0, delta, postprocessing="project", draw=draw_seeded(0)
)
model = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=80, random_state=0).fit(tables)
released = normalized_log_likelihood(judging["affairs"].to_numpy(), model.predict_proba(judging)[:, 1])
foretold = cost.query("release == 'tables of pairs, record protected' and epsilon == 3").iloc[0]
print(f"foretold {foretold.nllh:.3f} ± {foretold.nllh_error:.3f}, reached {released:.3f}")

# %%
# Left: the worth of each release. Right: the gain of an attacker.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), width_ratios=[2, 1], layout="constrained")
for release, part in cost[cost["epsilon"] < np.inf].groupby("release", sort=False):
    left.errorbar(range(len(budgets)), part["nllh"], part["nllh_error"], marker="o", capsize=3, label=release)
left.axhline(
    cost.query("release == 'all records'")["nllh"].item(), color="black", linestyle="dashed", label="all records"
)
left.plot(2, released, "*", color="black", markersize=14, label="the release itself")
left.set(title="What a learner gains (NLLH)", ylim=(0, None))
figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
right.bar(range(len(budgets)), list(guesses.values()), color="grey")
right.axhline(50, color="black", linestyle="dotted")
right.set(title="Attacker: right guesses of 100", ylim=(40, 100))
for axes in (left, right):
    axes.set_xticks(range(len(budgets)), [f"ε = {e:g}" for e in budgets])
plt.show()
