"""What classifiers of instances that learn from bags have in common: linear scores, prediction, the choice of λ."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin

from agglearn.errors import ConfigError, DataError
from agglearn.estimator import Estimator, check_labels, choose_best
from agglearn.linear.softmax import Logistic, as_single, bag_sums, scores, softmax
from agglearn.observations import Bags
from agglearn.observations.bags import order_columns
from agglearn.proportions.posterior import binary_posteriors
from agglearn.seeds import draw_generator
from agglearn.settings import Positive

FOLDS = 5  # parts of the bags, each held out once to choose λ
PATH = tuple(10.0**k for k in (2, 1, 0, -1, -2))  # values of λ, from strong to weak
Penalty = Literal["held_out"] | Positive


class BagClassifier(ClassifierMixin, Estimator):
    """A classifier of instances that sees bags.

    Subclasses write `_learn(bags)`, which sets `coef_` (K, d) and `intercept_` (K,), for bags of whole instances with
    float32 covariates. With K = C − 1 the classes have probabilities softmax(0, scores); with K = C, one against the
    rest, the K logistic probabilities are divided by their sum.

    Attributes
    ----------
    coef_, intercept_ : weights. classes_ : 0 … C − 1. l2_ : λ used. feature_names_in_ : names of the covariates, none where
    the bags have none; by them data frames and bags to predict are matched.
    """

    observes = Bags
    n_bags: int | None = None

    def _fit(self, observation):
        bags = self._chosen(observation)
        if bags.counts is None:
            raise DataError("these bags have no counts; learning with label proportions needs them")
        self.classes_ = np.arange(bags.counts.shape[1])
        if len(self.classes_) < 2:
            raise DataError("counts of one class only: there is nothing to learn")
        self.feature_names_in_ = list(bags.names)
        self._learn(bags)

    def _chosen(self, bags: Bags) -> Bags:
        """The first `n_bags` bags."""
        if self.n_bags is None:
            return bags
        if not 1 <= self.n_bags <= len(bags):
            raise ConfigError(f"n_bags: must be between 1 and the {len(bags)} bags there are, got {self.n_bags}")
        return bags.take(np.arange(self.n_bags))

    def _learn(self, bags: Bags) -> None:
        raise NotImplementedError

    def _set(self, theta: np.ndarray) -> None:
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()

    def warm_up(self) -> None:
        """Compile the kernels, or load them, so that the first fit of a process is not charged for it."""
        x = np.linspace(-1, 1, 8).reshape(8, 1).astype(np.float32)
        scores(x, np.ones((1, 2)))
        bag_sums(x, np.ones((8, 1)), np.array([0, 4, 8]))
        Logistic(x, np.array([0, 4, 8])).loss(np.ones((1, 2)), np.zeros((1, 2)))
        binary_posteriors(x[:, 0], [0, 4, 8], [1, 2])

    def predict_proba(self, X) -> np.ndarray:
        """(n, C) class probabilities for covariates (n, d), a data frame's matched by name."""
        x = as_single(order_columns(np.asarray(X), getattr(X, "columns", ()), self.feature_names_in_))
        if x.ndim != 2 or x.shape[1] != self.coef_.shape[1]:
            raise DataError(f"X: must be (instances, {self.coef_.shape[1]}), got shape {x.shape}")
        return probabilities(scores(x, np.column_stack([self.coef_, self.intercept_])), len(self.classes_))

    def predict(self, X) -> np.ndarray:
        """(n,) most probable classes."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy on instances and their classes; DataError for classes that were not learned."""
        return super().score(X, check_labels(y, self.classes_), sample_weight)

    @property
    def n_features_in_(self) -> int:
        """d, the number of covariates."""
        return self.coef_.shape[1]

    def predict_counts(self, bags: Bags) -> np.ndarray:
        """(B, C) expected counts of every class in every bag; weights count."""
        p = self.predict_proba(bags.columns(self.feature_names_in_))
        p = p if bags.weights is None else p * bags.weights[:, None]
        return np.add.reduceat(p, bags.offsets[:-1], axis=0)


def probabilities(score: np.ndarray, classes: int) -> np.ndarray:
    """(n, C) probabilities from C − 1 softmax scores or from C scores of one against the rest."""
    if score.shape[1] == classes - 1:
        return softmax(score)[0]
    p = expit(score)
    return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)


def counts_likelihood(p: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> float:
    """Mean over bags of Σ_c log P(count of class c); for two classes the likelihood of the counts itself.

    With more classes it is a composite likelihood: exact for every class by itself, and cheap.
    """
    which = range(counts.shape[1]) if counts.shape[1] > 2 else [1]
    total = 0.0
    for c in which:
        with np.errstate(divide="ignore"):
            logits = np.log(p[:, c]) - np.log1p(-p[:, c])
        total += binary_posteriors(logits, offsets, counts[:, c])[1].mean()
    return float(total)


def choose_l2(l2, bags: Bags, fitter: Callable, score: Callable, random_state) -> tuple[float, np.ndarray | None]:
    """(λ, solution near there or None) for `l2` a number, or `held_out`: chosen by bags held out, without any label.

    `fitter(bags)` gives, for a part of the bags, what solves there for (λ, start); `score(bags, solution)` judges on the
    others, as a mean over bags. Each of five random parts of the bags is held out once; the λ of the largest sum of scores is
    taken, of equal ones the largest λ. Solutions start from the one of the next larger λ, or from that of the last part.
    """
    if not isinstance(l2, str):
        return float(l2), None
    if len(bags) < 2:
        return 1.0, None
    parts = np.array_split(draw_generator(random_state).permutation(len(bags)), min(FOLDS, len(bags)))
    totals, solutions = np.zeros(len(PATH)), [None] * len(PATH)
    for k, part in enumerate(parts):
        held, rest = bags.take(np.sort(part)), bags.take(np.sort(np.concatenate(parts[:k] + parts[k + 1 :])))
        fit = fitter(rest)
        for i, value in enumerate(PATH):
            solutions[i] = fit(value, solutions[i] if k else solutions[i - 1] if i else None)
            totals[i] += len(part) * score(held, solutions[i])
    best = choose_best(totals)
    return PATH[best], solutions[best]


def positives(bags: Bags, c: int) -> np.ndarray:
    """(B, 2) counts of class c against the rest."""
    return np.column_stack([bags.sizes - bags.counts[:, c], bags.counts[:, c]]).astype(np.int64)
