"""Maximum-entropy classifier from contingency tables, by persistent contrastive divergence (Gilotte et al. 2022)."""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import count, takewhile
from typing import Annotated, Literal, Protocol

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError, NotAvailable
from agglearn.estimator import RecordClassifier, StagedClassifier
from agglearn.linear.penalised import UPPER, IntervalMixin, PenalisedSolution
from agglearn.linear.sparse_logistic import log_odds
from agglearn.maxent import kernels, pcd_step
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.intervals import Evidence, describe_solution, weight_rows
from agglearn.maxent.penalty import Penalty, theta_penalty
from agglearn.maxent.warming import TINY
from agglearn.maxent.weight_index import FIXED_FROM, WeightIndex, cell_positions, count_cells, positions
from agglearn.observations import ContingencyTables
from agglearn.progress import track
from agglearn.saving import expect
from agglearn.seeds import draw_seed
from agglearn.settings import Count, NonNegative, Positive, Range, Share, Whole

MOMENTUM = 0.8
LARGEST_WEIGHT = 1000.0  # keeps any choice of steps finite: weights in practice stay below 20
BURN_IN, SAMPLED = 30, 20  # sweeps before samples count, and sweeps that count
Pair = tuple[np.ndarray, np.ndarray]  # of μ and θ, or of d and c


class Sampler(Protocol):
    n: int

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None: ...

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> Pair: ...


class PairwiseClassifier(IntervalMixin, RecordClassifier):
    mu_: np.ndarray = field(init=False)
    theta_: np.ndarray = field(init=False)
    intercept_: float = field(init=False)

    def _check_state(self) -> None:
        super()._check_state()
        k = int(self.encoder_.sizes.sum())
        expect(self, theta_=("f", (k, k)), mu_=("f", (k, k)), intercept_=float)

    def _solution(self) -> PenalisedSolution:
        index = self._evidence.index
        weights = self.mu_[index.rows, index.columns], self.theta_[index.rows, index.columns]
        l2_theta = index.spread(*self.l2_theta_)
        upper = UPPER if self.l2_theta == "moments" else None
        return describe_solution(self._evidence, weights, self.intercept_, self.l2_mu, l2_theta, upper)

    def _derivatives(self, X: pd.DataFrame | np.ndarray) -> sparse.csr_array:
        rows = weight_rows(self._evidence.index, positions(self.encoder_, X))
        return sparse.hstack([sparse.csr_array(rows.shape), rows], format="csr")

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return expit(kernels.predict_logits(positions(self.encoder_, X), self.theta_, self.intercept_))


