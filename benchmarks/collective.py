"""Speed of inference in collective graphical models: beside the generic solvers, against cells and population size, and EM.

    python benchmarks/collective.py [--time-limit 60] [--mobility]

Birds on grids with T = 20 and M = 1,000 (Poisson counts of nodes), θ = (5, 10, 10, 10) and (0.5, 1, 1, 1). Every solver has
the same problem in the same run, and the fastest of three runs counts. The generic ones stop at the time limit. --mobility
adds 250 EM iterations of the mobility model on 15 × 14 cells with M = 1e6. Compilation is not timed.
"""

import argparse
import time

import numpy as np
from _common import compare, show

from agglearn.collective import ChainModel, MobilityBaseline, MobilityEM, infer
from agglearn.datasets import BirdMigration, HumanMobility
from agglearn.errors import AgglearnError
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.tasks import FlowLearning, TaskInput

THETAS = {"large θ": (5, 10, 10, 10), "small θ": (0.5, 1, 1, 1)}
OTHERS = {
    "NLBP, feasible": ("nlbp-feasible", {"damping": 0.1}),
    "accelerated RDA": ("accelerated-rda", {}),
    "NLBP, naive": ("nlbp-naive", {"damping": 0.1, "tol": 1e-5, "max_iter": 300}),
    "Gaussian (GCGM)": ("gaussian", {}),
}
TIMES = 3  # runs of every solver, of which the fastest counts
GENERIC = {"IPOPT": "generic-ipopt", "Clarabel": "generic-cvxpy"}


def world(side: int, theta, population: int = 1000, seed: int = 0):
    """Model, Poisson counts of nodes, M."""
    drawn = BirdMigration(side, 20, population, theta).draw(seed)
    tables, rng = drawn.edge_tables[0], np.random.default_rng(seed)
    nodes = np.concatenate([tables.sum(axis=2), tables[-1:].sum(axis=1)])
    return (
        ChainModel(list(drawn.log_potentials[0])),
        FlowCounts(node_counts=rng.poisson(nodes).astype(float)),
        population,
    )


def seconds_of(problem, method="dual-newton", **options) -> tuple[float, object]:
    """Fastest of `TIMES` runs, and the result."""
    taken = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        found = infer(*problem, method=method, **options)
        taken.append(time.perf_counter() - begin)
    return min(taken), found


def beside_others(limit: float) -> None:
    for name, theta in THETAS.items():
        problem, rows = world(15, theta), []
        ours, best = seconds_of(problem, tol=1e-6)
        tight = infer(*problem, tol=1e-10).objective
        rows.append(
            {"solver": "dual Newton", "s": ours, "ratio": 1.0, "relative gap": abs(best.objective - tight) / abs(tight)}
        )
        for label, (method, options) in OTHERS.items():
            taken, found = seconds_of(problem, method, **({"tol": 1e-6} | options))
            gap = abs(found.objective - tight) / abs(tight)
            rows.append({"solver": label, "s": taken, "ratio": taken / ours, "relative gap": gap})
            compare(f"MAP on 15 × 15 cells, {name}", ours, label, taken, note=f"its relative gap {gap:.0e}")
        for label, method in GENERIC.items():
            try:
                taken, found = seconds_of(problem, method, tol=1e-6, time_limit=limit)
            except AgglearnError as error:  # not installed, or stopped at the time limit, which its message names
                rows.append({"solver": label, "note": str(error)})
                continue
            gap = abs(found.objective - tight) / abs(tight)
            rows.append({"solver": label, "s": taken, "ratio": taken / ours, "relative gap": gap})
            compare(f"MAP on 15 × 15 cells, {name}", ours, label, taken, note=f"its relative gap {gap:.0e}")
        show(f"15 × 15 cells, T = 20, {name}: seconds to a gap of 1e-6", rows)


def against_cells() -> None:
    for name, theta in THETAS.items():
        sides = [6, 8, 10, 12, 15, 17, 19]
        taken = [np.mean([seconds_of(world(s, theta, seed=k), tol=1e-6)[0] for k in range(3)]) for s in sides]
        slope = np.polyfit(np.log(np.square(sides)), np.log(taken), 1)[0]
        show(
            f"Against cells, {name}: exponent {slope:.2f} (tables grow with exponent 2)",
            [{"grid": f"{s} × {s}", "cells": s * s, "s": t} for s, t in zip(sides, taken, strict=True)],
        )


def against_population() -> None:
    sizes = [1_000, 100_000, 10_000_000]
    rows = [{"M": f"{m:,}", "s": seconds_of(world(15, THETAS["small θ"], m), tol=1e-6)[0]} for m in sizes]
    show("Against population size, 15 × 15 cells", rows)


def mobility() -> None:
    drawn = HumanMobility(15, 14, 10, 1_000_000).draw(0)
    rows = []
    for b in (10, 50):
        observation, truth = FlowLearning().observe(
            TaskInput("mobility", {}, {}, drawn), FlowInstances, {"evidence": "edge", "noise": "laplace", "scale": b}, 0
        )
        for name, model in (
            ("baseline", MobilityBaseline()),
            ("250 EM iterations", MobilityEM(n_iter=250, options={"tol": 1e-6})),
        ):
            model.warm_up()
            begin = time.perf_counter()
            model.fit(observation)
            taken = time.perf_counter() - begin
            found = {
                m.measure: m.value for m in FlowLearning().measure(model, truth, ["pairwise_mae"]) if m.step is None
            }
            rows.append({"b": b, "what": name, "s": taken, "pairwise MAE": found["pairwise_mae"]})
    show("Mobility, 15 × 14 cells, T = 10, M = 1,000,000 (EM includes the baseline it starts from)", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for each generic solver")
    parser.add_argument("--mobility", action="store_true")
    args = parser.parse_args()
    begin = time.perf_counter()
    for method, options in [("dual-newton", {}), *OTHERS.values()]:
        infer(*world(2, THETAS["small θ"]), method=method, **options)
    print(f"compilation or reading it from the cache: {time.perf_counter() - begin:.1f} s")
    beside_others(args.time_limit)
    against_cells()
    against_population()
    if args.mobility:
        mobility()


if __name__ == "__main__":
    main()
