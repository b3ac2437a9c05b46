"""Methods on bag means: mean embedding, mean map, inverse calibration."""

from typing import Literal

import numpy as np

from agglearn.errors import DataError
from agglearn.linear.softmax import LogisticProblem, as_single, bag_sums, scores, softmax
from agglearn.observations import Bags
from agglearn.privacy.mechanisms import Mechanism
from agglearn.proportions.base import NOISY_PATH, PATH, BagClassifier, Penalty, Solver, counts_of, probabilities
from agglearn.proportions.count_likelihood import posteriors_of
from agglearn.settings import NonNegative, Positive

PATH_OF_MEANS = tuple(0.01 * l2 for l2 in PATH)  # weaker, because there are fewer bags than instances


class MeanEmbeddingClassifier(BagClassifier):
    """Logistic regression on bag means, with the bags' proportions as soft labels (Sun 2019, section 3.5.2.2).

    Every bag has the same weight. Instances have theirs in their bag's mean.

    Parameters
    ----------
    l2 : float or 'held_out'
        λ in λ‖θ‖², added to a sum of one loss per bag. `held_out`: by the likelihood of held-out bags' proportions.
    multiclass : {'softmax', 'ovr'}
        `ovr` fits one logistic regression per class.
    random_state, n_bags : int or RandomState or Generator or None, int or None
        Seed of the choice of held-out bags, and number of bags to learn from, in their order (None: all).
    """

    l2: Penalty = "held_out"
    multiclass: Literal["softmax", "ovr"] = "softmax"

    def _learn(self, bags: Bags) -> np.ndarray:
        means = Bags(bag_means(bags), np.arange(len(bags) + 1), target=proportions_of(bags))

        def solver_on(subset: Bags) -> Solver:
            problem = LogisticProblem.from_rows(subset.X)
            return lambda l2, start: self._solve(problem.with_l2(l2), np.asarray(subset.target), start)

        self.l2_, _ = self._choose_l2(means, solver_on, _soft_likelihood, PATH_OF_MEANS)
        return solver_on(means)(self.l2_, None)

    def _solve(self, problem: LogisticProblem, proportions: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        if self.multiclass == "softmax" or proportions.shape[1] == 2:
            return problem.minimise(problem.moments(proportions), start, tol=1e-8)[0]
        columns = [problem.moments(np.column_stack([1 - s, s])) for s in proportions.T]
        return np.concatenate([problem.minimise(m, None, tol=1e-8)[0] for m in columns])


class MeanMapClassifier(BagClassifier):
    """Logistic regression with least-squares estimates of class means from bag means (Quadrianto et al. 2009).

    They replace labels in the sufficient statistics. A class is assumed to have the same distribution in every bag.

    Parameters
    ----------
    l2, random_state, n_bags : see `MeanEmbeddingClassifier`
        The sum of losses has one per instance.
    """

    l2: Penalty = "held_out"

    def _learn(self, bags: Bags) -> np.ndarray:
        bags = bags.drop_zero_weights()
        self.l2_, _ = self._choose_l2(bags, mean_map_solver)
        return mean_map_solver(bags)(self.l2_, None)


class EasyLLPClassifier(BagClassifier):
    """Logistic regression on the unbiased loss of bags drawn at random (Busa-Fekete et al. 2023, "EasyLLP").

    Every instance of a bag of k has the soft label k(α − π) + π, for the bag's proportions α and those of all bags π. The
    mean of its loss is that of the true labels where instances came into bags by chance, also with noise on the counts.

    Parameters
    ----------
    l2, random_state, n_bags : see `MeanEmbeddingClassifier`
        The sum of losses has one per instance. `held_out` is by the likelihood of held-out bags' counts, of noisy counts
        as in `CardinalityClassifier`.
    """

    accounts_for_noise = True

    l2: Penalty = "held_out"

    def _learn(self, bags: Bags) -> np.ndarray:
        bags = bags.drop_zero_weights()
        score, path, factor = None, PATH, bags.sizes.mean()  # labels have variances of a whole bag
        if bags.noise is not None:
            score, path = _noisy_likelihoods, NOISY_PATH
            factor *= 1 + Mechanism(bags.noise.mechanism, bags.noise.scale).variance / bags.sizes.mean()
        self.l2_, _ = self._choose_l2(bags, unbiased_solver, score, tuple(factor * l2 for l2 in path))
        return unbiased_solver(bags)(self.l2_, None)


class InverseCalibrationClassifier(BagClassifier):
    """Support vector regression of the log-odds of proportions on bag means (Rueping 2010), one class against the rest.

    Parameters
    ----------
    C, epsilon : float
        Parameters of `sklearn.svm.LinearSVR`, on standardised bag means.
    random_state, n_bags : see `MeanEmbeddingClassifier`
        The seed is not used.
    """

    C: Positive = 1.0
    epsilon: NonNegative = 0.0

    def _learn(self, bags: Bags) -> np.ndarray:
        from sklearn.svm import LinearSVR

        means, proportions = bag_means(bags), proportions_of(bags)
        sizes = counts_of(bags).sum(axis=1, keepdims=True)
        proportions = np.clip(proportions, 0.5 / sizes, 1 - 0.5 / sizes)  # a bag without a class: half an instance
        centre, scale = means.mean(axis=0), means.std(axis=0) + 1e-12
        rows = []
        for p in proportions.T[1:] if proportions.shape[1] == 2 else proportions.T:
            svr = LinearSVR(C=self.C, epsilon=self.epsilon, max_iter=20_000, random_state=0)
            svr.fit((means - centre) / scale, np.log(p) - np.log1p(-p))
            coef = svr.coef_ / scale
            rows.append(np.append(coef, float(np.squeeze(svr.intercept_)) - coef @ centre))
        return np.array(rows)


def bag_means(bags: Bags) -> np.ndarray:
    """(B, d) weighted means of the covariates."""
    weights = np.ones(len(bags.X)) if bags.weights is None else bags.weights
    sums = bag_sums(as_single(bags.X), weights[:, None], bags.offsets)[:, 0]
    if (sums[:, -1] <= 0).any():
        raise DataError(f"bag {bags._bag(int(np.flatnonzero(sums[:, -1] <= 0)[0]))}: all weights are zero")
    return sums[:, :-1] / sums[:, -1:]


def proportions_of(bags: Bags) -> np.ndarray:
    """(B, C) proportions of the classes."""
    counts = counts_of(bags)
    return counts / counts.sum(axis=1, keepdims=True)


def mean_map_solver(bags: Bags) -> Solver:
    proportions, means, counts = proportions_of(bags), bag_means(bags), counts_of(bags)
    class_means = np.linalg.lstsq(proportions, np.column_stack([means, np.ones(len(means))]), rcond=None)[0]
    problem = LogisticProblem.from_rows(bags.X)
    moments = counts.sum(axis=0)[:, None] * class_means
    moments[:, -1] = counts.sum(axis=0)
    return lambda l2, start: problem.with_l2(l2).minimise(moments[1:], start)[0]


def unbiased_solver(bags: Bags) -> Solver:
    counts = np.asarray(counts_of(bags) if bags.released is None else bags.uncut_counts, float)
    labels = counts - (bags.sizes[:, None] - 1) * counts.sum(axis=0) / counts.sum()
    problem = LogisticProblem.from_rows(bags.X)
    moments = problem.moments(np.repeat(labels, bags.sizes, axis=0))
    return lambda l2, start: problem.with_l2(l2).minimise(moments, start)[0]


def _noisy_likelihoods(bags: Bags, theta: np.ndarray) -> np.ndarray:
    score = scores(as_single(bags.X), theta)
    return posteriors_of(bags)(score, softmax(score), bags.offsets, counts_of(bags))[1]


def mean_embedding(bags: Bags, multiclass: Literal["softmax", "ovr"] = "softmax") -> np.ndarray:
    """θ of the mean embedding with λ = ½, the start of other methods."""
    return np.ascontiguousarray(MeanEmbeddingClassifier(l2=0.5, multiclass=multiclass)._learn(bags))


def _soft_likelihood(bags: Bags, theta: np.ndarray) -> float:
    """Mean over bags of Σ_c (proportion of class c) log P(c | mean)."""
    target = np.asarray(bags.target)
    p = probabilities(scores(as_single(bags.X), theta), target.shape[1])
    return float((target * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean())
