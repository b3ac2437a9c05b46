"""The thesis's method: maximum likelihood of the bags' counts, by exact posteriors of the labels."""

from typing import Literal

import numpy as np
from sklearn.base import clone

from agglearn.errors import NotAvailable
from agglearn.linear.softmax import Logistic, as_single, scores
from agglearn.observations import Bags
from agglearn.observations.bags import order_columns
from agglearn.proportions.base import BagClassifier, Penalty, choose_l2, counts_likelihood, positives, probabilities
from agglearn.proportions.count_likelihood import CountLikelihood, exact, normal
from agglearn.proportions.means import mean_embedding
from agglearn.proportions.posterior import class_posteriors
from agglearn.settings import Built, Count, NonNegative

COARSE = 10  # how much coarser the solutions are that only choose λ


class CardinalityClassifier(BagClassifier):
    """Logistic regression that maximises P(counts | covariates) (Sun 2019, sections 3.4.1 to 3.4.3).

    Parameters
    ----------
    multiclass : for more than two classes `ovr`, one against the rest, or `exact`, one softmax regression with
        posteriors given all counts of a bag at once.
    solver : `scoring`, damped Fisher scoring on the likelihood; `em`, the thesis's EM. Both climb the same likelihood
        from the mean embedding's solution, and never fall.
    classifier : any classifier with `sample_weight` and `predict_proba` in the place of the logistic regression; fitted
        anew in every M step of EM, to every instance once per class, with the posteriors as weights.
    l2 : λ in ½λ‖θ‖²; `held_out` to choose it by the likelihood of held-out bags' counts.
    max_iter, tol : steps; a step that gains less than `tol` nats per bag is the last.
    n_bags : learn from the first so many bags; None for all.
    random_state : seed of the choice of held-out bags.

    Attributes
    ----------
    log_likelihoods_ : per problem (one, or one per class), log P(counts) at every step. l2_ : λ per problem.
    """

    infer = staticmethod(exact)

    def __init__(
        self,
        multiclass: Literal["ovr", "exact"] = "ovr",
        solver: Literal["scoring", "em"] = "scoring",
        classifier: Built | None = None,
        l2: Penalty = "held_out",
        max_iter: Count = 100,
        tol: NonNegative = 1e-4,
        n_bags: Count | None = None,
        random_state=None,
    ):
        self.multiclass = multiclass
        self.solver = solver
        self.classifier = classifier
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.n_bags = n_bags
        self.random_state = random_state

    def _learn(self, bags):
        bags = bags.drop_zero_weights()
        self.log_likelihoods_ = []
        if self.classifier is not None:
            return self._learn_other(bags)
        classes = len(self.classes_)
        if classes == 2 or self.multiclass == "exact":
            start = mean_embedding(bags)
            theta, self.l2_ = self._climb(bags, bags.counts.astype(np.int64), start)
        else:
            starts = mean_embedding(bags, "ovr")
            found = [self._climb(bags, positives(bags, c), starts[c : c + 1]) for c in range(classes)]
            theta, self.l2_ = np.concatenate([f[0] for f in found]), [f[1] for f in found]
        self._set(theta)

    def _climb(self, bags: Bags, counts: np.ndarray, start: np.ndarray):
        """(θ, λ) of one problem with these counts."""

        def climber(part):
            return CountLikelihood(Logistic(as_single(part.X), part.offsets), part.counts, type(self).infer)

        def fitter(part):
            climb = climber(part)
            return lambda l2, last: self._run(climb.at(l2), start if last is None else last, COARSE * self.tol)

        kept = Bags(bags.X, bags.offsets, counts)
        l2, near = choose_l2(self.l2, kept, fitter, _score, self.random_state)
        climb = climber(kept).at(l2)
        theta = self._run(climb, start if near is None else near, self.tol)
        self.log_likelihoods_.append(np.array(climb.trace))
        return theta, l2

    def _run(self, climb: CountLikelihood, start: np.ndarray, tol: float) -> np.ndarray:
        return getattr(climb, self.solver)(start, self.max_iter, tol)

    # -- any classifier in the M step ---------------------------------------------------------------------------

    def _learn_other(self, bags: Bags) -> None:
        """EM with one fit of the classifier per M step, from the mean embedding's probabilities."""
        theta = mean_embedding(bags)
        x, classes = bags.X, len(self.classes_)
        p = probabilities(scores(as_single(x), theta), classes)
        stacked, labels = np.tile(x, (classes, 1)), np.repeat(self.classes_, len(x))
        trace, best = [], -np.inf
        for _ in range(self.max_iter):
            q, found = class_posteriors(np.log(p), bags.offsets, bags.counts)
            trace.append(float(found.sum()))
            if trace[-1] - best < self.tol * len(bags):
                break
            best = trace[-1]
            self._classifier = clone(self.classifier).fit(stacked, labels, sample_weight=q.T.ravel())
            p = np.clip(self._classifier.predict_proba(x), 1e-6, 1)
            p /= p.sum(axis=1, keepdims=True)
        self.log_likelihoods_, self.l2_ = [np.array(trace)], None
        self._set(theta)

    def predict_proba(self, X):
        if getattr(self, "_classifier", None) is not None:
            return self._classifier.predict_proba(
                order_columns(np.asarray(X), getattr(X, "columns", ()), self.feature_names_in_)
            )
        return super().predict_proba(X)

    def save(self, folder):
        if self.classifier is not None:
            raise NotAvailable(f"a {type(self.classifier).__name__} cannot be kept without pickle")
        super().save(folder)

    def warm_up(self):
        super().warm_up()
        if self.multiclass == "exact" or self.classifier is not None:
            class_posteriors(np.full((3, 3), np.log(1 / 3)), [0, 3], np.ones((1, 3), np.int64))


class NormalApproximationClassifier(CardinalityClassifier):
    """The same likelihood with a bag's count taken as normal (Rosenman and Viswanathan 2018), one class against the rest.

    Parameters as in `CardinalityClassifier`.
    """

    infer = staticmethod(normal)

    def __init__(
        self,
        l2: Penalty = "held_out",
        max_iter: Count = 100,
        tol: NonNegative = 1e-4,
        n_bags: Count | None = None,
        random_state=None,
    ):
        super().__init__("ovr", "scoring", None, l2, max_iter, tol, n_bags, random_state)


def _score(bags: Bags, theta: np.ndarray) -> float:
    p = probabilities(scores(as_single(bags.X), theta), bags.counts.shape[1])
    return counts_likelihood(p, bags.offsets, bags.counts)
