"""Every penalised learner minimises Σ loss + λ‖θ‖², without a penalty on the intercept.

A slow minimisation of this objective as it is written finds the same solution. Maximum entropy has its own tests of it.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from agglearn import proportions
from agglearn.distribution import LinearRidge, MultinomialLogistic
from agglearn.encoding import FeatureMap
from agglearn.labelsums import WALRClassifier
from agglearn.labelsums.labelled import SklearnLogistic
from agglearn.maxent import LogisticSkyline
from agglearn.observations import Bags, LabelledBags, LabelSums, Records
from agglearn.proportions.alternating import label_highest
from agglearn.seeds import derive_generator, split_validation
from agglearn.vocabulary import LogisticOnClusters, OptimalQuantizer

L2 = 0.7
SIZE, OFFSETS = 5, np.arange(0, 61, 5)
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 2)) * 8) / 8  # exact in single precision
LABELS = (X @ [1.0, -0.5] + RNG.logistic(size=60) > 0).astype(int)
CLASSES = LABELS + (RNG.random(60) < 0.3) * 1
COUNTS = np.add.reduceat(LABELS, OFFSETS[:-1])
BAGS = Bags(X, OFFSETS, COUNTS)
MEANS = np.add.reduceat(X, OFFSETS[:-1]) / SIZE
FRAME = pd.DataFrame({"a": RNG.choice(list("uvw"), 200), "b": RNG.choice(list("xy"), 200)})
Y = (RNG.random(200) < np.where(FRAME["a"] == "u", 0.8, 0.3)).astype(np.int64)
RECORDS = Records.from_records(FRAME.assign(y=Y), "y")
ONE_HOT_MAP = FeatureMap.fit("onehot", RECORDS.encoder, RECORDS.frame, intercept=True)
ONE_HOT = np.column_stack([FRAME[c] == v for c, values in (("a", "uvw"), ("b", "xy")) for v in values]).astype(float)


def scores(x, theta):
    return x @ theta[:, :-1].T + theta[:, -1]


def cross_entropy(x, target):
    """Σ of losses for (n, C) soft labels, by θ (C − 1, d + 1)."""

    def loss(theta):
        s = np.column_stack([np.zeros(len(x)), scores(x, theta)])
        return (logsumexp(s, axis=1) * target.sum(axis=1)).sum() - (target * s).sum()

    return loss


def binary(x, y):
    return cross_entropy(x, np.column_stack([1 - y, y]))


def solution(model):
    return np.column_stack([model.coef_, model.intercept_])


def individual():
    model = proportions.IndividualClassifier(l2=L2).fit(LabelledBags(BAGS, LABELS))
    return solution(model), binary(X, LABELS)


def individual_of_three():
    bags = Bags(X, OFFSETS, np.add.reduceat(np.eye(3, dtype=int)[CLASSES], OFFSETS[:-1]))
    return solution(proportions.IndividualClassifier(l2=L2).fit(LabelledBags(bags, CLASSES))), cross_entropy(
        X, np.eye(3)[CLASSES]
    )


def mean_embedding():
    return solution(proportions.MeanEmbeddingClassifier(l2=L2).fit(BAGS)), binary(MEANS, COUNTS / SIZE)


def mean_map():
    shares = np.column_stack([SIZE - COUNTS, COUNTS]) / SIZE
    class_means = np.linalg.lstsq(shares, MEANS, rcond=None)[0]
    total = COUNTS.sum()

    def loss(theta):
        return np.logaddexp(0, scores(X, theta)).sum() - total * (theta[0, :2] @ class_means[1] + theta[0, 2])

    return solution(proportions.MeanMapClassifier(l2=L2).fit(BAGS)), loss


def easy_llp():
    soft = np.repeat(COUNTS - (SIZE - 1) * COUNTS.mean() / SIZE, SIZE)
    return solution(proportions.EasyLLPClassifier(l2=L2).fit(BAGS)), binary(X, soft)


def cardinality(solver="scoring"):
    """−log P(counts), each bag's by enumeration of its sets of positive instances."""

    def loss(theta):
        s = scores(X, theta)[:, 0].reshape(-1, SIZE)
        sets = [np.array(list(combinations(range(SIZE), z)), dtype=int) for z in range(SIZE + 1)]
        within = sum(logsumexp(row[sets[z]].sum(axis=1)) for row, z in zip(s, COUNTS, strict=True))
        return np.logaddexp(0, s).sum() - within

    model = proportions.CardinalityClassifier(solver=solver, l2=L2, tol=1e-10, max_iter=2000).fit(BAGS)
    return solution(model), loss


