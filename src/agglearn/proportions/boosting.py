"""Boosted trees on the exact gradient of the likelihood of bags' counts, with or without noise on them."""

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.privacy.mechanisms import Mechanism
from agglearn.progress import track
from agglearn.proportions.base import BagClassifier
from agglearn.proportions.count_likelihood import Infer, Posteriors, posteriors_of
from agglearn.saving import check_classes, expect
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, Positive, Range
from agglearn.trees import from_bytes, to_bytes

HELD_OUT = 0.2  # of the bags, by which the number of stages is chosen
PATIENCE = 5  # stages without a gain on held-out bags, after which training stops
TREES, SHRINKAGE = 4, 0.3  # of a stage


class CardinalityBoosting(BagClassifier):
    """Boosted trees that maximise P(counts | features), or P(noisy counts | features) by the law of the noise.

    A stage fits a few trees f to the Newton response (q − p)/(p(1 − p)) with weights p(1 − p), where q are the posteriors
    of the labels given the counts (`cardinality_posterior`). Log-odds then move by learning_rate · η · f with
    η = Σ (q − p) f / Σ_b (Σ_i p(1 − p) f)²/V_b, the maximum along f by the expected information, V_b = Σ p(1 − p) and the
    variance of the noise. A fifth of the bags is held out and chooses the number of stages by the likelihood of its counts
    (of noisy ones the fewest within one standard error of the best). All bags are then fitted with as many.

    Parameters
    ----------
    learning_rate, max_stages, max_leaf_nodes : float, int, int
        Shrinkage of a stage, most stages, and leaves of a tree.
    random_state, n_bags : see `MeanEmbeddingClassifier`
        Seed of the held-out bags.

    Attributes
    ----------
    n_stages_, steps_, base_, width_, trees_ : int, ndarray of shape (n_stages,), float, int, ndarray of shape (n,)
        Stages, learning_rate · η of each, log-odds before them, number of covariates. `trees_` are bytes once the model has been saved or loaded.
    """

    accounts_for_noise = True

    learning_rate: Positive = 0.2
    max_stages: Count = 200
    max_leaf_nodes: Annotated[int, Range(2)] = 15

    def _fit(self, observation: Bags) -> None:
        bags = self._first_bags(observation).drop_zero_weights()
        self.classes_, self.feature_names_in_ = bags.classes, list(bags.names)
        if len(self.classes_) != 2:
            raise DataError(f"CardinalityBoosting learns from counts of two classes, not of {len(self.classes_)}")
        self.width_ = bags.X.shape[1]
        self._binary = [bool(np.isin(column, (0, 1)).all()) for column in bags.X.T]
        order = derive_generator("held-out bags", draw_seed(self.random_state)).permutation(len(bags))
        n = int(HELD_OUT * len(bags))
        self._boost(bags.take(np.sort(order[n:])), bags.take(np.sort(order[:n])) if n else None, self.max_stages)
        if n:
            self._boost(bags, None, self.n_stages_)

    def _boost(self, bags: Bags, held_out: Bags | None, n_stages: int) -> None:
        """Set trees and steps from bags, as many as held-out bags choose where there are any."""
        infer, judge = posteriors_of(bags), posteriors_of(bags if held_out is None else held_out)
        noise = 0.0 if bags.noise is None else Mechanism(bags.noise.mechanism, bags.noise.scale).variance
        rate = np.asarray(bags.uncut_counts)[:, 1].sum() / len(bags.X)
        self.base_ = float(logit(np.clip(rate, 0.5 / len(bags.X), 1 - 0.5 / len(bags.X))))
        score, outside = (np.full(0 if b is None else len(b.X), self.base_) for b in (bags, held_out))
        steps, self._stages = list[float](), list[HistGradientBoostingRegressor]()
        scores = [] if held_out is None else [_posteriors(judge, outside, held_out)[1]]
        for _ in track(range(n_stages), "stages"):
            p = expit(score)
            v, q = np.maximum(p * (1 - p), 1e-6), _posteriors(infer, score, bags)[0][:, 1]
            trees = HistGradientBoostingRegressor(
                max_iter=TREES, learning_rate=SHRINKAGE, max_leaf_nodes=self.max_leaf_nodes, early_stopping=False,
                categorical_features=self._binary, random_state=0,
            ).fit(bags.X, (q - p) / v, sample_weight=v)  # fmt: skip
            f = trees.predict(bags.X)
            along, variance = (np.add.reduceat(a, bags.offsets[:-1]) for a in (v * f, v))
            information = (along**2 / (variance + noise)).sum()
            if not information > 0:
                break
            steps.append(float(self.learning_rate * ((q - p) @ f) / information))
            self._stages.append(trees)
            score += steps[-1] * f
            if held_out is not None:
                outside += steps[-1] * trees.predict(held_out.X)
                scores.append(_posteriors(judge, outside, held_out)[1])
                if len(scores) - 1 - int(np.argmax(np.sum(scores, axis=1))) >= PATIENCE:
                    break
        self.steps_, self.n_stages_ = np.array(steps), len(steps)
        if held_out is not None:
            losses = scores[int(np.argmax(np.sum(scores, axis=1)))] - np.array(scores)
            allowed = losses.std(axis=1) * np.sqrt(losses.shape[1]) if noise else 0.0
            self.n_stages_ = int(np.argmax(losses.sum(axis=1) <= allowed))

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        x = self._ordered(X)
        moves = (step * trees.predict(x) for step, trees in zip(self.steps_, self._stages, strict=True))
        p = expit(sum(moves, start=np.full(len(x), self.base_)))
        return np.column_stack([1 - p, p])

    @property
    def n_features_in_(self) -> int:
        return self.width_

    def pack(self) -> None:
        """Put the trees into `trees_`, which is saved, in the format of skops, of the extra `workflow`."""
        self.trees_ = to_bytes(self._stages)

    def save(self, folder: str | Path) -> None:
        check_is_fitted(self)
        self.pack()
        super().save(folder)

    def _check_state(self) -> None:
        check_classes(self)
        if len(self.classes_) != 2:
            raise ValueError("classes_: must be two")
        expect(self, trees_=("u", (None,)), steps_=("f", (self.n_stages_,)), base_=float, n_stages_=int, width_=int)
        self._stages = from_bytes(self.trees_, self.width_, HistGradientBoostingRegressor)


def _posteriors(infer: Infer, score: np.ndarray, bags: Bags) -> Posteriors:
    p = expit(score)
    return infer(score[:, None], np.column_stack([1 - p, p]), bags.offsets, np.asarray(bags.counts))
