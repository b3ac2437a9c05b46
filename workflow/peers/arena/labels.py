"""Randomised labels beside public features (Ghazi, Golowich, Kumar, Manurangsi, Zhang 2021)."""

import math
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.special import expit

from agglearn.linear.sum_logistic import Objective
from agglearn.seeds import RandomState, draw_generator
from agglearn.settings import Positive
from arena.records import LinearRival, PrivateRecords, choose_by_public

PENALTIES = [4.0**k for k in range(-1, 7)]


class RandomisedResponse(LinearRival):
    """Labels by randomised response, with a prior from an earlier stage, and a logistic regression on them.

    The guarantee is (ε, 0) for one label exchanged. Features are public. A randomised label is made unbiased before it
    is learned from, and λ is chosen by public records, both in favour of the method.

    Parameters
    ----------
    stages, l2, random_state : int, list of float or None, int or None
        With 2, a regression on half of the records is the prior of the labels of the other half (LP-2ST). Values of λ
        to try, by default powers of 4.
    """

    stages: Literal[1, 2] = 2
    l2: list[Positive] | None = None
    random_state: RandomState = None

    def _fit(self, observation: PrivateRecords) -> None:
        mapped, rng = self._set_map(observation.encoder), draw_generator(self.random_state)
        x, public, y = mapped.matrix(observation.frame), mapped.matrix(observation.public_frame), observation.y
        targets, part = np.zeros(len(y)), rng.integers(self.stages, size=len(y))
        for stage in range(self.stages):
            rows = np.flatnonzero(part == stage)
            prior = np.full(len(rows), 0.5) if stage == 0 else expit(x[rows] @ self.coef_)
            targets[rows] = respond(y[rows], prior, observation.epsilon, rng)
            known = np.flatnonzero(part <= stage)
            fits = {l2: regress(x[known], targets[known], l2) for l2 in self.l2 or PENALTIES}
            self.l2_ = choose_by_public(observation, list(fits), lambda l2, _, fits=fits: expit(public @ fits[l2]))
            self.coef_ = fits[self.l2_]


def respond(y: np.ndarray, prior: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) the likelier label where its prior exceeds the chance of a true response, else an unbiased response."""
    truthful = 1 / (1 + math.exp(-epsilon))
    response = np.where(rng.random(len(y)) < truthful, y, 1 - y)
    unbiased = (response - (1 - truthful)) / (2 * truthful - 1)
    return np.where(np.maximum(prior, 1 - prior) > truthful, prior > 0.5, unbiased)


def regress(x: sparse.csr_array, targets: np.ndarray, l2: float) -> np.ndarray:
    """(k,) θ at the minimum of Σ ln(1 + e^{xθ}) − t xθ + λ‖θ‖² without the intercept, which is last."""
    penalty = np.append(np.full(x.shape[1] - 1, l2), 0.0)
    return Objective(x, np.ones(x.shape[0]), x.T @ targets, penalty).minimum("lbfgs", 200, 1e-5)[0]
