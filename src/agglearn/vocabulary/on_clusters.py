"""A quantiser, then a classifier on its clusters (Bateni et al. 2019, section 3.2). JAX is imported when needed."""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from agglearn.estimator import StagedClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.networks import start_jax
from agglearn.observations import ContingencyTables, Records
from agglearn.progress import track
from agglearn.seeds import derive_generator, derive_seed, draw_seed, split_validation
from agglearn.settings import Count, Part, Positive
from agglearn.vocabulary.quantizer import Quantizer, look_up

ROWS = 1 << 14  # predicted at a time
Weights = dict[str, np.ndarray]
Rows = tuple[np.ndarray, np.ndarray]  # clusters of each record, numbered over all features, and labels


def draw_settings(trial: int, rng: np.random.Generator) -> dict[str, Any]:
    """From the ranges of Bateni et al. 2019, appendix A.2. The first trial has plain settings.

    They are hidden units and layers, learning `rate`, norm `clip` of clipped gradients, and weight `l2`.
    """
    if trial == 0:
        return {"hidden": 128, "layers": 2, "rate": 1e-3, "clip": 10.0, "l2": 1e-6}
    return {
        "hidden": int(rng.integers(100, 1281)),
        "layers": int(rng.integers(1, 6)),
        "rate": float(10 ** rng.uniform(-6, -2)),
        "clip": float(10 ** rng.uniform(0, 3)),
        "l2": float(rng.uniform(0, 1e-4)),
    }


