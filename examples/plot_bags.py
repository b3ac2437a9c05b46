"""
Labels from bags with counts
============================

Handwritten digits come in bags of ten. For each bag we are told how many of its images show an eight, and for no
image whether it is one of them. The counts are enough to learn what an eight looks like.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from agglearn.observations import Bags, LabelledBags
from agglearn.proportions import (
    CardinalityClassifier,
    IndividualClassifier,
    MeanEmbeddingClassifier,
    cardinality_posterior,
)

# %%
# The images have 8 × 8 pixels and come with scikit-learn. We keep threes and eights.

digits = load_digits()
chosen = np.isin(digits.target, (3, 8))
images, is_eight = digits.data[chosen] / 16, (digits.target[chosen] == 8).astype(int)

# %%
# A bag carries its ten images and one number. The cardinality classifier maximises the exact likelihood of these
# numbers. The mean embedding takes a bag's mean image for one image. A classifier with the label of each image is the
# limit.

size = 10


def learn(x, y):
    """The bags of some images in random order, and a model from each kind of knowledge about their labels."""
    n = len(x) // size * size
    bags = Bags(x[:n], np.arange(0, n + 1, size), counts=y[:n].reshape(-1, size).sum(axis=1))
    return bags, {
        "mean embedding, counts": MeanEmbeddingClassifier(random_state=0).fit(bags),
        "cardinality, counts": CardinalityClassifier(l2=0.05).fit(bags),
        "all labels": IndividualClassifier(l2=0.05).fit(LabelledBags(bags, y[:n])),
    }


# %%
# Each of ten random splits gives 24 bags to learn from and 108 new images.

scores = []
for split in range(10):
    x, x_test, y, y_test = train_test_split(images, is_eight, test_size=0.3, random_state=split)
    bags, models = learn(x, y)
    scores.append({name: model.score(x_test, y_test) for name, model in models.items()})
accuracy = pd.DataFrame(scores).mean()
print(f"{len(bags)} bags; the numbers of eights in the last split begin with {bags.counts[:5, 1].tolist()}")
print(accuracy.to_string(float_format="{:.1%} of new images right".format))

# %%
# The learned weights per pixel: eights have ink on the left, where threes are open. Below, one bag with its count:
# the posterior shares the count out over the images.

model = models["cardinality, counts"]
bag = int(np.argmax(bags.counts[:, 1] == 5))
members = bags.X[bags.offsets[bag] : bags.offsets[bag + 1]]
posterior = cardinality_posterior(model.predict_proba(members)[:, 1], int(bags.counts[bag, 1]))

figure = plt.figure(figsize=(9, 5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[2, 1.3])
for axes, name in zip(top.subplots(1, 3), models, strict=True):
    weights = models[name].coef_.reshape(8, 8)
    limit = abs(weights).max()
    axes.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set_title(f"{name}\n{accuracy[name]:.1%} right", fontsize=10)
    axes.axis("off")
for axes, image, probability in zip(bottom.subplots(1, size), members, posterior, strict=True):
    axes.imshow(image.reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{probability:.2f}", fontsize=10)
    axes.axis("off")
bottom.suptitle(f"A bag with {bags.counts[bag, 1]} eights, and the probability that each image is one", fontsize=10)
plt.show()
