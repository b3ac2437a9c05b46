"""Coverage of the intervals of `predict_interval` in small worlds with a known truth, with its Monte Carlo error.

    python benchmarks/intervals.py                 # 2,000 replicates of each world, an hour on two free cores
    python benchmarks/intervals.py 200 sums bags   # 200 replicates of two of the three kinds of aggregates

A world is drawn anew in every replicate: coefficients, records, labels, noise. Coverage is the mean over replicates of
the share of 50 rows whose true P(Y=1|X) lies in its 95 % interval.
"""

import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numba
import numpy as np
import pandas as pd
from _common import show
from scipy.special import expit

from agglearn.encoding import CodedEncoder, FeatureMap, FrameEncoder
from agglearn.errors import NoiseIgnored
from agglearn.labelsums import WALRClassifier
from agglearn.maxent import NoiseAwareMaxEntClassifier
from agglearn.observations import Bags, ContingencyTables, LabelSums
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import draw_seeded
from agglearn.proportions import CardinalityClassifier

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, None)
ROWS = 50


def categories(codes: np.ndarray, values: int) -> tuple[FrameEncoder, pd.DataFrame]:
    encoders = [CodedEncoder(f"x{i}", values) for i in range(codes.shape[1])]
    return FrameEncoder(encoders), pd.DataFrame(codes, columns=[f"x{i}" for i in range(codes.shape[1])])


def sums(seed: int, epsilon: float | None, l2: float | str, deviation: float, n: int = 1000) -> tuple:
    """Five features of four values, N(0, deviation²) coefficients."""
    rng = np.random.default_rng(seed)
    codes, theta = rng.integers(0, 4, (n, 5)), rng.normal(0, deviation, (5, 4))
    p = expit(theta[np.arange(5), codes].sum(axis=1) - 0.5)
    encoder, frame = categories(codes, 4)
    released = LabelSums.from_map(FeatureMap.fit("onehot", encoder, frame), frame, rng.binomial(1, p))
    if epsilon:
        released = released.private(epsilon, 1 / (10 * n), draw=draw_seeded(seed))
    return WALRClassifier(l2=l2).fit(released), frame[:ROWS], p[:ROWS]


def tables(seed: int, epsilon: float | None, l2: float | str, deviation: float, n: int = 5000) -> tuple:
    """Three features of three values, a pairwise model with N(0, deviation²) weights θ and N(0, 1/2) weights μ."""
    rng = np.random.default_rng(seed)
    states = np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), axis=1)
    cells = [states[:, i] for i in range(3)] + [3 * states[:, i] + states[:, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    mu, theta = (sum(rng.normal(0, s, 9)[c] for c in cells) for s in (np.sqrt(0.5), deviation))
    mass = np.exp(mu + np.logaddexp(0, theta - 0.5))
    state = rng.choice(27, n, p=mass / mass.sum())
    p = expit(theta - 0.5)[state]
    encoder, frame = categories(states[state], 3)
    released = ContingencyTables.from_codes(encoder, states[state], rng.binomial(1, p))
    if epsilon:
        released = released.private(epsilon, 1 / (10 * n), draw=draw_seeded(seed))
    learner = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=200, l2_theta=l2, random_state=seed)
    return learner.fit(released), frame[:ROWS], p[:ROWS]


def bags(
    seed: int, epsilon: float | None, l2: float | str, deviation: float, n_bags: int = 200, size: int = 10
) -> tuple:
    """Four normal covariates, N(0, deviation²) coefficients. The noise on counts is discrete Laplace."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_bags * size, 4))
    p = expit(x @ rng.normal(0, deviation, 4) - 0.5)
    positives = rng.binomial(1, p).reshape(n_bags, size).sum(axis=1)
    released = Bags(x, np.arange(0, len(x) + 1, size), positives)
    if epsilon:
        released = release_bag_counts(released, epsilon, draw=draw_seeded(seed))
    return CardinalityClassifier(l2=l2, random_state=seed).fit(released), x[:ROWS], p[:ROWS]


def replicate(seed: int, world, epsilon: float | None, **options) -> tuple[float, float]:
    """Share of covered rows, and mean width."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseIgnored)
        model, rows, truth = world(seed, epsilon, **options)
    low, high = model.predict_interval(rows).T
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean())


WORLDS = {
    "sums": [
        ("λ matches the coefficients", sums, {"l2": 2.0, "deviation": 0.5}),
        ("λ = ½, four times too small", sums, {"l2": 0.5, "deviation": 0.5}),
        ("λ = ½, matches", sums, {"l2": 0.5, "deviation": 1.0}),
        ("λ four times too large", sums, {"l2": 8.0, "deviation": 0.5}),
        ("λ by moments", sums, {"l2": "moments", "deviation": 0.5}),
    ],
    "tables": [
        ("λ matches the weights", tables, {"l2": 3.125, "deviation": 0.4}),
        ("λ four times too small", tables, {"l2": 0.78, "deviation": 0.4}),
        ("λ four times too large", tables, {"l2": 12.5, "deviation": 0.4}),
        ("λ by moments", tables, {"l2": "moments", "deviation": 0.4}),
    ],
    "bags": [
        ("λ matches the coefficients", bags, {"l2": 2.0, "deviation": 0.5}),
        ("λ = ½, four times too small", bags, {"l2": 0.5, "deviation": 0.5}),
        ("λ four times too large", bags, {"l2": 8.0, "deviation": 0.5}),
        ("λ held out", bags, {"l2": "held_out", "deviation": 0.5}),
        ("λ = ½, matches", bags, {"l2": 0.5, "deviation": 1.0}),
    ],
}


def main(replicates: int = 2000, kinds: tuple[str, ...] = tuple(WORLDS)) -> None:
    with ProcessPoolExecutor(initializer=numba.set_num_threads, initargs=(1,)) as pool:  # two would wait for each other
        for kind, (name, world, options) in ((k, row) for k in kinds for row in WORLDS[k]):
            rows = []
            for epsilon in EPSILONS:
                measure = partial(replicate, world=world, epsilon=epsilon, **options)
                covered, width = np.transpose(list(pool.map(measure, range(replicates), chunksize=10)))
                error = covered.std(ddof=1) / np.sqrt(replicates)
                percent = {"coverage in %": 100 * covered.mean(), "± its standard error": 100 * error}
                rows.append({"ε": str(epsilon), **percent, "mean width": width.mean()})
            show(f"{kind}, {name}, {replicates} replicates", rows)


if __name__ == "__main__":
    main(*([int(sys.argv[1])] if sys.argv[1:] else []), *([tuple(sys.argv[2:])] if sys.argv[2:] else []))
