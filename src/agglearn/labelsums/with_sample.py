"""Tables and a small sample of records: a model of the tables, corrected by regressions and trees on the sample, averaged."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit, logit, softmax
from sklearn.base import clone

from agglearn.encoding import BinnedEncoder, CategoricalEncoder, FeatureMap, FrameEncoder, HashedEncoder
from agglearn.encoding.frame import CodesEncoder, FeatureEncoder
from agglearn.estimator import Estimator, MetaEstimator, RecordClassifier, predict_codes
from agglearn.labelsums.baselines import BoostedTreesSkyline
from agglearn.labelsums.raking import Margins
from agglearn.linear.sum_logistic import Objective
from agglearn.observations import ContingencyTables, Records, TablesAndSample
from agglearn.observations.consistency import noise_variances
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
RECORDS = 300  # √n times the records that the prior of stacking counts for: 30 beside a sample of a hundred
ROUNDS, SETTLED = 500, 1e-5  # of stacking, and the change of weights that ends them
LEAST = 1e-3  # weight of a candidate, below which it is left out
LEAST_VARIANCE = 1e-3  # of the log-odds of a feature's values
JOINT, ON_TABLES, ALONE = "tables and sample", "trees on tables", "trees"  # besides corrections of the tables


class TablesAndSampleClassifier(MetaEstimator, RecordClassifier):
    """Mean of candidates: a model of the tables with log-odds m(x), its corrections on a sample, one of both, and trees.

    A correction is m + b·(m − m̄)/s + c·(e − ē)/s' + w·φ(x) + a with one coordinate of φ per modality, and the sum e of target
    encodings of the values (`target_encoding`). m̄, ē, s and s' are means and standard deviations. a, b, c and w minimise
    −log-likelihood + λ(a² + b² + c² + ‖w‖²) of the sample, and of the raked sample. There is one for each of eight λ. Records
    of the raked sample have the weights closest to equal ones with which it agrees with the tables of single features, within
    their noise (`agglearn.labelsums.raking`). Boosted trees have m and e as further features,
    and values without an order in that of their encodings, or do without. The weights of candidates are
    the mean of those of pseudo-BMA+ and of stacking (Yao et al. 2018), from the losses of held-out records of the sample.

    Parameters
    ----------
    base, joint, trees : Estimator, Estimator or None, bool
        Learner from tables, one from tables and sample together, such as `agglearn.maxent.JointMaxEntClassifier`, and
        whether trees are candidates. They need a sample with two records of each label per fold.
    prior, folds : float, int
        Weight of the tables before the sample is seen, of which `joint` has one half, and folds of the
        cross-validation.
    random_state : int, RandomState, Generator or None
        Seed of the base, the folds, the bootstrap and the trees.

    Attributes
    ----------
    candidates_, weights_, scores_ : list of str, ndarray of shape (C,), ndarray of shape (C,)
        Their weights, and their mean log-likelihoods of held-out records of the sample.
    coef_, encoding_ : ndarray of shape (corrections, 3 + k), ndarray of shape (k,)
        b, c, w and a of the tables alone (zeros) and of each correction, and the target encodings.
    location_, spread_ : ndarray of shape (2,)
        m̄ and ē, s and s'.
    model_, joint_, trees_on_tables_, trees_alone_ : Estimator, the others Estimator or None
        The base, fitted to the tables, and those of tables and sample, and trees, that have a weight.
    """

    observes = TablesAndSample
    joint: Estimator | None = None
    trees: bool = True
    prior: Part = 0.85
    folds: Count = 5

    def _fit(self, observation: TablesAndSample) -> None:
        self._check_base(observation.tables)
        seed, codes, y = draw_seed(self.random_state), observation.sample.codes, np.asarray(observation.sample.y, float)
        self._set_encoder(observation.tables.encoder)
        self.model_ = clone(self.base).set_params(random_state=seed).fit(observation.tables)
        self.encoding_ = target_encoding(observation.tables)
        scores = self._scores(codes)
        self.location_, self.spread_ = scores.mean(axis=0), np.maximum(scores.std(axis=0), CERTAIN)
        sample = Sample(codes, scores, self._coordinates(codes, scores), y, Margins.of(observation.tables, codes, y))
        logistic = [f"logistic, λ {l2:g}" for l2 in STRENGTHS]
        self.candidates_ = ["tables", *logistic, *(f"raked {name}" for name in logistic)]
        self.candidates_ += [JOINT] if self.joint is not None else []
        trees = self.trees and min(y.sum(), (1 - y).sum()) >= RARE * self.folds
        self.candidates_ += [ON_TABLES, ALONE] if trees else []
        losses = self._held_out(observation, sample, seed)
        bootstrap = derive_generator("bootstrap", seed)
        self.scores_, self.weights_ = -losses.mean(axis=0), candidate_weights(losses, self._prior_weights(), bootstrap)
        self.coef_ = sample.corrections()
        chosen = {name for name, weight in zip(self.candidates_, self.weights_, strict=True) if weight}
        self.joint_ = self._fit_joint(observation, seed) if JOINT in chosen else None
        self.trees_on_tables_ = self._fit_trees(sample, seed, True) if ON_TABLES in chosen else None
        self.trees_alone_ = self._fit_trees(sample, seed, False) if ALONE in chosen else None

    def _prior_weights(self) -> np.ndarray:
        """(candidates,) `prior` for the tables and the model of tables and sample in even shares, the others likewise."""
        is_first = np.isin(self.candidates_, ["tables", JOINT])
        return np.where(is_first, self.prior / is_first.sum(), (1 - self.prior) / (~is_first).sum())

    def _fit_joint(self, observation: TablesAndSample, seed: int) -> Estimator:
        return clone(self.joint).set_params(random_state=seed).fit(observation)

    def _held_out(self, observation: TablesAndSample, sample: "Sample", seed: int) -> np.ndarray:
        """(n, candidates) losses of records outside the fit."""
        n, losses = len(sample.y), np.empty((len(sample.y), len(self.candidates_)))
        order = derive_generator("folds", seed).permutation(n)
        fold = np.empty(n, int)
        fold[order[np.argsort(sample.y[order], kind="stable")]] = np.arange(n) % min(self.folds, n)  # of equal rates
        for k in track(range(fold.max() + 1), "folds"):
            inside, outside = sample.take(fold != k), sample.take(fold == k)
            z = [outside.scores[:, :1] + outside.x @ inside.corrections().T]
            if JOINT in self.candidates_:
                joint = self._fit_joint(take(observation, fold != k), seed)
                z.append(log_odds(predict_codes(joint, outside.codes))[:, None])
            for on_tables in (True, False) if ALONE in self.candidates_ else ():
                trees = self._fit_trees(inside, seed, on_tables)
                z.append(log_odds(self._predict_trees(trees, outside.codes, outside.scores))[:, None])
            held_out = np.hstack(z)
            losses[fold == k] = np.logaddexp(0, held_out) - outside.y[:, None] * held_out
        return losses

    def _modalities(self, codes: np.ndarray) -> sparse.csr_array:
        return FeatureMap("onehot", CodesEncoder(self.encoder_.features), intercept=False).matrix(codes)

    def _scores(self, codes: np.ndarray) -> np.ndarray:
        """(n, 2) log-odds of the model of the tables, and sums of encodings."""
        return np.column_stack([log_odds(predict_codes(self.model_, codes)), self._modalities(codes) @ self.encoding_])

    def _coordinates(self, codes: np.ndarray, scores: np.ndarray) -> sparse.csr_array:
        """(n, 3 + k) standardised scores, modalities, and one."""
        standardised = (scores - self.location_) / self.spread_
        return sparse.hstack([standardised, self._modalities(codes), np.ones((len(codes), 1))], format="csr")

    def _fit_trees(self, sample: "Sample", seed: int, on_tables: bool) -> BoostedTreesSkyline:
        features, codes = self.encoder_.features, sample.codes
        if on_tables:
            features = tuple(BinnedEncoder(f.name, tuple(range(1, f.size))) if _unordered(f) else f for f in features)
            for column, name in zip(sample.scores.T, ("log-odds", "encodings"), strict=True):
                while name in self.encoder_.names:
                    name += "_"
                edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
                features = (*features, BinnedEncoder(name, tuple(edges.tolist())))
            codes = self._codes_on_tables(codes, sample.scores, features)
        frame = pd.DataFrame(codes, columns=[f.name for f in features])
        trees = BoostedTreesSkyline(random_state=seed).fit(Records(CodesEncoder(features), frame, sample.y))
        trees.encoder_ = FrameEncoder(features)
        return trees

    def _codes_on_tables(self, codes: np.ndarray, scores: np.ndarray, features: tuple) -> np.ndarray:
        """(n, D + 2) codes, of values without an order their ranks by encoding, with the bins of scores (n, 2) last."""
        ranked, starts = codes.copy(), self.encoder_.offsets
        for i, feature in enumerate(self.encoder_.features):
            if _unordered(feature):
                ranks = np.argsort(np.argsort(self.encoding_[starts[i] : starts[i + 1]], kind="stable"))
                ranked[:, i] = np.where(codes[:, i] < 0, -1, ranks[codes[:, i]])
        bins = (feature.encode(pd.Series(score)) for feature, score in zip(features[-2:], scores.T, strict=True))
        return np.column_stack([ranked, *bins])

    def _predict_trees(self, trees: BoostedTreesSkyline, codes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        features = trees.encoder_.features
        on_tables = len(features) > codes.shape[1]
        return predict_codes(trees, self._codes_on_tables(codes, scores, features) if on_tables else codes)

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        codes, used = self.encoder_.encode(X), np.flatnonzero(self.weights_[: len(self.coef_)])
        scores = self._scores(codes)
        p = expit(scores[:, :1] + self._coordinates(codes, scores) @ self.coef_[used].T) @ self.weights_[used]
        weights = dict(zip(self.candidates_, self.weights_, strict=True))
        if self.joint_ is not None:
            p += weights[JOINT] * predict_codes(self.joint_, codes)
        for name, trees in ((ON_TABLES, self.trees_on_tables_), (ALONE, self.trees_alone_)):
            if trees is not None:
                p += weights[name] * self._predict_trees(trees, codes, scores)
        return p

    def save(self, folder: Path | str) -> None:
        for trees in (vars(self).get("trees_on_tables_"), vars(self).get("trees_alone_")):
            if trees is not None:
                trees.pack()
        super().save(folder)

    def _check_state(self) -> None:
        super()._check_state()
        k, c = int(self.encoder_.sizes.sum()), len(self.candidates_)
        expect(self, location_=("f", (2,)), spread_=("f", (2,)), encoding_=("f", (k,)), coef_=("f", (None, 3 + k)))
        expect(self, weights_=("f", (c,)), scores_=("f", (c,)))


class Sample(NamedTuple):
    codes: np.ndarray  # (n, D)
    scores: np.ndarray  # (n, 2) log-odds of the model of the tables, and sums of encodings
    x: sparse.csr_array  # (n, k) coordinates
    y: np.ndarray  # (n,) labels
    margins: Margins

    def take(self, rows: np.ndarray) -> Self:
        rows = np.flatnonzero(rows)
        codes, scores, x, y, margins = self
        return type(self)(codes[rows], scores[rows], x[rows], y[rows], margins.take(rows))

    def corrections(self) -> np.ndarray:
        """(1 + 2 strengths, k) coordinates' weights: zeros, and those that minimise −log-likelihood + λ‖θ‖², raked last."""
        k, rows = self.x.shape[1], [np.zeros(self.x.shape[1])]
        for weights in (np.ones(len(self.y)), self.margins.weights()):
            sums = self.x.T @ (weights * self.y)
            problems = (Objective(self.x, weights, sums, np.full(k, l2), self.scores[:, 0]) for l2 in STRENGTHS)
            rows += [problem.minimum("newton", 100, 1e-5)[0] for problem in problems]
        return np.vstack(rows)


