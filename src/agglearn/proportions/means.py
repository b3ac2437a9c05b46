"""Methods that see bag means only: mean embedding, mean map, inverse calibration."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from agglearn.errors import DataError
from agglearn.linear.softmax import Logistic, as_single, bag_sums, scores
from agglearn.observations import Bags
from agglearn.proportions.base import BagClassifier, Penalty, choose_l2, counts_likelihood, probabilities
from agglearn.settings import Count, NonNegative, Positive


class MeanEmbeddingClassifier(BagClassifier):
    """Logistic regression on bag means, with the bags' proportions as soft labels (Sun 2019, section 3.5.2.2).

    Every bag counts the same; instances count by their weight in their bag's mean.

    Parameters
    ----------
    l2 : λ in ½λ‖θ‖², against one unit per bag; `held_out` to choose it by the likelihood of held-out bags' proportions.
    multiclass : `softmax`, or `ovr` for one logistic regression per class.
    n_bags : learn from the first so many bags; None for all.
    random_state : seed of the choice of held-out bags.
    """

    PATH_SCALE = 0.01  # bags are fewer than instances: λ is that much smaller on the same path

    def __init__(
        self,
        l2: Penalty = "held_out",
        multiclass: Literal["softmax", "ovr"] = "softmax",
        n_bags: Count | None = None,
        random_state=None,
    ):
        self.l2 = l2
        self.multiclass = multiclass
        self.n_bags = n_bags
        self.random_state = random_state

    def _learn(self, bags):
        given = Bags(bag_means(bags), np.arange(len(bags) + 1), target=proportions_of(bags))
        scale = self.PATH_SCALE if isinstance(self.l2, str) else 1.0

        def fitter(part):
            problem = Logistic.from_rows(part.X)
            return lambda l2, start: self._solve(problem.with_l2(l2 * scale), part.target, start)

        l2, _ = choose_l2(self.l2, given, fitter, _soft_likelihood, self.random_state)
        self.l2_ = l2 * scale
        self._set(fitter(given)(l2, None))

    def _solve(self, problem, shares, start):
        if self.multiclass == "softmax" or shares.shape[1] == 2:
            return problem.fit(problem.moments(shares), start, tol=1e-8)
        columns = [problem.moments(np.column_stack([1 - s, s])) for s in shares.T]
        return np.concatenate([problem.fit(m, None, tol=1e-8) for m in columns])


class MeanMapClassifier(BagClassifier):
    """Logistic regression from estimated class means (Quadrianto et al. 2009).

    Bag means are mixtures of class means, with the proportions as weights; the class means are their least-squares
    solution, and take the place of labels in the sufficient statistics. Assumes that a class looks the same in every bag.

    Parameters
    ----------
    l2, n_bags, random_state : as in `MeanEmbeddingClassifier`; λ is against one unit per instance.
    """

    def __init__(self, l2: Penalty = "held_out", n_bags: Count | None = None, random_state=None):
        self.l2 = l2
        self.n_bags = n_bags
        self.random_state = random_state

    def _learn(self, bags):
        bags = bags.drop_zero_weights()
        self.l2_, _ = choose_l2(self.l2, bags, mean_map, _likelihood, self.random_state)
        self._set(mean_map(bags)(self.l2_, None))


class InverseCalibrationClassifier(BagClassifier):
    """Support vector regression of the log-odds of proportions on bag means (Rueping 2010), one class against the rest.

    Parameters
    ----------
    C, epsilon : of `sklearn.svm.LinearSVR`, on standardised bag means.
    n_bags : as in `MeanEmbeddingClassifier`. random_state : not used; the order in which the solver takes bags is fixed.
    """

    def __init__(self, C: Positive = 1.0, epsilon: NonNegative = 0.0, n_bags: Count | None = None, random_state=None):
        self.C = C
        self.epsilon = epsilon
        self.n_bags = n_bags
        self.random_state = random_state

    def _learn(self, bags):
        from sklearn.svm import LinearSVR

        means, shares = bag_means(bags), proportions_of(bags)
        sizes = bags.counts.sum(axis=1, keepdims=True)
        shares = np.clip(shares, 0.5 / sizes, 1 - 0.5 / sizes)  # a bag without a class: half an instance
        centre, scale = means.mean(axis=0), means.std(axis=0) + 1e-12
        rows = []
        for share in shares.T[1:] if shares.shape[1] == 2 else shares.T:
            found = LinearSVR(C=self.C, epsilon=self.epsilon, max_iter=20_000, random_state=0)
            found.fit((means - centre) / scale, np.log(share) - np.log1p(-share))
            coef = found.coef_ / scale
            rows.append(np.append(coef, float(np.squeeze(found.intercept_)) - coef @ centre))
        self._set(np.array(rows))


def bag_means(bags: Bags) -> np.ndarray:
    """(B, d) means of covariates, by weight."""
    weights = np.ones(len(bags.X)) if bags.weights is None else bags.weights
    sums = bag_sums(as_single(bags.X), weights[:, None], bags.offsets)[:, 0]
    if (sums[:, -1] <= 0).any():
        raise DataError(f"bag {bags._bag(int(np.flatnonzero(sums[:, -1] <= 0)[0]))}: all weights are zero")
    return sums[:, :-1] / sums[:, -1:]


def proportions_of(bags: Bags) -> np.ndarray:
    """(B, C) share of every class."""
    return bags.counts / bags.counts.sum(axis=1, keepdims=True)


def mean_map(bags: Bags) -> Callable:
    """What solves for θ from estimated class means, for (λ, start)."""
    shares, means = proportions_of(bags), bag_means(bags)
    class_means = np.linalg.lstsq(shares, np.column_stack([means, np.ones(len(means))]), rcond=None)[0]
    problem = Logistic.from_rows(bags.X)
    moments = bags.counts.sum(axis=0)[:, None] * class_means
    moments[:, -1] = bags.counts.sum(axis=0)
    return lambda l2, start: problem.with_l2(l2).fit(moments[1:], start)


def mean_embedding(bags: Bags, multiclass="softmax") -> np.ndarray:
    """θ of the mean embedding with λ = 1: the start of all LLP methods."""
    found = MeanEmbeddingClassifier(l2=1.0, multiclass=multiclass).fit(bags)
    return np.column_stack([found.coef_, found.intercept_])


def _soft_likelihood(bags: Bags, theta: np.ndarray) -> float:
    p = probabilities(scores(as_single(bags.X), theta), bags.target.shape[1])
    return float((bags.target * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean())


def _likelihood(bags: Bags, theta: np.ndarray) -> float:
    p = probabilities(scores(as_single(bags.X), theta), bags.counts.shape[1])
    return counts_likelihood(p, bags.offsets, bags.counts)
