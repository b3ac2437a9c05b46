"""Base of the classifiers of instances that learn from bags: linear scores, prediction, the choice of λ."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from agglearn.errors import ConfigError, DataError, PoorFit
from agglearn.estimator import Classifier, choose_best
from agglearn.linear.path import fit_path
from agglearn.linear.softmax import LogisticProblem, as_single, bag_sums, scores, softmax
from agglearn.observations import Bags, Observation
from agglearn.observations.bags import order_columns
from agglearn.progress import track
from agglearn.proportions.posterior import binary_posteriors
from agglearn.saving import check_classes, expect
from agglearn.seeds import draw_generator
from agglearn.settings import Count, Positive

FOLDS = 5  # groups of bags, each held out once to choose λ
PATH = tuple(0.5 * 10.0**k for k in (2, 1, 0, -1, -2))  # values of λ, from strong to weak
NOISY_PATH = tuple(0.5 * 10.0 ** (k / 2) for k in range(4, -1, -1))  # λ from strong to weak: weaker ones fit noise
LEAST_RATE = 1e-9  # of P(y = 1): counts of certain instances have no probability
ALLOWED = 1e-3  # nats of a bag, by which a fit is not below the base rate
BEHIND = 20.0  # of held-out log-likelihood, in nats, from which a λ is given up
Penalty = Literal["held_out"] | Positive
Solver = Callable[[float, np.ndarray | None], np.ndarray]  # (λ, start) → θ
Score = Callable[[Bags, np.ndarray], Any]  # float or (B,): (held-out bags, θ) → how good it is, or θ for each bag


class BagClassifier(Classifier):
    """Classifier of instances by `coef_` (K, d), `intercept_` (K,), for the bags' `classes_` (C,), with λ `l2_`.

    `_learn(bags)` of subclasses returns θ (K, d + 1), intercepts last, K = C − 1 for softmax(0, scores), or K = C for
    one against the rest, whose probabilities are divided by their sum. Columns are matched by `feature_names_in_`.
    """

    observes: ClassVar[type[Observation]] = Bags
    n_bags: Count | None = field(default=None, kw_only=True)

    def _fit(self, observation: Bags) -> None:
        bags = self._first_bags(observation)
        self.classes_ = bags.classes
        if len(self.classes_) < 2:
            raise DataError("the bags have counts of one class only; two classes are needed")
        self.feature_names_in_ = list(bags.names)
        self._set(self._learn(bags))
        if bags.counts is not None and len(self.classes_) == 2 and bags.weights is None and bags.noise is None:
            warn_of_poor_fit(bags, self.predict_proba(bags.X)[:, 1], type(self).__name__)

    def _set(self, theta: np.ndarray) -> None:
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()

    def _first_bags(self, bags: Bags) -> Bags:
        if self.n_bags is None:
            return bags
        if not 1 <= self.n_bags <= len(bags):
            raise ConfigError(f"n_bags: must be between 1 and the {len(bags)} bags there are, got {self.n_bags}")
        return bags.take(np.arange(self.n_bags))

    def _learn(self, bags: Bags) -> np.ndarray:
        raise NotImplementedError

    def _choose_l2(
        self, bags: Bags, solver_on: Callable[[Bags], Solver], score: Score | None = None, path: Sequence[float] = ()
    ) -> tuple[float, np.ndarray | None]:
        """(λ, a solution near there or None): `l2` as it is, or of the largest score by cross-validation over bags.

        The path goes from strong to weak. The weakest λ is left out of later folds once it is `BEHIND`. Of equal scores
        the largest λ wins, and of scores for each bag the largest λ within one standard error of the best. A single bag
        takes the middle of the path.
        """
        if not isinstance(self.l2, str):
            return float(self.l2), None
        path, score = path or PATH, score or validation_likelihood
        if len(bags) < 2:
            return path[len(path) // 2], None
        folds = np.array_split(draw_generator(self.random_state).permutation(len(bags)), min(FOLDS, len(bags)))
        totals, by_bag, solutions = np.zeros(len(path)), list[np.ndarray](), dict[float, np.ndarray]()
        for k, fold in enumerate(track(folds, "folds")):
            validation = bags.take(np.sort(fold))
            training = bags.take(np.sort(np.concatenate(folds[:k] + folds[k + 1 :])))
            # no start from another fold's solution, which has seen this fold's counts
            fits = fit_path(path[: len(totals)], solver_on(training), partial(score, validation), stop=False)
            by_bag.append(np.array([fit.score for fit in fits]))
            totals = totals + len(fold) * by_bag[-1].reshape(len(fits), -1).mean(axis=1)
            solutions.update({fit.l2: fit.solution for fit in fits})
            while totals[-1] < totals.max() - BEHIND:
                totals = totals[:-1]
        chosen = choose_best(totals)
        if by_bag[0].ndim == 2:
            held_out = np.hstack([fold[: len(totals)] for fold in by_bag])
            losses = held_out[chosen] - held_out
            chosen = int(np.argmax(losses.sum(axis=1) <= losses.std(axis=1) * np.sqrt(losses.shape[1])))
        return path[chosen], solutions[path[chosen]]

    def _check_state(self) -> None:
        check_classes(self)
        classes = len(self.classes_)
        expect(self, coef_=("f", (None, None)), intercept_=("f", (len(self.coef_),)))
        rows = {1} if classes == 2 else {classes - 1, classes}  # softmax, or one against the rest
        if classes < 2 or len(self.coef_) not in rows:
            raise ValueError(f"{type(self).__name__}: coef_ and classes_ do not fit together")

    def warm_up(self) -> None:
        super().warm_up()
        x, offsets = np.linspace(-1, 1, 8).reshape(8, 1).astype(np.float32), np.array([0, 4, 8])
        scores(x, np.ones((1, 2)))
        bag_sums(x, np.ones((8, 1)), offsets)
        LogisticProblem(x, offsets).loss(np.ones((1, 2)), np.zeros((1, 2)))
        binary_posteriors(x[:, 0], offsets, [1, 2])

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Class probabilities (n, C) of instances (n, d). The columns of a data frame are matched by name."""
        x = as_single(self._ordered(X))
        if x.ndim != 2 or x.shape[1] != self.coef_.shape[1]:
            raise DataError(f"X: must be (instances, {self.coef_.shape[1]}), got shape {x.shape}")
        return probabilities(scores(x, np.column_stack([self.coef_, self.intercept_])), len(self.classes_))

    def _ordered(self, X: ArrayLike) -> np.ndarray:
        """(n, d) covariates in the order of the fit."""
        return order_columns(np.asarray(X), getattr(X, "columns", ()), self.feature_names_in_)

    @property
    def n_features_in_(self) -> int:
        return self.coef_.shape[1]

    def predict_counts(self, bags: Bags) -> np.ndarray:
        """Expected counts (B, C) of every class in every bag, by the instances' weights."""
        p = self.predict_proba(bags.columns(self.feature_names_in_))
        p = p if bags.weights is None else p * bags.weights[:, None]
        return np.add.reduceat(p, bags.offsets[:-1], axis=0)


