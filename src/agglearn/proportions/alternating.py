"""Alternating mean map: labels and weights in turn (Patrini et al. 2014, Algorithm 1)."""

from typing import Literal

import numpy as np

from agglearn.linear.softmax import Logistic, as_single, scores
from agglearn.observations import Bags
from agglearn.proportions import kernels
from agglearn.proportions.base import BagClassifier, Penalty, choose_l2, counts_likelihood, positives, probabilities
from agglearn.proportions.means import mean_embedding, mean_map
from agglearn.settings import Count, NonNegative

SHORT = 3  # iterations of a fit whose labels will change again


class AlternatingMeanMapClassifier(BagClassifier):
    """Labels that agree with the counts, and the logistic regression of these labels, in turn; one class against the rest.

    Parameters
    ----------
    labels : `min`, the labels of least loss (in every bag the z instances of highest score are positive), or `max`, those
        of greatest loss.
    start : `mean_embedding`, as in the thesis, `mean_map` or `zero`.
    l2 : λ in ½λ‖θ‖²; `held_out` to choose it by the likelihood of held-out bags' counts.
    max_iter, tol : rounds; ends earlier when no more than this share of the labels changes. The weights of least loss are
        kept.
    n_bags : learn from the first so many bags; None for all.
    random_state : seed of the choice of held-out bags.

    Attributes
    ----------
    losses_ : per class, penalised loss after every round. l2_ : λ per class.
    """

    def __init__(
        self,
        labels: Literal["min", "max"] = "min",
        start: Literal["mean_embedding", "mean_map", "zero"] = "mean_embedding",
        l2: Penalty = "held_out",
        max_iter: Count = 20,
        tol: NonNegative = 5e-3,
        n_bags: Count | None = None,
        random_state=None,
    ):
        self.labels = labels
        self.start = start
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.n_bags = n_bags
        self.random_state = random_state

    def warm_up(self):
        super().warm_up()
        top(np.zeros(2), np.array([0, 2]), np.array([1]))

    def _learn(self, bags):
        bags = bags.drop_zero_weights()
        x, wanted = as_single(bags.X), range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        rows, self.losses_, self.l2_ = [], [], []
        for c in wanted:
            part = Bags(x, bags.offsets, positives(bags, c))
            start = self._start(part)

            def fitter(some, start=start):
                problem = Logistic(as_single(some.X), some.offsets)
                return lambda value, last: self._alternate(problem.with_l2(value), some.counts[:, 1], start)[0]

            l2, _ = choose_l2(self.l2, part, fitter, _score, self.random_state)
            theta, losses = self._alternate(Logistic(x, bags.offsets, l2=l2), part.counts[:, 1], start)
            rows.append(theta)
            self.losses_.append(np.array(losses))
            self.l2_.append(l2)
        self._set(np.concatenate(rows))

    def _start(self, bags: Bags) -> np.ndarray:
        if self.start == "mean_embedding":
            return mean_embedding(bags)
        if self.start == "mean_map":
            return mean_map(bags)(1.0, None)
        return np.zeros((1, bags.X.shape[1] + 1))

    def _alternate(self, problem: Logistic, totals: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """(θ of least loss, losses) for (B,) numbers of positives."""
        sign = 1.0 if self.labels == "min" else -1.0
        best, losses, before = theta, [], None
        for _ in range(self.max_iter):
            score = sign * scores(problem.x, theta)[:, 0]
            y = top(score, problem.offsets, totals)
            if before is not None and (y != before).mean() <= self.tol:
                break
            moments = problem.moments(np.column_stack([1.0 - y, y]))
            theta, loss = problem.minimum(moments, theta, SHORT)
            losses.append(loss)
            best = theta if losses[-1] == min(losses) else best
            before = y
        return problem.fit(moments, best) if losses[-1] == min(losses) else best, losses


def top(score: np.ndarray, offsets: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """(n,) 1.0 for the z highest scores of every bag; ties go to the earlier instance."""
    y = np.empty(len(score))
    kernels.highest(score, offsets, np.asarray(totals, np.int64), y)
    return y


def _score(bags: Bags, theta: np.ndarray) -> float:
    p = probabilities(scores(as_single(bags.X), theta), 2)
    return counts_likelihood(p, bags.offsets, bags.counts)