class MaxEntClassifier(PairwiseClassifier, StagedClassifier):
    """Pairwise Markov random field over features and label, fitted to contingency tables.

    π(x, y) ∝ exp(φ(x)·(μ + y·θ) + y·b), with one weight per cell of every table (single features and pairs) and b fixed
    at the log-odds of the label. P(Y=1|X=x) = σ(φ(x)·θ + b). Source: Gilotte, Ben Yahmed, Rohde 2022, Algorithm 1.
    `fit(records, y)` counts the tables first.

    Parameters
    ----------
    n_chains : int
        Gibbs chains (n′). About a tenth of the records is enough.
    l2_mu, l2_theta : float, float or (float, float) or str
        λ in λ‖μ‖² and λ‖θ‖², added to the records' negative log-likelihood (eq. 5). That of θ may be two: of weights of
        single features, and of pairs. `moments` estimates both.
    max_iter : int
        Iterations of Algorithm 1 at most. `tol` usually ends it far sooner.
    step_mu, step_theta : float or str, optional
        None: min(10/T, 0.2), min(1.2/T, 0.1) for T tables. If both are, unstable training starts anew at ⅓. `1/T` is
        the step of appendix A.
    momentum : float, optional
        Fraction of the last step on θ that is added to the next. None takes 0.8, or 0 if `step_theta` is given.
    n_sweeps, sampler, n_proposals : int, str, int
        Gibbs sweeps per iteration. `gibbs` or `mh` (Metropolis–Hastings, so many proposals per feature and sweep).
        `auto` takes `mh` for features of 1,000 modalities and more.
    gradient, clip_ratio : str, bool
        On θ: `rescaled` (eq. 6) or `exact` (lemma 2). Only the exact one leads to the optimum where a large `l2_mu`
        keeps d̂ away from d. Whether the larger of d, d̂ is scaled down. If not (as printed), small d̂ amplify noise.
    preconditioner, clip : str, float
        `both` (halves of observed and predicted counts) or `predicted`, as printed. Largest direction, inf for none.
    marginalize_label, average : bool, float
        Whether to sum P(Y=1|x̃) (line 7) or drawn labels. Fraction of the last iterations to average, 0 for the last.
    initial_chains, missing : str
        `marginals` (independent features) or `uniform`. Without a pair's table `train` or `refuse` (DataError).
    rare_cells : str
        `train` all weights, or keep those of rare cells of pairs `fixed`: θ = 0, μ in closed form, where there are fewer
        than four records, and would be if features were independent. `auto` fixes them from 10M cells of all tables on.
    trace_every : int
        Record every so many iterates for `staged_predict_proba`. 0 records none.
    tol : float
        Standard errors of the data per weight at which the mean direction has settled, five times as many if it no
        longer falls. Then iterates are averaged until there are ten times as many samples as records. 0 for never.
    engine : str
        `numba`, `spark` (in the active session, same weights to the bit) or `jax` (same to Monte-Carlo error).
    random_state : int, RandomState, Generator or None
        Seed, or None for a fresh one.

    Attributes
    ----------
    mu_, theta_ : ndarray of shape (K, K)
        Symmetric weights: blocks (i, j) of pairs, diagonal of single features, 0 without a table.
    intercept_, l2_theta_, n_iter_, settled_ : float, (float, float), int, bool
    missing_, misfit_ : list, ndarray of shape (n_iter_, 2)
        Pairs of names without a table. Σ|d̂ − d| / Σd and Σ|ĉ − c| / Σc of each iteration.
    trace_ : list
        (step, seconds, θ of the cells), not saved. θ is the iterate, and once averaging starts, the mean.
    """

    observes = ContingencyTables
    n_chains: Count = 10_000
    l2_mu: NonNegative = 1.0
    l2_theta: Penalty = "moments"
    max_iter: Count = 1000
    step_mu: Literal["1/T"] | Positive | None = None
    step_theta: Literal["1/T"] | Positive | None = None
    momentum: Annotated[float, Range(0, 1, open="high")] | None = None
    n_sweeps: Count = 1
    sampler: Literal["auto", "gibbs", "mh"] = "auto"
    n_proposals: Count = 8
    gradient: Literal["rescaled", "exact"] = "rescaled"
    clip_ratio: bool = True
    preconditioner: Literal["both", "predicted"] = "both"
    clip: Annotated[float, Range(0, open="low", infinite=True)] = 2.0
    marginalize_label: bool = True
    average: Share = 0.3
    initial_chains: Literal["marginals", "uniform"] = "marginals"
    missing: Literal["train", "refuse"] = "train"
    rare_cells: Literal["auto", "train", "fixed"] = "auto"
    trace_every: Whole = 0
    tol: NonNegative = 0.1
    engine: Literal["numba", "spark", "jax"] = "numba"

    def _fit(self, observation: ContingencyTables) -> None:
        names, pairs = observation.names, itertools.combinations(range(len(observation.names)), 2)
        self.missing_ = [(names[i], names[j]) for i, j in pairs if (i, j) not in observation.tables]
        if self.missing_ and self.missing == "refuse":
            first, second = self.missing_[0]
            raise DataError(
                f"{len(self.missing_)} pairs of features have no table, first {first!r} × {second!r}; "
                "aggregate them, or train without (missing='train')"
            )
        index = WeightIndex.from_tables(observation, float(self.l2_mu) if self._fixes_weights(observation) else None)
        self.l2_theta_ = theta_penalty(self.l2_theta, observation)
        seed = np.random.SeedSequence(draw_seed(self.random_state)).generate_state(1, np.uint64)[0]
        self._set_encoder(observation.encoder)
        self._l2_theta = index.spread(*self.l2_theta_)
        self.intercept_ = log_odds(observation.positives, observation.total)
        mu, theta = self._train(index, self._chains(index, int(seed)), observation.total)
        self.mu_, self.theta_, self._index = index.matrix(mu, fixed=True), index.matrix(theta), index
        self._evidence = Evidence.of(index, observation, self.accounts_for_noise)

    def _fixes_weights(self, tables: ContingencyTables) -> bool:
        """DataError where fixed weights are asked for, and cannot be."""
        cannot = {
            "tables with noise have no cells that are known to be empty": tables.noise is not None,
            "hashed pairs share their weights": bool(tables.hashed_pairs),
            "engine='jax' trains all weights": self.engine == "jax",
            "l2_mu=0 leaves no optimum": not self.l2_mu,
        }
        reason = next((why for why, holds in cannot.items() if holds), None)
        if self.rare_cells == "fixed" and reason:
            raise DataError(f"rare_cells='fixed': {reason}; take rare_cells='train'")
        return self.rare_cells == "fixed" or (
            self.rare_cells == "auto" and not reason and count_cells(tables) >= FIXED_FROM
        )

    def warm_up(self) -> None:
        """Compile or load the kernels, so that the time of a fit is that of learning."""
        if self.engine == "numba":
            clone(self).set_params(n_chains=8, max_iter=2).fit(*TINY)

    def _chains(self, index: WeightIndex, seed: int) -> Sampler:
        size, start = int(self.n_chains), self.initial_chains
        arguments = (index, size, self.intercept_, seed, start, self.sampler, self.n_proposals)
        if self.engine == "spark":
            from agglearn.maxent.engines.spark_chains import SparkChains  # PySpark is an optional extra

            return SparkChains(*arguments)
        if self.engine == "jax":
            from agglearn.maxent.engines.jax_chains import JaxChains  # JAX is an optional extra

            return JaxChains(*arguments)
        return Chains(*arguments)

    def _train(self, index: WeightIndex, chains: Sampler, total: float) -> Pair:
        mu, theta, scale = initial_mu(index), np.zeros_like(index.d), total / chains.n
        rule = StoppingRule(self.max_iter, self.average, self.tol, math.ceil(ROUNDS * scale))
        information = index.c * (1 - index.c / np.maximum(index.d, 1.0))
        effective = effective_weights(index.d, self.l2_mu), effective_weights(information, self._l2_theta)
        monitor, (steps, momenta) = DirectionMonitor(effective, len(mu)), self._steps(index.n_tables)
        velocity, work = np.zeros((2, len(mu)), mu.dtype), np.empty((2, 2, len(mu)), mu.dtype)
        clip, size_d, size_c = float(self.clip), np.abs(index.d).sum(), np.abs(index.c).sum()
        started, step, misfit, self.trace_ = time.perf_counter(), 0, [], []
        for step in track(rule.steps(), "training", self.max_iter):  # the last one is used
            chains.set_weights(mu, theta)
            d_hat, c_hat = expected = chains.sweep(step, self.n_sweeps, self.marginalize_label)
            for sums in expected:
                sums *= scale
            misfit.append([pcd_step.distance(d_hat, index.d) / size_d, pcd_step.distance(c_hat, index.c) / size_c])
            gradients, curvatures = self._gradients(index, (mu, theta), expected, work)
            moved = [
                pcd_step.advance(
                    gradients[k], curvatures[k], expected[k], weights, velocity[k], steps[k], momenta[k],
                    monitor.sum[k], clip, LARGEST_WEIGHT,
                )
                for k, weights in enumerate((mu, theta))
            ]  # fmt: skip
            energy, noise = zip(*moved, strict=True)
            systematic = monitor.add(step, curvatures, energy, [scale * n for n in noise])
            if monitor.unstable and self.step_mu is None and self.step_theta is None:
                steps /= 3
                mu, theta = initial_mu(index), np.zeros_like(theta)
                velocity[:] = 0.0
                monitor.restart(step)
            rule.add(step, mu, theta, systematic)
            if self.trace_every and (step % self.trace_every == 0 or step >= rule.last):
                self.trace_.append((step, time.perf_counter() - started, rule.result[1].copy()))
        self.n_iter_, self.misfit_, self.settled_ = step, np.array(misfit), rule.settled
        return rule.result[0], rule.result[1]

    def _steps(self, n_tables: int) -> Pair:
        step_mu, step_theta = (1 / n_tables if step == "1/T" else step for step in (self.step_mu, self.step_theta))
        step_mu = min(10 / n_tables, 0.2) if step_mu is None else step_mu
        if step_theta is not None:
            return np.array([step_mu, step_theta], float), np.array([0.0, self.momentum or 0.0])
        momentum = MOMENTUM if self.momentum is None else float(self.momentum)
        return np.array([step_mu, min((1.2 if momentum else 2.0) / n_tables, 0.1)], float), np.array([0.0, momentum])

    def _gradients(self, index: WeightIndex, weights: Pair, expected: Pair, out: np.ndarray) -> np.ndarray:
        """`out` (2, 2, w) with gradients on μ and θ, and their preconditioners, for expected d̂ and ĉ."""
        choices = self.gradient == "rescaled", bool(self.clip_ratio), self.preconditioner == "both"
        statistics, penalties = (index.d, index.c, *expected, *weights), (float(self.l2_mu), self._l2_theta)
        pcd_step.gradients(*statistics, *penalties, *choices, *out.reshape(4, -1))
        return out

    def held_out_score(self, held_out: ContingencyTables, seed: int = 1, n_chains: int = 2000) -> float:
        """Return the mean log-likelihood of held-out labels, (Σ c·θ + n₁b)/n − E ln(1 + e^{φ(x)·θ + b}).

        Parameters
        ----------
        held_out, seed, n_chains : ContingencyTables, int, int
            Tables of other records, and seed and number of the chains that draw x from the fitted model.
        """
        held_out.refuse_hashed_pairs("the choice by held-out tables")
        mu, theta = (matrix[self._index.rows, self._index.columns] for matrix in (self.mu_, self.theta_))
        chains = Chains(self._index, n_chains, self.intercept_, seed)
        chains.set_weights(mu, theta)
        chains.sweep(1, BURN_IN)
        normaliser = []
        for iteration in range(2, 2 + SAMPLED):
            chains.sweep(iteration)
            logits = kernels.predict_logits(chains.positions.astype(np.int32), self.theta_, self.intercept_)
            normaliser.append(np.logaddexp(0, logits).mean())
        fit = held_out.positives * self.intercept_
        for key, table in held_out.tables.items():
            rows, columns = (r[table.cells] for r in cell_positions(held_out, key))
            fit += table.label_sums @ self.theta_[rows, columns]
        return float(fit / held_out.total - np.mean(normaliser))

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        check_is_fitted(self)
        if not getattr(self, "trace_", None):
            raise NotAvailable("no iterates were recorded: fit with trace_every > 0 (they are not saved with a model)")
        rows = positions(self.encoder_, X)
        for step, seconds, theta in self.trace_:
            yield step, seconds, expit(kernels.predict_logits(rows, self._index.matrix(theta), self.intercept_))