def take(observation: TablesAndSample, rows: np.ndarray) -> TablesAndSample:
    """The same tables, with some rows (n,) of the sample."""
    sample = observation.sample
    return TablesAndSample(observation.tables, replace(sample, frame=sample.frame[rows], y=np.asarray(sample.y)[rows]))


def target_encoding(tables: ContingencyTables) -> np.ndarray:
    """(k,) log-odds that each value alone adds to those of the rate r: posterior means, to first order, 0 without a table.

    A value with count d and label sum c has c − rd ~ N(hθ, h + (1 + r²)σ²) with h = r(1 − r)d and θ ~ N(0, τ²). Moments of
    the feature's values give τ².
    """
    rate, noise, encoding = tables.positives / tables.total, noise_variances(tables), []
    for i, size in enumerate(tables.encoder.sizes):
        if (i,) not in tables.tables:
            encoding.append(np.zeros(size))
            continue
        counts, sums = tables.dense(i)
        residual, h = sums - rate * counts, rate * (1 - rate) * np.maximum(counts, 0)
        variance = h + (1 + rate**2) * noise[i,]
        prior = max((residual**2 - variance).sum() / max((h**2).sum(), CERTAIN), LEAST_VARIANCE)
        encoding.append(prior * h * residual / np.maximum(prior * h**2 + variance, CERTAIN))
    return np.concatenate(encoding)


