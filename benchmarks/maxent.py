"""Seconds per iteration of the maximum-entropy trainer beside a plain NumPy version of the same iteration.

    python benchmarks/maxent.py [--chains 10000] [--iterations 20] [--data FOLDER]

Tables shaped like Adult and Bank marketing are simulated; with --data the real files (adult/adult.data and
bank_marketing/bank-additional-full.csv in that folder) are measured too. Compilation is not timed; it is printed.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.chains import Chains
from agglearn.maxent.layout import Layout
from agglearn.maxent.model import initial_mu
from agglearn.observations import ContingencyTables

SHAPES = {
    "Adult-shaped": (32_561, (10, 9, 10, 16, 10, 7, 15, 6, 5, 2, 6, 9, 10, 42)),
    "Bank-shaped": (32_950, (10, 12, 4, 8, 3, 3, 3, 2, 10, 5, 10, 9, 2, 7, 3, 5, 3, 10, 5, 7)),
}
ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country label"
)


def simulated(n: int, sizes: tuple[int, ...]) -> ContingencyTables:
    """Tables of n records with skewed, dependent features of these sizes."""
    rng = np.random.default_rng(0)
    hidden = rng.random(n)
    columns = {f"f{i}": (((hidden + rng.random(n)) / 2) ** 2 * size).astype(int) for i, size in enumerate(sizes)}
    frame = pd.DataFrame(columns).astype(str)
    return ContingencyTables.from_records(frame.assign(label=(rng.random(n) < 0.4 * hidden).astype(int)), "label")


def real(folder: Path) -> dict[str, ContingencyTables]:
    """Tables of Adult (training file) and Bank marketing (all rows), ten bins of equal width."""
    adult = pd.read_csv(folder / "adult/adult.data", names=ADULT.split(), skipinitialspace=True, na_values="?")
    bank = pd.read_csv(folder / "bank_marketing/bank-additional-full.csv", sep=";").rename(columns={"y": "label"})
    return {
        "Adult": ContingencyTables.from_records(adult, "label", binning="width", positive=">50K"),
        "Bank": ContingencyTables.from_records(bank, "label", binning="width", positive="yes"),
    }


class NumPyPeer:
    """The same iteration in NumPy: vectorised over chains, feature by feature, statistics by one matrix product."""

    def __init__(self, chains: Chains, mu: np.ndarray, theta: np.ndarray):
        layout = chains.layout
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


def fastest(run, times: int) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def measure(name: str, tables: ContingencyTables, n_chains: int, iterations: int) -> dict:
    layout = Layout.of(tables)
    mu, theta = initial_mu(layout), np.random.default_rng(1).normal(0, 0.05, len(layout.rows))
    chains = Chains(layout, n_chains, -1.0, seed=0)
    peer = NumPyPeer(chains, mu, theta)

    def iterate():
        chains.set_weights(mu, theta)
        chains.sweep(0)

    ours, theirs = fastest(iterate, iterations), fastest(peer.iterate, 2)
    begin = time.perf_counter()
    model = MaxEntClassifier(n_chains=n_chains, random_state=0).fit(tables)
    fit = time.perf_counter() - begin
    return {
        "tables": name,
        "chains": n_chains,
        "s/iteration": ours,
        "NumPy s/iteration": theirs,
        "ratio": theirs / ours,
        "fit s": fit,
        "iterations": model.n_iter_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, nargs="+", default=[10_000])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--data", type=Path, help="folder with adult/ and bank_marketing/")
    args = parser.parse_args()
    begin = time.perf_counter()
    MaxEntClassifier(n_chains=10, max_iter=1).fit(simulated(100, (2, 3)))
    print(f"compilation or reading it from the cache: {time.perf_counter() - begin:.1f} s")
    cases = {name: simulated(*shape) for name, shape in SHAPES.items()} | (real(args.data) if args.data else {})
    rows = [measure(name, tables, n, args.iterations) for name, tables in cases.items() for n in args.chains]
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    main()