def initial_mu(index: WeightIndex) -> np.ndarray:
    """Return 0 for pairs, centred log counts for single features (independent features)."""
    logs = np.concatenate([np.log(np.maximum(counts, 0.5)) for counts in index.marginals])
    feature = np.repeat(np.arange(len(index.sizes)), index.sizes)
    logs -= (np.bincount(feature, logs) / index.sizes)[feature]
    mu = np.zeros_like(index.d)
    weight_of = index.expand(np.arange(len(mu)))
    mu[weight_of[index.single]] = logs[index.rows[index.single]]
    return mu


# -- when training starts to average, when it stops, and when its steps are too large ---------------------------------

WINDOW = 20  # iterations in the first window (later ones grow with the iterations done)
GROWTH = 0.25
RESTLESS = 6.0  # a step is too large if the variance of directions is as many times that of the chains (otherwise < 5)
NEARLY, STALLED = 5.0, 0.8
ROUNDS = 10  # how often as many chains as records are averaged over, so that chains add 5 % to the data's own error


class DirectionMonitor:
    """Mean directions v = g/h over windows of iterations. Σ h·v̄·v̄′ of two windows estimates what is not noise."""

    def __init__(self, effective: tuple[float, ...], size: int) -> None:
        self.effective, self.size = effective, size
        self.restart(0)

    def restart(
        self, step: int, before: np.ndarray | None = None, unrest: float = math.inf, unstable: bool = False
    ) -> None:
        self.before, self.unrest, self.unstable = before, unrest, unstable
        self.sum, self.energy = (
            np.zeros((len(self.effective), self.size), np.float32),
            np.zeros((len(self.effective), 2)),
        )
        self.first, self.end = step, step + WINDOW

    def add(
        self, step: int, curvatures: Sequence[np.ndarray], energy: Sequence[float], noise: Sequence[float]
    ) -> float | None:
        """Return the largest systematic part plus one standard error of it at the end of a window, else None."""
        self.energy += np.transpose([energy, noise])
        if step < self.end:
            return None
        steps, systematic = step - self.first, None
        mean = self.sum / np.float32(steps)
        if self.before is not None:
            systematic = max(map(self._systematic, mean, self.before, curvatures, self.effective))
        still = [steps * np.sum(curvature * v**2) for v, curvature in zip(mean, curvatures, strict=True)]
        unrest = float(np.max((self.energy[:, 0] - still) / (self.energy[:, 1] + 1e-9)))
        self.restart(step, mean, unrest, unrest > RESTLESS and unrest > 0.7 * self.unrest)
        self.end = step + max(WINDOW, math.ceil(GROWTH * step))
        return systematic

    @staticmethod
    def _systematic(now: np.ndarray, before: np.ndarray, curvature: np.ndarray, effective: float) -> float:
        product = now * before * curvature
        return (product.sum() + math.sqrt(np.sum(product**2))) / effective