def _unordered(feature: FeatureEncoder) -> bool:
    return isinstance(feature, CategoricalEncoder | HashedEncoder)


def log_odds(p: np.ndarray) -> np.ndarray:
    return logit(np.clip(p, CERTAIN, 1 - CERTAIN))


def candidate_weights(losses: np.ndarray, prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(candidates,) mean of the weights of pseudo-BMA+ and of stacking, by (n, candidates) losses and prior weights.

    The first chooses better by few records, the second mixes better by many. Weights below `LEAST` become 0.
    """
    weights = (posterior_weights(losses, prior, rng) + stacking_weights(losses, prior)) / 2
    weights[weights < LEAST] = 0
    return weights / weights.sum()


def posterior_weights(losses: np.ndarray, prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mean of posteriors, tempered by one half, in a Bayesian bootstrap (pseudo-BMA+, Yao et al. 2018)."""
    n = len(losses)
    sums = n * np.array([rng.dirichlet(np.ones(n)) @ losses for _ in range(DRAWS)])
    return softmax(np.log(prior) - TEMPER * sums, axis=1).mean(axis=0)


def stacking_weights(losses: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Maximum of Σ_i log Σ_k w_k exp(−loss_ik) + `RECORDS` / √n · Σ_k prior_k log w_k, by EM."""
    likelihood, weights = np.exp(losses.min(axis=1, keepdims=True) - losses), prior
    for _ in range(ROUNDS):
        joint = likelihood * weights
        counts = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + RECORDS / np.sqrt(len(losses)) * prior
        before, weights = weights, counts / counts.sum()
        if np.abs(weights - before).max() < SETTLED:
            break
    return weights
