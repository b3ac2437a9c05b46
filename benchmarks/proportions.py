"""Speed of exact inference under known counts: beside a NumPy dynamic program and SciPy, against every size.

    python benchmarks/proportions.py

Cross tables from margins stand beside PyEI (`make peers`). Compilation is not timed, but for PyEI's.
"""

import contextlib
import importlib.util
import io
import time
import warnings

import numba
import numpy as np
from _common import compare, fastest, show
from scipy.stats import poisson_binom

from agglearn.observations import Bags
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    CardinalityClassifier,
    EcologicalInference,
    LeastSquaresTables,
    LinearProgrammeTables,
    cardinality_posterior,
)
from agglearn.proportions.posterior import binary_posteriors, class_posteriors


def bag(n: int, seed: int = 0):
    """(probabilities (n,), a sum drawn from them)."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, n).clip(1e-6, 1 - 1e-6)
    return p, int((rng.random(n) < p).sum())


def dynamic_program(p: np.ndarray, z: int) -> np.ndarray:
    """(n,) posteriors by prefix and suffix distributions of the sum, O(n²), a row at a time."""
    n = len(p)
    prefix = np.zeros((n + 1, z + 1))
    prefix[0, 0] = 1
    for i in range(n):
        prefix[i + 1] = prefix[i] * (1 - p[i])
        prefix[i + 1, 1:] += prefix[i, :-1] * p[i]
    suffix, q = np.zeros(z + 1), np.empty(n)
    suffix[z] = 1
    for i in range(n - 1, -1, -1):
        q[i] = p[i] * (prefix[i, :-1] @ suffix[1:]) / prefix[n, z]
        suffix = suffix * (1 - p[i]) + np.append(suffix[1:] * p[i], 0)
    return q


def e_step() -> None:
    rows = []
    for size in (10, 30, 100, 300, 1000, 10_000):
        bags = max(1, 2_000_000 // size)
        p = np.random.default_rng(0).beta(1, 3, bags * size).clip(1e-6, 1 - 1e-6)
        offsets = np.arange(0, len(p) + 1, size)
        y = np.random.default_rng(1).random(len(p)) < p
        z, logits = np.add.reduceat(y.astype(int), offsets[:-1]), np.log(p) - np.log1p(-p)
        row = {"bag size": size, "bags": bags}
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            seconds = fastest(lambda logits=logits, offsets=offsets, z=z: binary_posteriors(logits, offsets, z))
            row[f"M instances/s, {threads} threads"] = len(p) / seconds / 1e6
        rows.append(row)
    show("E step, two classes", rows)


def against_size() -> None:
    sizes = {
        "fourier": [1000, 10_000, 100_000, 1_000_000],
        "tree": [1000, 4000, 16_000, 64_000],
        "direct": [500, 1000, 2000, 4000],
    }
    for method, several in sizes.items():
        taken = [fastest(lambda n=n, m=method: cardinality_posterior(*bag(n), m)) for n in several]
        slope = np.polyfit(np.log(several), np.log(taken), 1)[0]
        rows = [{"n": f"{n:,}", "s": s} for n, s in zip(several, taken, strict=True)]
        show(f"One bag, {method}: exponent {slope:.2f}", rows)


def beside_peers(n: int = 10_000) -> None:
    p, z = bag(n)
    ours = fastest(lambda: cardinality_posterior(p, z))
    found = [
        ("O(n) method, all posteriors", ours, cardinality_posterior(p, z)),
        (
            "tree, all posteriors",
            fastest(lambda: cardinality_posterior(p, z, "tree"), 1),
            cardinality_posterior(p, z, "tree"),
        ),
        ("NumPy dynamic program, all posteriors", fastest(lambda: dynamic_program(p, z), 1), dynamic_program(p, z)),
    ]
    rows = [
        {"": name, "s": s, "ratio": s / ours, "largest difference": abs(q - found[0][2]).max()} for name, s, q in found
    ]
    seconds = fastest(lambda: poisson_binom.pmf(z, p), 1)
    rows.append({"": "scipy.stats.poisson_binom, P(sum) alone", "s": seconds, "ratio": seconds / ours})
    log_p = binary_posteriors(np.log(p) - np.log1p(-p), [0, n], [z])[1][0]
    rows[-1]["largest difference"] = abs(np.exp(log_p) - float(poisson_binom.pmf(z, p)))
    for row in rows[2:]:
        compare(f"one bag of {n:,}, all posteriors", ours, row[""], row["s"])
    show(f"One bag of {n:,}", rows)


def classes() -> None:
    rows = []
    for size, count in ((10, 3), (100, 3), (1000, 3), (10, 4), (100, 4)):
        bags = max(1, 20_000 // size)
        p = np.random.default_rng(0).dirichlet(np.ones(count), bags * size)
        y = (np.random.default_rng(1).random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1)
        offsets = np.arange(0, len(p) + 1, size)
        counts = np.stack([np.add.reduceat((y == c).astype(int), offsets[:-1]) for c in range(count)], axis=1)
        exact = fastest(lambda p=p, o=offsets, c=counts: class_posteriors(np.log(p), o, c), 1)
        rest = 0.0
        for c in range(count):
            logits = np.log(p[:, c]) - np.log1p(-p[:, c])
            rest += fastest(lambda x=logits, o=offsets, z=counts[:, c]: binary_posteriors(x, o, z))
        rows.append({"classes": count, "bag size": size, "exact, M instances/s": len(p) / exact / 1e6, "one against the rest": len(p) / rest / 1e6, "ratio": exact / rest})  # fmt: skip
    show("E step with more classes", rows)


def fits() -> None:
    rng, rows = np.random.default_rng(0), []
    x = (rng.normal(0, 0.5, (800, 1, 50)) + rng.normal(size=(800, 100, 50))).reshape(-1, 50).astype(np.float32)
    y = rng.random(len(x)) < 1 / (1 + np.exp(-x[:, :5].sum(axis=1)))
    bags = Bags(x, np.arange(0, len(x) + 1, 100), y.reshape(-1, 100).sum(axis=1))
    for name, model in {
        "cardinality, scoring": CardinalityClassifier(l2=0.5, random_state=0),
        "cardinality, EM": CardinalityClassifier(l2=0.5, solver="em", max_iter=300, random_state=0),
        "AMM": AlternatingMeanMapClassifier(l2=0.5, random_state=0),
    }.items():
        model.warm_up()
        seconds = fastest(lambda model=model: model.fit(bags), 1)
        row = {"": name, "s": seconds}
        if hasattr(model, "log_likelihoods_"):
            row |= {"steps": len(model.log_likelihoods_[0]), "log P(counts)": model.log_likelihoods_[0][-1]}
        rows.append(row)
    show("Fit to 800 bags of 100, 50 covariates", rows)


def drawn_district(
    n_units: int = 60, n_groups: int = 6, n_options: int = 5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(U, R) and (U, C) margins of units whose groups mostly vote for an option of their own, and the (R, C) truth."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(3 / np.arange(1, n_groups + 1), n_units)
    groups = np.array([rng.multinomial(n, s) for n, s in zip(rng.integers(200, 900, n_units), shares, strict=True)])
    loyal = rng.normal(0, 0.7, (n_groups, n_options)) + 2 * np.eye(n_groups, n_options)
    odds = np.exp(loyal + rng.normal(0, 0.15, (n_units, n_groups, n_options)))
    p = odds / odds.sum(axis=2, keepdims=True)
    tables = np.array(
        [[rng.multinomial(n, q) for n, q in zip(*unit, strict=True)] for unit in zip(groups, p, strict=True)]
    )
    return groups, tables.sum(axis=1), tables.sum(axis=0)


def pyei_table(groups: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """(R, C) posterior mean of PyEI's multinomial-Dirichlet model."""
    from pyei import RowByColumnEI

    model, people = RowByColumnEI(model_name="multinomial-dirichlet"), groups.sum(axis=1)
    names = [[str(k) for k in range(side.shape[1])] for side in (groups, votes)]
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shares = [(side / people[:, None]).T for side in (groups, votes)]
        model.fit(*shares, people, *names, draws=500, tune=500, chains=2, random_seed=0, progressbar=False)
    return groups.sum(axis=0)[:, None] * model.posterior_mean_voting_prefs


