"""Speed and memory of maximum entropy: beside a NumPy version, the authors' code, and against every size.

    python benchmarks/maxent.py [DATA]
    python benchmarks/maxent.py --largest    # a fit of the paper's largest shape alone: ten minutes, 7 GB

Tables are simulated. DATA, a folder with adult/adult.data and adult/adult.test, adds the time to the log-likelihood that
the authors' code ends at on Adult. Compilation is not timed. Figures of the authors' code were measured elsewhere.
"""

import argparse
import resource
import time
import tracemalloc
from pathlib import Path

import numba
import numpy as np
import pandas as pd
from _common import additions, compare, counts, exponentials, fastest, show

from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.model import initial_mu
from agglearn.maxent.weight_index import WeightIndex, count_cells
from agglearn.observations import ContingencyTables

SHAPES = {
    "Adult-shaped": (32_561, (10, 9, 10, 16, 10, 7, 15, 6, 5, 2, 6, 9, 10, 42)),
    "Bank-shaped": (32_950, (10, 12, 4, 8, 3, 3, 3, 2, 10, 5, 10, 9, 2, 7, 3, 5, 3, 10, 5, 7)),
}
AUTHORS = {"Adult-shaped": (1.02, 0.61), "Bank-shaped": (1.67, 0.85)}  # s/iteration, 10,000 chains: as shipped, tuned
AUTHORS_ADULT = (0.4185, 203)  # NLLH on test records, s of 200 iterations
PAPER = (19, 300, 1_000_000, 500)  # features, modalities each (the paper: below 1,000), chains, iterations
ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country label"
)


