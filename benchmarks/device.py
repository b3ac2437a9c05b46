"""Speed of what JAX computes on an accelerator: maximum entropy's chains, the paper's largest run, networks on sets.

    python benchmarks/device.py [--iterations N] [--modalities N] [--bags N] [--steps N]

Compilation is not timed, but in the whole runs. Iterations of the largest run are whole ones: sampling on the device,
and the step of the weights on the processor.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from _common import fastest, show
from maxent import PAPER, iteration, model_of, simulated

from agglearn.datasets import GaussianBags
from agglearn.distribution import DeepSetsRegressor
from agglearn.errors import NotAvailable
from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.engines.jax_chains import JaxChains
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex

SHAPES = [(100_000, 14, 10), (1_000_000, 14, 10), (1_000_000, 14, 100), (100_000, 19, 300), (1_000_000, 19, 300)]
FLOAT, TALLY = 4, 24  # bytes of a weight, and of adding three counters to a cell


def bandwidth(size: int = 1 << 30) -> float:
    """Bytes per second of copying on the device, read and written."""
    copy = jax.jit(lambda x: x + 1)
    x = copy(jnp.zeros(size // 4, jnp.float32)).block_until_ready()
    return 2 * size / fastest(lambda: copy(x).block_until_ready(), 5)


def addressed(n: int, features: int, size: int, sampler: str) -> float:
    """Bytes that an iteration's definition reads and writes: weights of conditionals, probabilities twice, cells."""
    draws = size if sampler == "gibbs" else 1 + 8  # of a feature: all its values, or the present and eight proposals
    weights = features * draws * 2 * features + features * (features + 1)
    return n * (FLOAT * weights + TALLY * features * (features + 1) / 2)


def sweeps() -> None:
    rows, most = [], bandwidth()
    for n, features, size in SHAPES:
        tables = simulated(100_000, (size,) * features)
        for sampler in ("gibbs", "mh"):
            seconds = iteration(tables, n, 3, sampler, JaxChains)
            read = addressed(n, features, size, sampler) / seconds
            rows.append({"chains": f"{n:,}", "features": features, "modalities": size, "sampler": sampler})
            rows[-1] |= {"s/iteration": seconds, "iterations/s": 1 / seconds, "GB/s addressed": read / 1e9}
            rows[-1] |= {"of a copy's": read / most}
    show(f"Sampling: weights in, a sweep, statistics out (copies move {most / 1e9:,.0f} GB/s)", rows)


def parity(n: int = 1 << 18) -> None:
    """Mean statistics of the compiled engine and of JAX for the same weights, in standard errors."""
    layout = WeightIndex.from_tables(simulated(20_000, (10, 7, 12, 5, 40, 3)))
    rows = []
    for sampler in ("gibbs", "mh"):
        both = []
        for made in (Chains, JaxChains):
            chains = made(layout, n, -1.0, seed=0, sampler=sampler)
            chains.set_weights(*model_of(layout))
            for step in range(20):
                counts, sums = chains.sweep(step)
            both.append((counts, sums))
        (counts, sums), (others, other_sums) = both
        z = (counts - others) / np.sqrt(counts + others + 1), (sums - other_sums) / np.sqrt(sums + other_sums + 1)
        rows.append({"sampler": sampler, "cells": counts.size, "rms z of counts": np.sqrt(np.mean(z[0] ** 2))})
        rows[-1] |= {
            "largest": abs(z[0]).max(),
            "rms z of sums": np.sqrt(np.mean(z[1] ** 2)),
            "largest ": abs(z[1]).max(),
        }
    show(f"Parity of both engines, {n:,} chains", rows)


def largest_run(iterations: int, size: int) -> None:
    features, _, n_chains, _ = PAPER
    tables = simulated(100_000, (size,) * features)
    model = MaxEntClassifier(
        n_chains=n_chains, max_iter=iterations, tol=0, trace_every=1 << 30, engine="jax", random_state=0
    )
    begin = time.perf_counter()
    model.fit(tables)
    seconds = time.perf_counter() - begin
    row = {"modalities": size, "iterations": model.n_iter_, "minutes": seconds / 60}
    row |= {"s/iteration": model.trace_[-1][1] / model.n_iter_}
    row |= {"misfit of d, first": model.misfit_[0, 0], "last": model.misfit_[-1, 0]}
    show(f"The paper's largest run, whole: {n_chains:,} chains, {features} features", [row])


def networks(n_bags: int, steps: int) -> None:
    """DeepSets on the second task of section 4.3.1, at the thesis's batches of 128 bags of 512 instances."""
    drawn = GaussianBags(statistic="correlation", n_bags=n_bags).draw(0)
    rows = []
    for device, count in {"cuda": steps, "cpu": min(steps, 50)}.items():
        try:
            DeepSetsRegressor(steps=10, device=device, n_validation=512, random_state=0).fit(drawn.train)
        except NotAvailable:
            continue
        model = DeepSetsRegressor(steps=count, device=device, n_validation=512, random_state=0)
        begin = time.perf_counter()
        model.fit(drawn.train)
        seconds = time.perf_counter() - begin
        predicted = model.predict(drawn.test)
        error = float(np.mean((predicted - drawn.test.target) ** 2))
        rows.append({"device": device, "bags": n_bags, "steps": count, "s": seconds, "ms/step": 1e3 * seconds / count})
        rows[-1] |= {"test error, nats²": error, "of predicting the mean": float(drawn.test.target.var())}
        if device == "cuda":
            on_processor = model.set_params(device="cpu").predict(drawn.test)
            rows[-1]["largest difference on the processor"] = float(abs(on_processor - predicted).max())
    show("DeepSets, batches of 128 bags of 512 instances in 32 dimensions (validation included)", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=10, help="of the largest run, 0 for none")
    parser.add_argument("--modalities", type=int, default=PAPER[1], help="of each of its features")
    parser.add_argument("--bags", type=int, default=4096, help="of the network's training, 0 for none")
    parser.add_argument("--steps", type=int, default=200, help="of that")
    options = parser.parse_args()
    if jax.devices()[0].platform == "cpu":
        print("not measured: JAX has no accelerator here")
        return
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)
    parity()
    sweeps()
    if options.bags:
        networks(options.bags, options.steps)
    if options.iterations:
        largest_run(options.iterations, options.modalities)


if __name__ == "__main__":
    main()