def warn_of_poor_fit(bags: Bags, p: np.ndarray, name: str) -> None:
    """Warn where the counts of two classes are less probable by P(y = 1) of the instances (n,) than by one for all."""
    base_rate = bags.counts[:, 1].sum() / len(p)  # type: ignore[index]  # there are counts
    rates = np.clip([p, np.full(len(p), base_rate)], LEAST_RATE, 1 - LEAST_RATE)
    of_model, of_base_rate = (
        binary_posteriors(logit(rate), bags.offsets, bags.counts[:, 1])[1].mean()  # type: ignore[index]
        for rate in rates
    )
    if of_model < of_base_rate - ALLOWED:
        warnings.warn(
            f"{name}: the counts of the bags are less probable by the fitted model than by the base rate (log P of a bag: "
            f"{of_model:.4g} and {of_base_rate:.4g}), so its probabilities are worse than none; use CardinalityClassifier, "
            "a larger l2, or smaller bags",
            PoorFit,
            stacklevel=4,
        )


def probabilities(score: np.ndarray, classes: int) -> np.ndarray:
    """(n, C) probabilities from C − 1 softmax scores or from C scores of one against the rest."""
    if score.shape[1] == classes - 1:
        return softmax(score)
    p = expit(score)
    return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)


def counts_of(bags: Bags) -> np.ndarray:
    if bags.counts is None:
        raise DataError("these bags have no counts; learning with label proportions needs them")
    return bags.counts


def one_vs_rest_counts(bags: Bags, c: int) -> np.ndarray:
    """(B, 2) counts of all other classes and of class c."""
    positive = counts_of(bags)[:, c]
    return np.column_stack([bags.sizes - positive, positive]).astype(np.int64)


def validation_likelihood(bags: Bags, theta: np.ndarray) -> float:
    counts = counts_of(bags)
    return counts_likelihood(probabilities(scores(as_single(bags.X), theta), counts.shape[1]), bags.offsets, counts)


def counts_likelihood(p: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> float:
    """Mean over bags of Σ_c log P(count of class c): the likelihood for two classes, a cheap composite one for more."""
    total = 0.0
    for c in range(counts.shape[1]) if counts.shape[1] > 2 else [1]:
        with np.errstate(divide="ignore"):
            logits = np.log(p[:, c]) - np.log1p(-p[:, c])
        total += binary_posteriors(logits, offsets, counts[:, c])[1].mean()
    return float(total)
