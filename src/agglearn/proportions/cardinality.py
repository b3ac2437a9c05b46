"""The thesis's method: maximum likelihood of the bags' counts, by exact posteriors of the labels."""

import math
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from agglearn.errors import NotAvailable
from agglearn.linear.penalised import CoefficientIntervalMixin, PenalisedSolution
from agglearn.linear.softmax import LogisticProblem, as_single, scores
from agglearn.observations import Bags, NoiseSpec
from agglearn.privacy.mechanisms import Mechanism
from agglearn.progress import track
from agglearn.proportions.base import (
    NOISY_PATH,
    BagClassifier,
    Penalty,
    Solver,
    counts_of,
    one_vs_rest_counts,
    probabilities,
)
from agglearn.proportions.count_likelihood import (
    CountLikelihood,
    Infer,
    normal_posteriors,
    posteriors_of,
    tree_posteriors,
)
from agglearn.proportions.means import mean_embedding
from agglearn.proportions.posterior import class_posteriors
from agglearn.seeds import derive_generator
from agglearn.settings import Built, Count, NonNegative

UPPER = 0.73  # as in `agglearn.linear.penalised`, where held-out bags chose λ
LARGEST = 25.0  # factor on the prior variance: strong noise excludes none, so that a quantile says nothing
RELEASES = 25  # of noisy counts, at least, over which covariances are averaged
DRAWN = 5000  # bags in them, at least: 2 % of the information in a standard error
COARSE = 10  # factor on the tolerance of the solutions that only choose λ


class BagSolution(PenalisedSolution):
    """With a largest factor on the prior variance."""

    def prior_factor(self) -> float:
        return min(super().prior_factor(), LARGEST)


