"""Tables and a small sample of records: a model of the tables, corrected by regressions and trees on the sample, averaged."""

from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit, logit, softmax
from sklearn.base import clone

from agglearn.encoding import BinnedEncoder, FeatureMap, FrameEncoder
from agglearn.encoding.frame import CodesEncoder
from agglearn.estimator import MetaEstimator, RecordClassifier, predict_codes
from agglearn.labelsums.baselines import BoostedTreesSkyline
from agglearn.linear.sum_logistic import Objective
from agglearn.observations import Records, TablesAndSample
from agglearn.progress import track
from agglearn.saving import expect
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, Part

STRENGTHS = tuple(2.0**k for k in range(10, -5, -2))  # λ, from strong to weak
CERTAIN = 1e-9  # least distance of a probability from 0 and 1
BINS = 64  # of the tables' log-odds, for trees
RARE = 2  # records of each label per fold, below which trees have too few to stop early
DRAWS = 500  # of the Bayesian bootstrap
TEMPER = 0.5  # power of the likelihood of held-out records: folds share their records, and few records decide too much
LEAST = 1e-3  # weight of a candidate, below which it is left out


class TablesAndSampleClassifier(MetaEstimator, RecordClassifier):
    """Mean of candidates: a model of the tables with log-odds m(x), its corrections on a sample, and trees on the sample.

    A correction is m + b·(m − m̄)/s + w·φ(x) + a with one coordinate of φ per modality, m̄ and s mean and standard deviation
    of m. a, b and w minimise −log-likelihood of the sample + λ(a² + b² + ‖w‖²). There is one for each of eight λ. Boosted
    trees have m as one more feature, or do without. Weights are those of pseudo-BMA+ (Yao et al. 2018), from the losses
    of held-out records of the sample in a Bayesian bootstrap, with half of each loss.

    Parameters
    ----------
    base, trees : Estimator, bool
        Learner from tables, and whether trees are candidates. They need a sample with two records of each label per fold.
    prior, folds : float, int
        Weight of the tables alone before the sample is seen, and folds of the cross-validation.
    random_state : int, RandomState, Generator or None
        Seed of the base, the folds, the bootstrap and the trees.

    Attributes
    ----------
    candidates_, weights_, scores_ : list of str, ndarray of shape (C,), ndarray of shape (C,)
        Their weights, and their mean log-likelihoods of held-out records of the sample.
    coef_, location_, spread_ : ndarray of shape (corrections, 2 + k), float, float
        b, w and a of the tables alone (zeros) and of each correction, m̄ and s.
    model_, trees_on_tables_, trees_alone_ : Estimator, Estimator or None, Estimator or None
        The base, fitted to the tables, and trees that have a weight.
    """

    observes = TablesAndSample
    trees: bool = True
    prior: Part = 0.8
    folds: Count = 5

    def _fit(self, observation: TablesAndSample) -> None:
        self._check_base(observation.tables)
        seed, codes, y = draw_seed(self.random_state), observation.sample.codes, np.asarray(observation.sample.y, float)
        self._set_encoder(observation.tables.encoder)
        self.model_ = clone(self.base).set_params(random_state=seed).fit(observation.tables)
        m = log_odds(predict_codes(self.model_, codes))
        self.location_, self.spread_ = float(m.mean()), float(max(m.std(), CERTAIN))
        sample = Sample(codes, m, self._coordinates(codes, m), y)
        self.candidates_ = ["tables", *(f"logistic, λ {l2:g}" for l2 in STRENGTHS)]
        trees = self.trees and min(y.sum(), (1 - y).sum()) >= RARE * self.folds
        self.candidates_ += ["trees on tables", "trees"] if trees else []
        losses = self._held_out(sample, seed)
        bootstrap = derive_generator("bootstrap", seed)
        self.scores_, self.weights_ = -losses.mean(axis=0), candidate_weights(losses, self.prior, bootstrap)
        self.coef_ = sample.corrections()
        on_tables, alone = self.weights_[-2:] > 0 if trees else (False, False)
        self.trees_on_tables_ = self._fit_trees(sample, seed, True) if on_tables else None
        self.trees_alone_ = self._fit_trees(sample, seed, False) if alone else None

    def _held_out(self, sample: "Sample", seed: int) -> np.ndarray:
        """(n, candidates) losses of records outside the fit."""
        n, losses = len(sample.y), np.empty((len(sample.y), len(self.candidates_)))
        order = derive_generator("folds", seed).permutation(n)
        fold = np.empty(n, int)
        fold[order[np.argsort(sample.y[order], kind="stable")]] = np.arange(n) % min(self.folds, n)  # of equal rates
        for k in track(range(fold.max() + 1), "folds"):
            inside, outside = sample.take(fold != k), sample.take(fold == k)
            z = [outside.m[:, None] + outside.x @ inside.corrections().T]
            for on_tables in (True, False) if "trees" in self.candidates_ else ():
                z.append(log_odds(outside.predict(self._fit_trees(inside, seed, on_tables), on_tables))[:, None])
            held_out = np.hstack(z)
            losses[fold == k] = np.logaddexp(0, held_out) - outside.y[:, None] * held_out
        return losses

    def _coordinates(self, codes: np.ndarray, m: np.ndarray) -> sparse.csr_array:
        """(n, 2 + k) standardised log-odds, modalities, and one."""
        modalities = FeatureMap("onehot", CodesEncoder(self.encoder_.features)).matrix(codes)
        return sparse.hstack([((m - self.location_) / self.spread_)[:, None], modalities], format="csr")

    def _fit_trees(self, sample: "Sample", seed: int, on_tables: bool) -> BoostedTreesSkyline:
        features, codes = self.encoder_.features, sample.codes
        if on_tables:
            name = "log-odds"
            while name in self.encoder_.names:
                name += "_"
            edges = np.unique(np.quantile(sample.m, np.linspace(0, 1, BINS + 1)[1:-1]))
            features = (*features, BinnedEncoder(name, tuple(edges.tolist())))
            codes = with_bins(codes, sample.m, features)
        frame = pd.DataFrame(codes, columns=[f.name for f in features])
        trees = BoostedTreesSkyline(random_state=seed).fit(Records(CodesEncoder(features), frame, sample.y))
        trees.encoder_ = FrameEncoder(features)
        return trees

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        codes, used = self.encoder_.encode(X), np.flatnonzero(self.weights_[: len(self.coef_)])
        m = log_odds(predict_codes(self.model_, codes))
        sample = Sample(codes, m, self._coordinates(codes, m), np.zeros(len(m)))
        p = expit(m[:, None] + sample.x @ self.coef_[used].T) @ self.weights_[used]
        for trees, weight in zip(
            (self.trees_on_tables_, self.trees_alone_), self.weights_[len(self.coef_) :], strict=False
        ):
            if trees is not None:
                p += weight * sample.predict(trees, trees is self.trees_on_tables_)
        return p

    def save(self, folder: Path | str) -> None:
        for trees in (vars(self).get("trees_on_tables_"), vars(self).get("trees_alone_")):
            if trees is not None:
                trees.pack()
        super().save(folder)

    def _check_state(self) -> None:
        super()._check_state()
        k, c = 2 + int(self.encoder_.sizes.sum()), len(self.candidates_)
        expect(self, location_=float, spread_=float, coef_=("f", (None, k)), weights_=("f", (c,)), scores_=("f", (c,)))