class ClusterClassifier(StagedClassifier):
    """Base of learners that predict with the best candidate on validation rows, which it is not fitted to again."""

    observes = Records
    quantizer: Quantizer
    _: KW_ONLY
    validation: Part = 0.2

    def _fit(self, observation: Records) -> None:
        codes, y = observation.codes, np.asarray(observation.y)
        rng = derive_generator("validation", draw_seed(self.random_state))
        validation, training = split_validation(len(y), self.validation, rng)
        tables = ContingencyTables.from_codes(observation.encoder, codes[training], y[training], pairs="none")
        state = derive_seed("quantizer", draw_seed(self.random_state))
        self.quantizer_ = clone(self.quantizer).set_params(random_state=state).fit(tables)
        self._set_encoder(observation.encoder)
        self.sizes_ = [max(int(self.quantizer_.labels_[n].max()), u) + 1 for n, u in self.quantizer_.unseen_.items()]
        positions = self._positions(codes)
        learned, held_out = ((positions[rows], y[rows]) for rows in (training, validation))
        self.tries_ = list(self._candidates(learned, held_out))
        predictions = [self._probabilities(candidate, held_out[0]) for candidate in self.tries_]
        self.scores_ = np.array([log_likelihood(held_out[1], p) for p in predictions])
        self.best_ = choose_best(self.scores_)

    def _candidates(self, training: Rows, validation: Rows) -> Iterator[Any]:
        raise NotImplementedError

    def _probabilities(self, candidate: Any, positions: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _positions(self, codes: np.ndarray) -> np.ndarray:
        return look_up(self.quantizer_, codes.T) + np.cumsum([0, *self.sizes_[:-1]])

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self._probabilities(self.tries_[self.best_], self._positions(self.encoder_.encode(X)))

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        # a stage is a candidate
        positions = self._positions(self.encoder_.encode(X))
        for number, candidate in enumerate(self.tries_):
            yield number, float("nan"), self._probabilities(candidate, positions)


class LogisticOnClusters(ClusterClassifier):
    """L2 logistic regression on the clusters, one weight each (scikit-learn, sparse).

    Parameters
    ----------
    quantizer, l2, max_iter : Quantizer, sequence of float, int
        Values of λ in λ‖θ‖², added to the sum of the negative log-likelihoods, and iterations of each fit.
    random_state, validation : int or None, float
        Seed of the choice of the records that choose among the λs, and of the quantiser, and the fraction of these
        records, which the clusters are not fitted to.

    Attributes
    ----------
    quantizer_, tries_, sizes_ : Quantizer, list, list
        (weights, intercept) of each λ, and number of clusters of each feature.
    scores_, best_ : ndarray, int
        Mean log-likelihood of the validation rows for each λ, and the index of the λ that predicts.
    """

    l2: tuple[Positive, ...] = (50 / 3, 5.0, 5 / 3)
    max_iter: Count = 100

    def _candidates(self, training: Rows, validation: Rows) -> Iterator[tuple[np.ndarray, float]]:
        positions, y = training
        x = self._one_hot(positions)
        for l2 in self.l2:
            fitted = LogisticRegression(C=1 / (2 * l2), max_iter=self.max_iter).fit(x, y)
            yield fitted.coef_[0], float(fitted.intercept_[0])

    def _probabilities(self, candidate: tuple[np.ndarray, float], positions: np.ndarray) -> np.ndarray:
        weights, intercept = candidate
        return 1 / (1 + np.exp(-(self._one_hot(positions) @ weights + intercept)))

    def _one_hot(self, positions: np.ndarray) -> csr_array:
        n, d = positions.shape
        return csr_array((np.ones(n * d), positions.ravel(), np.arange(0, n * d + 1, d)), (n, sum(self.sizes_)))


class NetworkOnClusters(ClusterClassifier):
    """Embeddings of the clusters, then a multi-layer perceptron, trained with Adam. NotAvailable without JAX.

    Settings are drawn from the paper's ranges (appendix A.2): hidden units 100–1280, hidden layers 1–5, learning rate
    1e-6–0.01 and norm of clipped gradients 1–1000 (both log-uniform), weight decay 0–1e-4. The first trial has plain
    settings. The result of a trial is the epoch that is best on the validation rows. Results do not depend on the
    number of threads.

    Parameters
    ----------
    quantizer, trials, epochs, batch_size, embedding : Quantizer, int, int, int, int
        Number of settings (the paper: 2,000), of passes over the rows, and of rows per step. Width of the embeddings.
    random_state, validation
        As in `LogisticOnClusters`, and so are the attributes `quantizer_`, `scores_`, `best_` and `sizes_`. `tries_`
        and `settings_` have weights by name, and settings, of each trial.
    """

    trials: Count = 4
    epochs: Count = 3
    batch_size: Count = 512
    embedding: Count = 8

    def _fit(self, observation: Records) -> None:
        _jax_modules()  # before any work
        super()._fit(observation)

    def _candidates(self, training: Rows, validation: Rows) -> Iterator[Weights]:
        self.settings_: list[dict[str, Any]] = []
        for trial in track(range(self.trials), "trials"):
            rng = derive_generator("settings", draw_seed(self.random_state), trial)
            self.settings_.append(draw_settings(trial, rng))
            state = derive_seed("network", draw_seed(self.random_state), trial)
            yield self._train(training, validation, self.settings_[-1], state)

    def _train(self, rows: Rows, held_out: Rows, settings: dict[str, Any], state: int) -> Weights:
        """Weights by name after the epoch with the smallest log loss of the validation rows."""
        (modules, training), rng = _jax_modules(), np.random.default_rng(state)
        positions, y = rows[0].astype(np.int32), rows[1].astype(np.float32)
        widths = [self.embedding, *[settings["hidden"]] * settings["layers"]]
        weights = modules.initial(sum(self.sizes_), widths, len(self.sizes_), rng)
        batch = min(self.batch_size, len(y))
        every = len(y) // batch
        schedule = training.Schedule(settings["rate"], settings["clip"], self.epochs * every, every, l2=settings["l2"])
        order = training.draw_batches(len(y), batch, schedule.steps, rng)
        batches = ([(positions[indices], y[indices])] for indices in order)

        def validation_loss(weights: Weights) -> float:
            return float(training.loss_of("log_loss", _log_odds(weights, held_out[0]), held_out[1].astype(np.float32)))

        return training.train(modules.log_odds, weights, batches, validation_loss, "log_loss", schedule, state)[0]

    def _probabilities(self, candidate: Weights, positions: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-_log_odds(candidate, positions)[:, 0].astype(float)))


def _jax_modules() -> tuple[ModuleType, ModuleType]:
    start_jax()
    from agglearn.networks import training
    from agglearn.vocabulary import cluster_network

    return cluster_network, training


def _log_odds(weights: Weights, positions: np.ndarray) -> np.ndarray:
    (modules, training), outputs = _jax_modules(), []
    for start in range(0, len(positions), ROWS):
        block = positions[start : start + ROWS]
        padded = np.zeros((1 << (len(block) - 1).bit_length(), block.shape[1]), np.int32)  # few shapes are compiled
        padded[: len(block)] = block
        outputs.append(np.asarray(training.evaluate(modules.log_odds, weights, padded))[: len(block)])
    return np.concatenate(outputs)