class CardinalityClassifier(CoefficientIntervalMixin, BagClassifier):
    """Logistic regression that maximises P(counts | covariates) (Sun 2019, sections 3.4.1 to 3.4.3).

    Of noisy counts it maximises Σ_k P(count = k | covariates) P(noisy count | k), by the law of the noise.

    Parameters
    ----------
    multiclass : {'ovr', 'exact'}
        Of more than two classes: one against the rest, or a softmax regression with posteriors given all counts.
    solver : {'scoring', 'em'}
        Damped Fisher scoring, or the thesis's EM. The likelihood never falls from the mean embedding's solution on.
    classifier : classifier or None
        Any classifier with `sample_weight` and `predict_proba` in place of the logistic regression. Every M step of EM
        fits it anew to every instance once per class, with the posteriors as weights.
    l2 : float or 'held_out'
        λ in λ‖θ‖², added to the sum of losses. `held_out` chooses it by the likelihood of held-out bags' counts, of noisy
        counts the largest λ within one standard error of the best.
    max_iter, tol : int, float
        Largest number of steps, and gain in nats per bag below which a step is the last.
    e_step : {'fourier', 'tree'}
        How posteriors are computed, see `cardinality_posterior`. `tree` is the thesis's, a DataError for a bag whose
        counts are too improbable for its rounding errors. It takes noisy counts for exact ones.
    random_state, n_bags : see `MeanEmbeddingClassifier`

    Attributes
    ----------
    log_likelihoods_, l2_ : list of ndarray, float or list of float
        log P(counts) at every step, and λ, per problem (one, or one per class).
    coef_interval_ : ndarray of shape (2, 1, d)
        Ends of 95 % intervals of the coefficients, see `predict_interval`. Of two classes, not saved.
    """

    l2_: float | list[float] | None = field(init=False)

    multiclass: Literal["ovr", "exact"] = "ovr"
    solver: Literal["scoring", "em"] = "scoring"
    classifier: Built | None = None
    l2: Penalty = "held_out"
    max_iter: Count = 100
    tol: NonNegative = 1e-4
    e_step: Literal["fourier", "tree"] = "fourier"

    @property
    def accounts_for_noise(self) -> bool:
        return self.e_step == "fourier"

    def _learn(self, bags: Bags) -> np.ndarray:
        bags = bags.drop_zero_weights()
        self._evidence = "they are those of a logistic regression of two classes"
        self.log_likelihoods_: list[np.ndarray] = []
        if self.classifier is not None:
            return self._learn_other(bags)
        classes = len(self.classes_)
        if classes == 2 or self.multiclass == "exact":
            theta, self.l2_ = self._climb(bags, counts_of(bags).astype(np.int64), mean_embedding(bags))
            return theta
        starts = mean_embedding(bags, "ovr")
        solutions = [self._climb(bags, one_vs_rest_counts(bags, c), starts[c : c + 1]) for c in range(classes)]
        self.l2_ = [l2 for _, l2 in solutions]
        return np.concatenate([theta for theta, _ in solutions])

    def _climb(self, bags: Bags, counts: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
        noise = 0.0 if bags.noise is None else Mechanism(bags.noise.mechanism, bags.noise.scale).variance
        variance = counts.prod(axis=1).mean() / bags.sizes.mean()  # of a count, for two classes, about
        tol = self.tol * variance / (variance + noise) if noise else self.tol  # a noisy bag tells less

        def likelihood_of(subset: Bags) -> CountLikelihood:
            logistic = LogisticProblem(as_single(subset.X), subset.offsets)
            return CountLikelihood(logistic, np.asarray(subset.uncut_counts), self._inference(subset, noise), noise)

        def noisy_likelihoods(subset: Bags, theta: np.ndarray) -> np.ndarray:
            return likelihood_of(subset).infer_at(theta)[2]

        def run(climb: CountLikelihood, start: np.ndarray, tol: float) -> np.ndarray:
            return getattr(climb, self.solver)(start, self.max_iter, tol)

        def solver_on(subset: Bags) -> Solver:
            climb = likelihood_of(subset)
            return lambda l2, last: run(climb.with_l2(l2), start if last is None else last, COARSE * tol)

        problem = replace(bags, counts=counts, class_names=())
        score, path = (noisy_likelihoods, NOISY_PATH) if noise else (None, ())
        l2, near = self._choose_l2(problem, solver_on, score, path)
        climb = likelihood_of(problem).with_l2(l2)
        theta = run(climb, start if near is None else near, tol)
        if len(self.classes_) == 2:
            self._evidence = climb, theta, problem
        self.log_likelihoods_.append(np.array(climb.trace))
        return theta, l2

    def _inference(self, bags: Bags, noise: float) -> Infer:
        """The E step of these bags, whose counts have noise of a variance."""
        return tree_posteriors if self.e_step == "tree" else posteriors_of(bags)

    def _learn_other(self, bags: Bags) -> np.ndarray:
        """EM with one fit of the classifier per M step, from the mean embedding, whose θ is returned."""
        theta = mean_embedding(bags)
        x, classes = bags.X, len(self.classes_)
        p = probabilities(scores(as_single(x), theta), classes)
        infer = self._inference(bags, 0.0)
        stacked, labels = np.tile(x, (classes, 1)), np.repeat(np.arange(classes), len(x))
        trace, best = [], -np.inf
        for _ in track(range(self.max_iter), "EM"):
            q, likelihoods = infer(np.log(p[:, 1:] / p[:, :1]), p, bags.offsets, counts_of(bags))
            trace.append(float(likelihoods.sum()))
            if trace[-1] - best < self.tol * len(bags):
                break
            best = trace[-1]
            self._classifier = clone(self.classifier).fit(stacked, labels, sample_weight=q.T.ravel())
            p = np.clip(self._classifier.predict_proba(x), 1e-6, 1)
            p /= p.sum(axis=1, keepdims=True)
        self.log_likelihoods_ = [np.array(trace)]
        self.l2_ = None
        return theta

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        if getattr(self, "_classifier", None) is not None:
            return self._classifier.predict_proba(self._ordered(X))
        return super().predict_proba(X)

    def _solution(self) -> BagSolution:
        """Scores of bags vary as a bootstrap of bags would draw them: this is the bootstrap's limit.

        With noise it is the expected information, since the observed one is too large where few bags tell anything.
        """
        climb, theta, bags = self._evidence
        penalty, scaled = 2 * climb.problem.penalty(), np.arange(theta.size) < self.coef_.size
        if bags.noise is not None:
            slope = variance = self._expected_information(climb, theta, bags, bags.noise)
        else:
            by_bag, slope = climb.scores_of_bags(theta), climb.observed_information(theta)
            variance = np.cov(by_bag, rowvar=False) * len(by_bag)
        upper = UPPER if self.l2 == "held_out" else None
        return BagSolution(theta.ravel(), slope, variance, penalty, 1 / penalty, scaled, upper)

    def _expected_information(
        self, climb: CountLikelihood, theta: np.ndarray, bags: Bags, noise: NoiseSpec
    ) -> np.ndarray:
        """Information I whose (I + penalty)⁻¹ is the mean of (Σ_b score scoreᵀ + penalty)⁻¹ over releases that the model draws.

        Scoring's V_b + variance of the noise is right for normal noise alone: of Laplace noise that is much larger than
        the spread of a count, a bag tells twice as much. Strong noise draws θ towards 0, where labels vary most, so that
        each release has coefficients of its own, about θ.
        """
        mechanism, rng = Mechanism(noise.mechanism, noise.scale), derive_generator("releases", 0)
        penalty = np.diag(2 * climb.problem.penalty())
        about = np.linalg.inv(climb.information(climb.infer_at(theta)[0]) + penalty)
        releases = max(RELEASES, math.ceil(DRAWN / len(bags)))
        covariance = np.zeros_like(about)
        for near in rng.multivariate_normal(theta.ravel(), about, releases).reshape(-1, *theta.shape):
            p = climb.infer_at(near)[0][:, 1]
            positives = np.add.reduceat((rng.random(len(p)) < p).astype(float), bags.offsets[:-1])
            drawn = replace(bags, released=positives + mechanism.noise(rng, len(bags)))
            release = replace(climb, counts=np.asarray(drawn.uncut_counts), infer=self._inference(drawn, climb.noise))
            rows = release.scores_of_bags(near)
            covariance += np.linalg.inv(rows.T @ rows + penalty) / releases
        return np.linalg.inv(covariance) - penalty

    def _derivatives(self, X: ArrayLike) -> np.ndarray:
        x = self._ordered(X)
        return np.column_stack([x, np.ones(len(x))])

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder, or raise NotAvailable if it has another `classifier`.

        Parameters
        ----------
        folder : str or Path
        """
        if self.classifier is not None:
            raise NotAvailable(f"a {type(self.classifier).__name__} cannot be saved without pickle")
        super().save(folder)

    def warm_up(self) -> None:
        super().warm_up()
        if self.multiclass == "exact" or self.classifier is not None:
            class_posteriors(np.full((3, 3), np.log(1 / 3)), [0, 3], np.ones((1, 3), np.int64))


class NormalApproximationClassifier(CardinalityClassifier):
    """The same with a normal distribution of counts (Rosenman and Viswanathan 2018), one against the rest for C > 2.

    The variance of privacy noise on the counts is added to that of a count.

    Parameters
    ----------
    l2, max_iter, tol, random_state, n_bags : see `CardinalityClassifier`
    """

    multiclass: Literal["ovr"] = field(default="ovr", init=False)
    solver: Literal["scoring"] = field(default="scoring", init=False)
    classifier: None = field(default=None, init=False)
    e_step: Literal["fourier"] = field(default="fourier", init=False)

    def _inference(self, bags: Bags, noise: float) -> Infer:
        return partial(normal_posteriors, noise=noise)

    def _expected_information(
        self, climb: CountLikelihood, theta: np.ndarray, bags: Bags, noise: NoiseSpec
    ) -> np.ndarray:
        """That of normal noise, which this method takes it for."""
        return climb.information(climb.infer_at(theta)[0])
