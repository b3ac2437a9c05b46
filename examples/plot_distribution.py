"""
Predicting a property of a distribution
=======================================

Each bag is a sample from a distribution of its own, and the target is a number about that distribution. A fixed
embedding turns a bag into a vector, and linear ridge regression predicts the target from it.
"""

import matplotlib.pyplot as plt

from agglearn.datasets import GaussianBags
from agglearn.distribution import EmbeddingRegressor, LinearRidge, MomentEmbedding, OrthogonalRandomEmbedding

# %%
# A bag holds 200 points of a Gaussian in the plane. Bags differ in the angle by which the Gaussian is turned. The
# target is the entropy of the first coordinate, which grows with its variance.

population = GaussianBags(statistic="rotation", n_bags=256, n_validation=0, n_test=128, bag_size=200).draw(seed=1)
train, test, angle = population.train, population.test, population.parameter
print(f"{len(train)} bags of {train.sizes[0]} points to learn from, {len(test)} to judge by")

# %%
# The mean of a bag tells nothing here: each Gaussian has the mean 0. Random Fourier features describe the whole
# distribution without a word on what to look for. The covariance is what a statistician would choose.

embeddings = {
    "mean": MomentEmbedding(order=1),
    "random Fourier features": OrthogonalRandomEmbedding(n_frequencies=128),
    "mean and covariance": MomentEmbedding(order=2),
}
models = {
    name: EmbeddingRegressor(embedding, LinearRidge(), random_state=0).fit(train)
    for name, embedding in embeddings.items()
}
scores = {name: model.score(test) for name, model in models.items()}
for name, score in scores.items():
    print(f"{name:24} R² {score:6.3f}")

# %%
# Left two of the bags, right the predictions over the angle.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
order = test.target.argsort()
for bag, color in ((order[0], "tab:purple"), (order[-1], "tab:olive")):
    points = test.X[test.offsets[bag] : test.offsets[bag + 1]]
    left.scatter(*points.T, s=8, color=color, label=f"entropy {test.target[bag]:.2f}")
left.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate", title="Two bags and their targets")
left.legend()
for name, model in models.items():
    right.scatter(angle, model.predict(test), s=8, label=f"{name}, R² {scores[name]:.2f}")
right.plot(angle, test.target, color="black", label="truth")
right.set(
    xlabel="angle of the Gaussian", ylabel="entropy of the first coordinate, nats", title="Predictions for new bags"
)
figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