class Sample(NamedTuple):
    codes: np.ndarray  # (n, D)
    m: np.ndarray  # (n,) log-odds of the model of the tables
    x: sparse.csr_array  # (n, k) coordinates
    y: np.ndarray  # (n,) labels

    def take(self, rows: np.ndarray) -> Self:
        return self._replace(codes=self.codes[rows], m=self.m[rows], x=self.x[np.flatnonzero(rows)], y=self.y[rows])

    def corrections(self) -> np.ndarray:
        """(1 + strengths, k) coordinates' weights: zeros, then those that minimise −log-likelihood + λ‖θ‖²."""
        n, k = self.x.shape
        sums = self.x.T @ self.y
        problems = (Objective(self.x, np.ones(n), sums, np.full(k, l2), self.m) for l2 in STRENGTHS)
        return np.vstack([np.zeros(k), *(problem.minimum("newton", 100, 1e-5)[0] for problem in problems)])

    def predict(self, trees: BoostedTreesSkyline, on_tables: bool) -> np.ndarray:
        return predict_codes(trees, with_bins(self.codes, self.m, trees.encoder_.features) if on_tables else self.codes)


def with_bins(codes: np.ndarray, m: np.ndarray, features: tuple) -> np.ndarray:
    """(n, D + 1) codes with the bins of m (n,) by the last feature."""
    return np.column_stack([codes, features[-1].encode(pd.Series(m))])


def log_odds(p: np.ndarray) -> np.ndarray:
    return logit(np.clip(p, CERTAIN, 1 - CERTAIN))


def candidate_weights(losses: np.ndarray, prior: float, rng: np.random.Generator) -> np.ndarray:
    """(candidates,) weights by (n, candidates) losses: means of posteriors, tempered by one half, in a Bayesian bootstrap.

    The first candidate has the prior weight, the others share the rest. Weights below `LEAST` become 0.
    """
    n, others = len(losses), losses.shape[1] - 1
    log_prior = np.log(np.append(prior, np.full(others, (1 - prior) / others)))
    sums = n * np.array([rng.dirichlet(np.ones(n)) @ losses for _ in range(DRAWS)])
    weights = softmax(log_prior - TEMPER * sums, axis=1).mean(axis=0)
    weights[weights < LEAST] = 0
    return weights / weights.sum()