class StoppingRule:
    """Running mean `result` of (μ, θ), over `at_least` so many iterations once settled, and the `last` iteration."""

    def __init__(self, max_iter: int, average: float, tol: float, at_least: int = 0) -> None:
        self.average, self.tol, self.at_least = average, tol, at_least
        self.last, self.first = max_iter, math.ceil(max_iter * (1 - average))
        self.settled = False
        self.result: np.ndarray | tuple[np.ndarray, np.ndarray] = np.empty((2, 0))
        self._averaged = 0
        self._history: list[float] = []

    def steps(self) -> Iterator[int]:
        return takewhile(lambda step: step <= self.last, count(1))

    def add(self, step: int, mu: np.ndarray, theta: np.ndarray, systematic: float | None) -> None:
        if step <= self.first:
            self.result = (mu, theta)
            if systematic is not None and self.tol > 0 and self._quiet(systematic):
                self._settle(step)
            return
        self._averaged += 1
        if self._averaged == 1:
            self.result = np.zeros((2, len(theta)), theta.dtype)
        pcd_step.average(self.result[0], mu, self._averaged)
        pcd_step.average(self.result[1], theta, self._averaged)

    def _quiet(self, systematic: float) -> bool:
        """Whether nothing systematic is left, or little that has not fallen by a fifth over two windows."""
        self._history.append(systematic)
        stalled = len(self._history) > 2 and systematic > STALLED * self._history[-3]
        return systematic < self.tol**2 or (stalled and systematic < (NEARLY * self.tol) ** 2)

    def _settle(self, step: int) -> None:
        self.first, self.settled = step, True
        if 0 < self.average < 1:
            remaining = max(self.at_least, math.ceil(step * self.average / (1 - self.average)))
            self.last = min(self.last, step + remaining)
        elif self.average == 0:
            self.last = step


def effective_weights(counts: np.ndarray, l2: float | np.ndarray) -> float:
    """Return the number of weights that the data determine, Σ h/(h + 2λ) over cells with information h, at least 1."""
    h = np.maximum(counts, 0.0)
    return max(float(np.sum(h / (h + 2 * l2 + 1e-9))), 1.0)
