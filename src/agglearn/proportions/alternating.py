"""Alternating mean map: labels and weights in turn (Patrini et al. 2014, Algorithm 1)."""

from typing import Literal

import numpy as np

from agglearn.linear.softmax import LogisticProblem, as_single, scores
from agglearn.observations import Bags
from agglearn.progress import track
from agglearn.proportions.base import BagClassifier, Penalty, Solver, counts_of, one_vs_rest_counts
from agglearn.proportions.kernels import label_highest
from agglearn.proportions.means import mean_embedding, mean_map_solver
from agglearn.settings import Count, NonNegative

SHORT = 3  # iterations of a fit whose labels will change again


class AlternatingMeanMapClassifier(BagClassifier):
    """Labels that agree with counts and their logistic regression in turn, one against the rest for C > 2 classes.

    Parameters
    ----------
    labels : {'min', 'max'}
        Labels of least loss (the instances of highest score in a bag are positive), or of greatest loss.
    start, l2 : {'mean_embedding', 'mean_map', 'zero'}, float or 'held_out'
        Initial weights (the thesis: the mean embedding's), and λ as in `CardinalityClassifier`.
    max_iter, tol : int, float
        Largest number of rounds. The last one changes no more than this fraction of the labels. The least loss wins.
    random_state, n_bags : see `MeanEmbeddingClassifier`

    Attributes
    ----------
    losses_, l2_ : list of ndarray, list of float
        The penalised loss after every round, and λ, per class.
    """

    labels: Literal["min", "max"] = "min"
    start: Literal["mean_embedding", "mean_map", "zero"] = "mean_embedding"
    l2: Penalty = "held_out"
    max_iter: Count = 20
    tol: NonNegative = 5e-3

    def warm_up(self) -> None:
        super().warm_up()
        label_highest(np.zeros(2), np.array([0, 2]), np.array([1]))

    def _learn(self, bags: Bags) -> np.ndarray:
        bags = bags.drop_zero_weights()
        x = as_single(bags.X)
        rows, self.losses_, self.l2_ = [], [], []
        for c in range(len(self.classes_)) if len(self.classes_) > 2 else [1]:
            counts = one_vs_rest_counts(bags, c)
            binary = Bags(x, bags.offsets, counts)
            start = self._start(binary)

            def solver_on(subset: Bags, start: np.ndarray = start) -> Solver:
                problem, totals = LogisticProblem(as_single(subset.X), subset.offsets), counts_of(subset)[:, 1]
                return lambda value, _: self._alternate(problem.with_l2(value), totals, start)[0]

            l2, _ = self._choose_l2(binary, solver_on)
            theta, losses = self._alternate(LogisticProblem(x, bags.offsets, l2=l2), counts[:, 1], start)
            rows.append(theta)
            self.losses_.append(np.array(losses))
            self.l2_.append(l2)
        return np.concatenate(rows)

    def _start(self, bags: Bags) -> np.ndarray:
        if self.start == "mean_embedding":
            return mean_embedding(bags)
        if self.start == "mean_map":
            return mean_map_solver(bags)(0.5, None)
        return np.zeros((1, bags.X.shape[1] + 1))

    def _alternate(
        self, problem: LogisticProblem, totals: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, list[float]]:
        sign = 1.0 if self.labels == "min" else -1.0
        best, losses, before = theta, [], None
        for _ in track(range(self.max_iter), "alternations"):
            y = label_highest(sign * scores(problem.x, theta)[:, 0], problem.offsets, totals)
            if before is not None and (y != before).mean() <= self.tol:
                break
            moments = problem.moments(np.column_stack([1.0 - y, y]))
            theta, loss = problem.minimise(moments, theta, SHORT)
            losses.append(loss)
            best = theta if loss == min(losses) else best
            before = y
        return problem.minimise(moments, best)[0] if losses[-1] == min(losses) else best, losses