def margins() -> None:
    groups, votes, true = drawn_district()
    rivals = {
        "ecological inference": lambda: EcologicalInference(random_state=0).fit(groups, votes).tables_[0],
        "linear programmes (nslphom)": lambda: LinearProgrammeTables().fit(groups, votes).tables_[0],
        "least squares": lambda: LeastSquaresTables().fit(groups, votes).tables_[0],
    }
    if importlib.util.find_spec("pyei"):
        rivals["PyEI, 2 chains of 500 draws"] = lambda: pyei_table(groups, votes)
    rows = []
    for name, infer in rivals.items():
        begin = time.perf_counter()
        table = infer()
        rows.append({"": name, "s": time.perf_counter() - begin})
        rows[-1] |= {"ratio": rows[-1]["s"] / rows[0]["s"], "index of error": 50 * abs(table - true).sum() / true.sum()}
    for row in rows[1:]:
        errors = f"index of error {rows[0]['index of error']:.1f}, its {row['index of error']:.1f}"
        compare(f"cross table of {len(groups)} places", rows[0]["s"], row[""], row["s"], note=errors)
    show(f"Cross table of {len(groups)} places, {true.shape[0]} groups by {true.shape[1]} options", rows)


def main() -> None:
    begin = time.perf_counter()
    cardinality_posterior([0.5, 0.5, 0.5], 1)
    cardinality_posterior(np.full((3, 3), 1 / 3), [1, 1, 1])
    CardinalityClassifier(l2=0.5).warm_up()
    print(f"compilation or reading it from the cache: {time.perf_counter() - begin:.1f} s")
    e_step()
    against_size()
    beside_peers()
    classes()
    fits()
    margins()


if __name__ == "__main__":
    main()