def simulated(n: int, sizes: tuple[int, ...]) -> ContingencyTables:
    """Tables of n records with skewed, dependent features of these sizes."""
    rng = np.random.default_rng(0)
    hidden = rng.random(n)
    codes = np.stack([(((hidden + rng.random(n)) / 2) ** 2 * size).astype(np.int32) for size in sizes], axis=1)
    names = [CategoricalEncoder(f"f{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes)]
    return ContingencyTables.from_codes(FrameEncoder(tuple(names)), codes, (rng.random(n) < 0.4 * hidden).astype(int))


class NumPyPeer:
    """The same iteration in NumPy: vectorised over chains, feature by feature, statistics by one matrix product."""

    def __init__(self, chains: Chains, mu: np.ndarray, theta: np.ndarray):
        layout = chains.index
        self.layout, self.intercept, self.rng = layout, chains.intercept, np.random.default_rng(0)
        self.x = chains.positions.astype(np.int64)
        self.mu, self.theta = (layout.matrix(v).astype(np.float32) for v in (mu, theta))
        self.weights = np.stack([self.mu, self.mu + self.theta])

    def probabilities(self):
        n, hot = len(self.x), self.one_hot()
        pairs = ((hot @ (self.theta - np.diag(np.diag(self.theta)))) * hot).sum(axis=1) / 2
        return 1 / (1 + np.exp(-(pairs + hot @ np.diag(self.theta) + self.intercept))), hot, n

    def one_hot(self):
        hot = np.zeros((len(self.x), len(self.theta)), np.float32)
        np.put_along_axis(hot, self.x, 1.0, axis=1)
        return hot

    def iterate(self):
        p, _, n = self.probabilities()
        y = (self.rng.random(n) < p).astype(int)
        for i, (offset, size) in enumerate(zip(self.layout.offsets, self.layout.sizes, strict=True)):
            block = slice(offset, offset + size)
            logits = np.stack([np.diag(w[block, block]) for w in self.weights])[y]
            for j in range(self.x.shape[1]):
                if j != i:
                    logits += self.weights[y, self.x[:, j], block]
            cumulative = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
            u = self.rng.random(n) * cumulative[:, -1]
            self.x[:, i] = offset + np.minimum((cumulative < u[:, None]).sum(axis=1), size - 1)
        p, hot, _ = self.probabilities()
        return hot.T @ hot, hot.T @ (hot * p[:, None])


def model_of(layout: WeightIndex) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the size that trained ones have."""
    rng = np.random.default_rng(1)
    return initial_mu(layout), rng.normal(0, 0.05, len(layout.rows))


def iteration(tables, n_chains: int, times: int = 3, sampler: str = "gibbs", made=Chains) -> float:
    """Seconds of one iteration's sampling: weights in, sweep, statistics out."""
    layout = WeightIndex.from_tables(tables)
    weights, chains = model_of(layout), made(layout, n_chains, -1.0, seed=0, sampler=sampler)

    def iterate():
        chains.set_weights(*weights)
        chains.sweep(0)

    return fastest(iterate, times)


def exponent(x, seconds) -> float:
    """Slope of log seconds against log x."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def beside_peers() -> None:
    rows = []
    for name, shape in SHAPES.items():
        tables = simulated(*shape)
        layout = WeightIndex.from_tables(tables)
        ours = iteration(tables, 10_000, 20)
        theirs = fastest(NumPyPeer(Chains(layout, 10_000, -1.0, seed=0), *model_of(layout)).iterate, 2)
        sizes, n, cells = np.array(shape[1]), 10_000, layout.n_tables
        read = sizes.sum() * (len(sizes) + 1) + 2 * cells  # rows of other features, the own and the label's; labels
        floor = n * (read / additions() + sizes.sum() / exponentials() + cells / counts())
        compare(f"iteration of 10,000 chains, {name} tables", ours, "NumPy, all chains at once", theirs, floor)
        shipped, tuned = AUTHORS[name]
        rows.append(
            {"tables": name, "s/iteration": ours, "NumPy, here": theirs, "ratio": theirs / ours}
            | {
                "authors, elsewhere": shipped,
                "ratio ": shipped / ours,
                "tuned, elsewhere": tuned,
                "ratio  ": tuned / ours,
            }
        )
    show("Seconds per iteration, 10,000 chains", rows)


def against_sizes() -> None:
    adult, chains = simulated(*SHAPES["Adult-shaped"]), [1_000, 10_000, 100_000, 1_000_000]
    seconds = [iteration(adult, n, max(3, min(40, 2_000_000 // n))) for n in chains]
    curve("chains (Adult-shaped)", chains, seconds)
    features = [5, 10, 20, 40]
    curve(
        "features (10 modalities each)", features, [iteration(simulated(20_000, (10,) * d), 10_000) for d in features]
    )
    modalities = [10, 30, 100, 300, 1000]
    worlds = [simulated(20_000, (m,) + (10,) * 5) for m in modalities]
    for sampler in ("gibbs", "mh"):
        taken = [iteration(w, 10_000, 10, sampler) for w in worlds]
        curve(f"modalities (of one feature of six, {sampler})", modalities, taken)
    rows = [10_000, 100_000, 1_000_000]
    curve("rows behind the aggregate", rows, [iteration(simulated(n, (10,) * 10), 10_000, 10) for n in rows])


def curve(what: str, x, seconds) -> None:
    cells = [{what: f"{a:,}", "s/iteration": s} for a, s in zip(x, seconds, strict=True)]
    show(f"Against {what}: exponent {exponent(x, seconds):.2f}", cells)


def memory() -> None:
    layout, peaks = WeightIndex.from_tables(simulated(*SHAPES["Adult-shaped"])), []
    for n in (1_000, 500_000):
        tracemalloc.start()
        chains = Chains(layout, n, -1.0, seed=0)
        chains.set_weights(*model_of(layout))
        chains.sweep(0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(f"\nPeak memory: {(peaks[1] - peaks[0]) / (499_000 * len(layout.sizes)):.1f} bytes per chain and feature")


def busy_cores(n_chains: int = 100_000) -> None:
    """Processor seconds of a sweep over its seconds."""
    layout = WeightIndex.from_tables(simulated(*SHAPES["Adult-shaped"]))
    chains, shares = Chains(layout, n_chains, -1.0, seed=0), []
    chains.set_weights(*model_of(layout))
    for step in range(5):
        begin, used = time.perf_counter(), time.process_time()
        chains.sweep(step)
        shares.append((time.process_time() - used) / (time.perf_counter() - begin) / numba.get_num_threads())
    print(f"\nCores busy in a sweep of {n_chains:,} chains: {max(shares):.0%} of {numba.get_num_threads()}")


def effective_samples(shape: tuple[int, ...], n_chains: int = 10_000, sweeps: int = 30) -> None:
    """Gibbs beside Metropolis–Hastings on features of 1,000 modalities, judged by the first of them."""
    layout, rows = WeightIndex.from_tables(simulated(200_000, shape)), []
    rng = np.random.default_rng(2)
    mu, theta = initial_mu(layout), rng.normal(0, 0.3, len(layout.rows))
    mu = mu + np.where(layout.single, 0, rng.normal(0, 0.3, len(mu)))
    value = rng.normal(size=1000)
    for sampler, n_proposals in (("gibbs", 1), ("auto", 1), ("auto", 4), ("auto", 8), ("auto", 16)):
        chains = Chains(layout, n_chains, -1.0, seed=0, sampler=sampler, n_proposals=n_proposals)
        chains.set_weights(mu, theta)
        for step in range(20):
            chains.sweep(step)
        seconds, path = [], []
        for step in range(20, 20 + sweeps):
            begin = time.perf_counter()
            chains.sweep(step)
            seconds.append(time.perf_counter() - begin)
            path.append(value[chains.positions[:, 0] - layout.offsets[0]])
        share = 1 / autocorrelation_time(np.array(path))
        name = sampler if sampler == "gibbs" else f"mh where wide, {n_proposals} proposals"
        sweeping = min(seconds)
        rows.append({"sampler": name, "s/sweep": sweeping, "ESS per draw": share, "ESS/s": n_chains * share / sweeping})
    wide = shape.count(max(shape))
    show(
        f"Effective samples per second, {wide} of {len(shape)} features have {max(shape):,} modalities, {n_chains:,} chains",
        rows,
    )


def autocorrelation_time(path: np.ndarray) -> float:
    """1 + 2Σρ over lags until ρ is lost in noise, pooled over chains, for (sweeps, chains)."""
    path = path - path.mean()
    total, noise = 1.0, 3 / np.sqrt(path.size)
    for lag in range(1, len(path) // 2):
        rho = np.mean(path[lag:] * path[:-lag]) / np.mean(path**2)
        if rho < noise:
            break
        total += 2 * rho
    return total


def skewed(n: int, size: int, features: int) -> ContingencyTables:
    """Tables of n records with dependent features, the k-th value of each as frequent as 1/k."""
    rng = np.random.default_rng(0)
    hidden, codes = rng.random(n, np.float32), np.empty((n, features), np.int32)
    for column in codes.T:
        rank = (size + 1) ** ((hidden + rng.random(n, np.float32) / 2) % 1)
        column[:] = np.minimum(rank.astype(np.int32) - 1, size - 1)
    names = [CategoricalEncoder(f"f{i}", tuple(map(str, range(size)))) for i in range(features)]
    y = (rng.random(n, np.float32) < 0.1 + 0.3 * hidden).astype(int)
    return ContingencyTables.from_codes(FrameEncoder(tuple(names)), codes, y)


def largest_fit(n: int = 1_000_000, size: int = 1000, n_chains: int = 1_000_000, measured: int = 10) -> None:
    """Seconds of whole iterations, optimiser and all, and the peak of this process, tables and all."""
    begin, tables = time.perf_counter(), skewed(n, size, PAPER[0])
    counted = time.perf_counter() - begin
    model = MaxEntClassifier(n_chains, max_iter=measured + 1, trace_every=1, random_state=0).fit(tables)
    seconds = np.diff([s for _, s, _ in model.trace_])
    row = {"s/iteration": seconds.mean(), "least": seconds.min(), "most": seconds.max()}
    row |= {"minutes": seconds.mean() * PAPER[3] / 60, "s before": time.perf_counter() - begin - model.trace_[-1][1]}
    row |= {"s counting": counted, "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    occupied = sum(len(table.cells) for table in tables.tables.values())
    show(
        f"{n_chains:,} chains, {PAPER[0]} features of {size:,} modalities, {n:,} records in {occupied / 1e6:.0f}M of "
        f"{count_cells(tables) / 1e6:.0f}M cells, {PAPER[3]} iterations from {measured} measured ones on "
        f"{numba.get_num_threads()} threads",
        [row],
    )


def time_to_authors_quality(folder: Path) -> None:
    frames = [
        pd.read_csv(folder / "adult" / name, names=ADULT.split(), skipinitialspace=True, na_values="?", skiprows=skip)
        for name, skip in (("adult.data", 0), ("adult.test", 1))
    ]
    train, test = frames
    y = test.label.str.startswith(">50K").to_numpy().astype(int)
    tables = ContingencyTables.from_records(train, "label", binning="width", positive=">50K")
    model = MaxEntClassifier(random_state=0, trace_every=2).fit(tables)
    target, theirs = AUTHORS_ADULT
    stages = [(step, s, normalized_log_likelihood(y, p)) for step, s, p in model.staged_predict_proba(test)]
    reached = next(((step, s) for step, s, score in stages if score >= target), (None, float("nan")))
    show(
        f"Adult, test NLLH {target} as the authors' code ends at",
        [
            {"iterations": reached[0], "s": reached[1], "authors, elsewhere, s": theirs, "ratio": theirs / reached[1]},
            {"iterations": stages[-1][0], "s": stages[-1][1], "NLLH": stages[-1][2]},
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder with adult/")
    parser.add_argument("--largest", action="store_true", help="a fit of the paper's largest shape, and nothing else")
    args = parser.parse_args()
    data = args.data
    if args.largest:
        return largest_fit()
    begin = time.perf_counter()
    for sampler in ("gibbs", "mh"):
        MaxEntClassifier(n_chains=10, max_iter=1, sampler=sampler).fit(simulated(100, (2, 3)))
    print(f"compilation or reading it from the cache: {time.perf_counter() - begin:.1f} s")
    beside_peers()
    against_sizes()
    memory()
    busy_cores()
    effective_samples((1000,) + (20,) * 9)
    effective_samples((1000,) * 6 + (20,) * 4, sweeps=20)
    if data:
        time_to_authors_quality(data)


if __name__ == "__main__":
    main()
