"""Maximum-entropy classifier, trained by persistent contrastive divergence from contingency tables.

Source: Gilotte, Ben Yahmed, Rohde 2022: model eq. 1, prediction eq. 3, training Algorithm 1.
"""

import itertools
import math
import time
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError, NotAvailable
from agglearn.estimator import RecordClassifier
from agglearn.maxent import kernels, pcd_step
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.held_out import label_log_likelihood
from agglearn.maxent.penalty import theta_penalty
from agglearn.maxent.stopping import ROUNDS, DirectionMonitor, Schedule, effective
from agglearn.maxent.warming import tiny_tables
from agglearn.maxent.weight_index import Layout, positions
from agglearn.observations import ContingencyTables
from agglearn.persistence import expect
from agglearn.seeds import draw_seed
from agglearn.settings import Count, NonNegative, Positive, Range, Share, Whole

LARGEST_WEIGHT = 1000.0  # keeps any choice of steps finite; real weights stay below 20
MOMENTUM = 0.8


class MaxEntClassifier(RecordClassifier):
    """Pairwise Markov random field over features and label, fitted to contingency tables.

    π(x, y) ∝ exp(φ(x)·(μ + y·θ) + y·b) with one weight per cell of every table there is (single features and pairs)
    and b fixed at the log-odds of the label; P(Y=1|X=x) = σ(φ(x)·θ + b).

    Parameters
    ----------
    n_chains : Gibbs chains (n′). About a tenth of the records is enough.
    l2_mu, l2_theta : λ in λ‖μ‖² + λ‖θ‖², added to the negative log-likelihood of all records (eq. 5). For θ `moments`
        chooses it from the tables: the weaker the label's dependence on the features there, and the more tables, the
        larger (`agglearn.maxent.penalty`).
    max_iter : iterations of Algorithm 1 at most; `tol` usually ends it far sooner.
    step_mu, step_theta : step sizes; None for min(10/T, 0.2) and min(1.2/T, 0.1) with T the number of tables. Where
        both are None and directions fluctuate far more than the chains' randomness explains, training starts
        anew with a third of the steps.
    momentum : share of the last step on θ that is added to the next; None for 0.8, or 0 where `step_theta` is given.
        (On μ it would be unstable: chains follow μ with delay, while ĉ follows θ at once.)
    n_sweeps : Gibbs sweeps per iteration.
    sampler : `gibbs`; `mh` for Metropolis–Hastings within Gibbs, whose cost does not grow with a feature's modalities;
        `auto` for `mh` on features of 1,000 modalities and more. n_proposals : per feature and sweep (`mh`).
    gradient : `rescaled` (eq. 6) or `exact` (lemma 2) gradient on θ. Eq. 6 compares label sums at equal counts: where a large
        `l2_mu` keeps d̂ away from d, its solution is not the optimum of eq. 5, to which the exact gradient leads.
    clip_ratio : whether rescaling may only shrink: the larger of d and d̂ is brought down to the smaller. Without it
        eq. 6 as printed, which amplifies noise where d̂ is small.
    preconditioner : `both` halves of observed and predicted counts, or `predicted` counts only, as printed.
    clip : largest preconditioned direction, per weight; inf for no limit.
    marginalize_label : sum P(Y=1|x̃) over chains (line 7), or the labels drawn.
    average : share of the last iterations over which μ and θ are averaged (Polyak); 0 for the last iterate.
    initial_chains : `marginals` (independent features as in the tables) or `uniform`.
    missing : what to do where pairs of features have no table: `train` on the tables there are, without weights for
        those pairs, and name them in `missing_`; or `refuse` with a DataError.
    trace_every : keep every so many iterates for `staged_predict_proba`; 0 for none.
    tol : training has settled when what is systematic in the directions, told from noise by comparing windows of
        iterations, is below this many standard errors of the data per weight, or below five times as many and no longer
        falling (rare cells drift for very long). From then on the mean is taken, for as
        long as `average` says and until ten times as many chains as records were seen. 0 for never.
    engine : `numba` (this machine) or `spark` (chains in the active Spark session, see `agglearn.spark`), which give the
        same weights, to the bit; `jax` (on JAX's default device, an accelerator where it has one), the same to Monte-Carlo error.
    random_state : seed, or None for a fresh one.

    Attributes
    ----------
    mu_, theta_ : (K, K) symmetric weights; blocks (i, j) of pairs, diagonal of single features, 0 without a table.
    intercept_ : b. encoder_ : modalities of the tables. classes_ : [0, 1]. n_iter_ : iterations done. settled_ : whether it has settled.
    l2_theta_ : λ used on θ. missing_ : pairs of features, by name, that had no table.
    misfit_ : (n_iter_, 2) Σ|d̂ − d| / Σd and Σ|ĉ − c| / Σc of each iteration.
    trace_ : list of (step, seconds, θ of the cells in the order of the tables), not saved. Before averaging begins
        these are the iterates, from then on their mean so far: the model that one would have by stopping there.
    """

    observes = ContingencyTables

    def __init__(
        self,
        n_chains: Count = 10_000,
        l2_mu: NonNegative = 1.0,
        l2_theta: Literal["moments"] | NonNegative = "moments",
        max_iter: Count = 1000,
        step_mu: Positive | None = None,
        step_theta: Positive | None = None,
        momentum: Annotated[float, Range(0, 1, open="high")] | None = None,
        n_sweeps: Count = 1,
        sampler: Literal["auto", "gibbs", "mh"] = "auto",
        n_proposals: Count = 8,
        gradient: Literal["rescaled", "exact"] = "rescaled",
        clip_ratio: bool = True,
        preconditioner: Literal["both", "predicted"] = "both",
        clip: Annotated[float, Range(0, open="low", infinite=True)] = 2.0,
        marginalize_label: bool = True,
        average: Share = 0.3,
        initial_chains: Literal["marginals", "uniform"] = "marginals",
        missing: Literal["train", "refuse"] = "train",
        trace_every: Whole = 0,
        tol: NonNegative = 0.1,
        engine: Literal["numba", "spark", "jax"] = "numba",
        random_state=None,
    ):
        self.n_chains = n_chains
        self.l2_mu = l2_mu
        self.l2_theta = l2_theta
        self.max_iter = max_iter
        self.step_mu = step_mu
        self.step_theta = step_theta
        self.momentum = momentum
        self.n_sweeps = n_sweeps
        self.sampler = sampler
        self.n_proposals = n_proposals
        self.gradient = gradient
        self.clip_ratio = clip_ratio
        self.preconditioner = preconditioner
        self.clip = clip
        self.marginalize_label = marginalize_label
        self.average = average
        self.initial_chains = initial_chains
        self.missing = missing
        self.trace_every = trace_every
        self.tol = tol
        self.engine = engine
        self.random_state = random_state

    def _fit(self, observation):
        self.missing_ = missing_pairs(observation)
        if self.missing_ and self.missing == "refuse":
            first, second = self.missing_[0]
            raise DataError(
                f"{len(self.missing_)} pairs of features have no table, first {first!r} × {second!r}; "
                "aggregate them, or train without (missing='train')"
            )
        layout, self.l2_theta_ = Layout.of(observation), theta_penalty(self.l2_theta, observation)
        seed = np.random.SeedSequence(draw_seed(self.random_state)).generate_state(1, np.uint64)[0]
        rate = np.clip(observation.positives / observation.total, 1e-9, 1 - 1e-9)
        self.classes_, self.encoder_ = np.array([0, 1]), observation.encoder
        self.intercept_ = float(np.log(rate / (1 - rate)))
        chains = self._chains(layout, int(seed))
        mu, theta = self._train(layout, chains, observation.total)
        self.mu_, self.theta_, self._layout = layout.matrix(mu), layout.matrix(theta), layout

    def warm_up(self) -> None:
        """Compile the kernels, or load them, so that the first fit of a process is not charged for it."""
        if self.engine == "numba":
            clone(self).set_params(n_chains=8, max_iter=2).fit(tiny_tables())

    def _chains(self, layout, seed):
        """The samples, on this machine or wherever the engine has them."""
        made = Chains
        if self.engine == "spark":
            from agglearn.maxent.engines.spark_chains import SparkChains as made  # PySpark is an optional extra
        if self.engine == "jax":
            from agglearn.maxent.engines.jax_chains import JaxChains as made  # JAX is one too
        how = (self.initial_chains, self.sampler, self.n_proposals)
        return made(layout, int(self.n_chains), self.intercept_, seed, *how)

    def _train(self, layout, chains, total):
        """Algorithm 1; returns μ and θ, averaged, (m,) each."""
        mu, theta, scale = initial_mu(layout), np.zeros(len(layout.d)), total / chains.n
        schedule = Schedule(self.max_iter, self.average, self.tol, math.ceil(ROUNDS * scale))
        windows, (steps, momenta) = self._windows(layout), self._steps(layout.n_tables)
        velocity, work = np.zeros((2, len(mu))), np.empty((2, 2, len(mu)))
        clip, seen = float(self.clip), [np.abs(counts).sum() for counts in (layout.d, layout.c)]
        begin, step, misfit, self.trace_ = time.perf_counter(), 0, [], []
        while step < schedule.last:
            step += 1
            chains.set_weights(mu, theta)
            expected = d_hat, c_hat = [scale * s for s in chains.sweep(step, self.n_sweeps, self.marginalize_label)]
            misfit.append([pcd_step.distance(d_hat, layout.d) / seen[0], pcd_step.distance(c_hat, layout.c) / seen[1]])
            gradients, curvatures = self._gradients(layout, mu, theta, d_hat, c_hat, work)
            each = gradients, curvatures, expected, (mu, theta), velocity, steps, momenta, windows.sum
            moved = [pcd_step.advance(*one, clip, LARGEST_WEIGHT) for one in zip(*each, strict=True)]
            energy, noise = zip(*moved, strict=True)
            systematic = windows.add(step, curvatures, energy, [scale * n for n in noise])
            if windows.unstable and self.step_mu is None and self.step_theta is None:
                steps /= 3
                mu, theta = initial_mu(layout), np.zeros_like(theta)
                velocity[:] = 0.0
                windows.restart(step)
            schedule.add(step, mu, theta, systematic)
            if self.trace_every and (step % self.trace_every == 0 or step >= schedule.last):
                self.trace_.append((step, time.perf_counter() - begin, schedule.result[1].copy()))
        self.n_iter_, self.misfit_, self.settled_ = step, np.array(misfit), schedule.settled
        return schedule.result

    def _windows(self, layout):
        information = layout.c * (1 - layout.c / np.maximum(layout.d, 1.0))
        known = effective(layout.d, self.l2_mu), effective(information, self.l2_theta_)
        return DirectionMonitor(known, len(layout.d))

    def _steps(self, n_tables):
        """Step sizes and momenta of μ and θ, (2,) each."""
        step_mu = min(10 / n_tables, 0.2) if self.step_mu is None else self.step_mu
        if self.step_theta is not None:
            return np.array([step_mu, self.step_theta], float), np.array([0.0, self.momentum or 0.0])
        momentum = MOMENTUM if self.momentum is None else float(self.momentum)
        return np.array([step_mu, min((1.2 if momentum else 2.0) / n_tables, 0.1)], float), np.array([0.0, momentum])

    def _gradients(self, layout, mu, theta, d_hat, c_hat, out):
        """Gradients on μ and θ and their preconditioners, in `out` (2, 2, w), for d̂ and ĉ on the scale of the records."""
        choices = self.gradient == "rescaled", bool(self.clip_ratio), self.preconditioner == "both"
        of, penalties = (layout.d, layout.c, d_hat, c_hat, mu, theta), (float(self.l2_mu), self.l2_theta_)
        pcd_step.gradients(*of, *penalties, *choices, *out)
        return out

    def held_out_score(self, held: ContingencyTables, seed: int = 1, n_chains: int = 2000) -> float:
        """Mean log-likelihood of the labels behind held-out tables, by samples of the model that was just fitted."""
        return label_log_likelihood(self._layout, self.mu_, self.theta_, self.intercept_, held, n_chains, seed)

    def _check_state(self):
        k = int(self.encoder_.sizes.sum())
        expect(self, theta_=("f", (k, k)), mu_=("f", (k, k)), intercept_=float)

    def predict_proba(self, frame) -> np.ndarray:
        """(n, 2) probabilities of both labels for raw columns, matched by name (eq. 3); unseen values add nothing."""
        p = self._probabilities(positions(self.encoder_, frame), self.theta_)
        return np.column_stack([1 - p, p])

    def staged_predict_proba(self, frame) -> Iterator[tuple[int, float, np.ndarray]]:
        """(step, seconds since the start of training, (n,) P(Y=1)) for every kept iterate."""
        check_is_fitted(self)
        if not getattr(self, "trace_", None):
            raise NotAvailable("no iterates were kept: fit with trace_every > 0 (they are not saved with a model)")
        at = positions(self.encoder_, frame)
        for step, seconds, theta in self.trace_:
            yield step, seconds, self._probabilities(at, self._layout.matrix(theta))

    def _probabilities(self, at, theta):
        out = np.empty(len(at))
        kernels.predict_logits(at, theta, self.intercept_, out)
        return expit(out)


def missing_pairs(tables: ContingencyTables) -> list[tuple[str, str]]:
    """Names of the features of every pair that has no table."""
    pairs = itertools.combinations(range(len(tables.names)), 2)
    return [(tables.names[i], tables.names[j]) for i, j in pairs if (i, j) not in tables.tables]


def initial_mu(layout: Layout) -> np.ndarray:
    """(w,) start of μ: 0 for pairs, centred log counts for single features (independent features)."""
    logs = np.concatenate([np.log(np.maximum(counts, 0.5)) for counts in layout.marginals])
    feature = np.repeat(np.arange(len(layout.sizes)), layout.sizes)
    logs -= (np.bincount(feature, logs) / layout.sizes)[feature]
    mu = np.zeros(len(layout.d))
    weight_of = layout.expand(np.arange(len(mu)))
    mu[weight_of[layout.single]] = logs[layout.rows[layout.single]]
    return mu