def cardinality_by_em():
    return cardinality("em")


def normal():
    def loss(theta):
        p = 1 / (1 + np.exp(-scores(X, theta)[:, 0].reshape(-1, SIZE)))
        mean, variance = p.sum(axis=1), (p * (1 - p)).sum(axis=1)
        return 0.5 * (np.log(variance) + (COUNTS - mean) ** 2 / variance).sum()

    return solution(proportions.NormalApproximationClassifier(l2=L2, tol=1e-10, max_iter=2000).fit(BAGS)), loss


def alternating():
    """The regression on its own labels: those of highest score in each bag."""
    theta = solution(proportions.AlternatingMeanMapClassifier(l2=L2, tol=0.0, max_iter=50).fit(BAGS))
    return theta, binary(X, label_highest(scores(X, theta)[:, 0], OFFSETS, COUNTS))


def multinomial():
    model = MultinomialLogistic([L2], random_state=0).fit(X, CLASSES)
    z = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    return model.coef_, cross_entropy(z, np.eye(3)[CLASSES])


def on_clusters():
    """Every value is a cluster. A fifth of the records is held out."""
    model = LogisticOnClusters(OptimalQuantizer(0.999), [L2], max_iter=1000, random_state=1).fit(RECORDS)
    rest = split_validation(200, 0.2, derive_generator("validation", 1))[1]
    weights, intercept = model.tries_[0]
    clusters = model._one_hot(model._positions(RECORDS.codes)).toarray()
    used = clusters.any(axis=0)
    assert used.sum() == 5
    return np.append(weights[used], intercept)[None], binary(clusters[np.ix_(rest, used)], Y[rest])


def skyline():
    model = LogisticSkyline(quadratic=False, l2=L2, max_iter=2000, tol=1e-14).fit(RECORDS)
    return np.append(model.coef_, model.intercept_)[None], binary(ONE_HOT, Y)


def scikit_learn():
    model = SklearnLogistic(l2=L2).fit(RECORDS)
    return np.append(model.coef_, model.intercept_)[None], binary(ONE_HOT, Y)


def label_sums():
    model = WALRClassifier(l2=L2, tol=1e-10).fit(LabelSums.from_map(ONE_HOT_MAP, FRAME, Y))
    return np.append(model.coef_, model.intercept_)[None], binary(ONE_HOT, Y)


def ridge():
    target = X @ [1.0, 2.0] + LABELS
    model = LinearRidge([L2 / X.var(axis=0).sum()]).fit(X, target)
    assert model.l2_ == pytest.approx(L2)
    return np.append(model.coef_, model.intercept_)[None], lambda t: ((target - scores(X, t)[:, 0]) ** 2).sum()


LEARNERS = [
    individual, individual_of_three, mean_embedding, mean_map, easy_llp, cardinality, cardinality_by_em, normal, alternating,
    multinomial, on_clusters, skyline, scikit_learn, label_sums, ridge,
]  # fmt: skip


def slow_minimum(loss, l2, shape):
    def objective(flat):
        theta = flat.reshape(shape)
        return loss(theta) + l2 * (theta[:, :-1] ** 2).sum()

    return minimize(objective, np.zeros(np.prod(shape)), method="BFGS", options={"gtol": 1e-6}).x.reshape(shape)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda f: f.__name__)
def test_the_objective_is_the_sum_of_losses_and_the_penalty(learner):
    theta, loss = learner()
    distances = {f: np.abs(theta - slow_minimum(loss, f * L2, theta.shape)).max() for f in (0.5, 1, 2)}
    assert distances[1] < 2e-3
    assert min(distances[0.5], distances[2]) > 10 * distances[1]
