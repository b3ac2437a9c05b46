"""Speed, memory and information of vocabulary compression: with the paper's 28 million values and beyond, and beside what people use.

    python benchmarks/vocabulary.py [--largest N] [--only PART …]

Tables are simulated: power-law counts, planted click rates. Each line is measured in a process of its own, so that its
peak memory is that of the table and the method; compilation is not timed. Peers see the same table in the same run;
optbinning is compared where it is installed.
"""

import argparse
import multiprocessing
import resource
import time
import warnings

import numpy as np
from _common import compare

from agglearn.datasets import ClickTables
from agglearn.evaluation.information import mutual_information
from agglearn.vocabulary import (
    AgglomerativeQuantizer,
    BucketingQuantizer,
    DistributedSubmodularQuantizer,
    DivisiveQuantizer,
    FrequencyQuantizer,
    OptimalQuantizer,
    SubmodularQuantizer,
    compress_label_means,
)

METHODS = {
    "optimum": OptimalQuantizer,
    "submodular": SubmodularQuantizer,
    "distributed": DistributedSubmodularQuantizer,
    "agglomerative": AgglomerativeQuantizer,
    "divisive": DivisiveQuantizer,
    "bucketing": BucketingQuantizer,
    "frequency": FrequencyQuantizer,
}
CLUSTERS = 10_000
FEATURES, VALUES, ROWS, BUDGET = 26, 28_000_000, 37_000_000, 160_000  # the paper's data and largest budget


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts and label sums of n values: counts follow a power law, rates are Beta(2, 6)."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.zipf(1.6, n), 10**6)
    return counts, rng.binomial(counts, rng.beta(2, 6, n))


def apart(work, *arguments):
    """What `work` gives in a forked process, and that process's peak memory in GB."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def child():
        found = work(*arguments)
        theirs.send((found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))

    process = context.Process(target=child)
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def timed(method, *data) -> tuple[float, float, int]:
    """(seconds of a fit, relative loss, clusters)."""
    method.warm_up()
    start = time.perf_counter()
    method.fit(*data)
    return time.perf_counter() - start, method.relative_loss_, method.n_clusters_


def one_feature(n: int) -> None:
    print(f"\nOne feature of {n:,} values, {CLUSTERS:,} clusters")
    data = table(n)
    best = None
    for name, method in METHODS.items():
        (seconds, loss, clusters), peak = apart(timed, method(CLUSTERS), *data)
        best = best or loss
        print(
            f"  {name:14s} {seconds:7.2f} s  {peak:5.2f} GB  loss {loss:.2e}  {loss / best:9.2f} × optimum  {clusters:,} clusters"
        )


def exponents(largest: int) -> None:
    sizes = [int(s) for s in (1e4, 1e5, 1e6, 1e7) if s <= largest]
    print(f"\nSeconds against the number of values, one percent of them as clusters: {sizes[0]:,} to {sizes[-1]:,}")
    for name, method in METHODS.items():
        seconds = [apart(timed, method(0.01), *table(n))[0][0] for n in sizes]
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        shown = "  ".join(f"{s:8.3f}" for s in seconds)
        print(f"  {name:14s} {shown}  n^{slope:.2f}")


def whole_log(scale: float) -> None:
    values, rows, budget = (int(v * scale) for v in (VALUES, ROWS, BUDGET))
    print(f"\n{values:,} values of {FEATURES} features, {rows:,} records, one budget of {budget:,} clusters")

    def work(method):
        method.warm_up()
        start = time.perf_counter()
        tables = ClickTables(n_values=values, n=rows, n_test=1000).draw(0).train
        drawn = time.perf_counter() - start
        method.fit(tables)
        return drawn, time.perf_counter() - start - drawn, method.relative_loss_

    for name in ("optimum", "submodular", "agglomerative", "frequency"):
        (drawn, seconds, loss), peak = apart(work, METHODS[name](budget))
        print(f"  {name:14s} drawn in {drawn:5.1f} s, compressed in {seconds:5.1f} s  {peak:5.2f} GB  loss {loss:.2e}")


def peers(n: int, clusters: int) -> None:
    print(f"\nOne feature of {n:,} values and its records, {clusters} clusters: information kept, of all there is")
    counts, sums = table(n, 1)
    counts = np.minimum(counts, 1000)
    sums = np.minimum(sums, counts)
    whole = mutual_information(counts, sums)
    for name, method in METHODS.items():
        (seconds, loss, used), _ = apart(timed, method(clusters), counts, sums)
        print(f"  {name:44s} {1 - loss:.6f}  {seconds:8.3f} s  {used} clusters")
        if name == "optimum":
            optimum = seconds, 1 - loss
    values = np.repeat(np.arange(n), counts)
    y = np.concatenate([np.repeat([1, 0], (c, m - c)) for c, m in zip(sums, counts, strict=True)])
    print(f"  on the {len(y):,} records:")
    for name, labels_of in PEERS.items():
        start = time.perf_counter()
        try:
            with warnings.catch_warnings(action="ignore"):
                labels = labels_of(values, y, clusters)
        except ImportError:
            print(f"  {name:44s} not installed")
            continue
        seconds = time.perf_counter() - start
        kept = mutual_information(np.bincount(labels), np.bincount(labels, y))
        note = f"information kept {optimum[1]:.5f}, its {kept / whole:.5f}"
        compare(f"{n:,} values into {clusters} clusters", optimum[0], name, seconds, note=note)
        print(f"  {name:44s} {kept / whole:.6f}  {seconds:8.3f} s  {len(np.unique(labels))} clusters")


def _target_encoded(values, y):
    from sklearn.preprocessing import TargetEncoder

    encoder = TargetEncoder(smooth=1e-9, target_type="binary").fit(values[:, None], y)
    return encoder.transform(values[:, None])


def _bins(strategy):
    def labels(values, y, clusters):
        from sklearn.preprocessing import KBinsDiscretizer

        how = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
        bins = KBinsDiscretizer(clusters, encode="ordinal", strategy=strategy, subsample=None, **how)
        return bins.fit_transform(_target_encoded(values, y))[:, 0].astype(int)

    return labels


def _tree(values, y, clusters):
    from sklearn.tree import DecisionTreeClassifier

    x = _target_encoded(values, y)
    return DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=clusters).fit(x, y).apply(x)


def _optbinning_categories(values, y, clusters):
    from optbinning import OptimalBinning

    found = OptimalBinning(dtype="categorical", max_n_prebins=clusters, max_n_bins=clusters, cat_cutoff=None,
                           min_prebin_size=1e-6, monotonic_trend=None, time_limit=20)  # fmt: skip
    return np.unique(found.fit_transform(values.astype(str).astype(object), y, metric="indices"), return_inverse=True)[
        1
    ]


def _optbinning_rates(values, y, clusters):
    from optbinning import OptimalBinning

    found = OptimalBinning(dtype="numerical", max_n_prebins=2 * clusters, max_n_bins=clusters, min_prebin_size=1e-6,
                           monotonic_trend=None, time_limit=20)  # fmt: skip
    return found.fit_transform(_target_encoded(values, y)[:, 0], y, metric="indices").astype(int)


PEERS = {
    "scikit-learn TargetEncoder, KBins quantile": _bins("quantile"),
    "scikit-learn TargetEncoder, KBins uniform": _bins("uniform"),
    "scikit-learn TargetEncoder, KBins kmeans": _bins("kmeans"),
    "scikit-learn TargetEncoder, entropy tree": _tree,
    "optbinning OptimalBinning, categorical": _optbinning_categories,
    "optbinning OptimalBinning, target-encoded": _optbinning_rates,
}


def real_labels(n: int, clusters: int) -> None:
    """Variance of a real-valued label that clusters explain, as a fraction of that of the values' means, and seconds."""
    rng = np.random.default_rng(0)
    counts = np.minimum(rng.zipf(1.6, n), 1000)
    values = np.repeat(np.arange(n), counts)
    y = rng.gamma(2.0, rng.gamma(3.0, 1.0, n)[values])
    means = np.bincount(values, y) / counts
    print(f"\nreal-valued label, {n:,} values, {len(y):,} records, {clusters} clusters")
    compress_label_means([1, 1], [0.0, 1.0], 1)  # compiled
    whole = counts @ (means - y.mean()) ** 2
    peers = {
        "optimum": lambda: compress_label_means(counts, counts * means, clusters)[0][values],
        "scikit-learn DecisionTreeRegressor on means": lambda: _regression_tree(means[values][:, None], y, clusters),
        "optbinning ContinuousOptimalBinning": lambda: _optbinning_means(values, y, clusters),
    }
    for name, labels_of in peers.items():
        start = time.perf_counter()
        try:
            with warnings.catch_warnings(action="ignore"):
                labels = np.unique(labels_of(), return_inverse=True)[1]
        except ImportError:
            print(f"  {name:44s} not installed")
            continue
        seconds, sizes = time.perf_counter() - start, np.bincount(labels)
        explained = sizes @ (np.bincount(labels, y) / sizes - y.mean()) ** 2
        if name == "optimum":
            optimum = seconds, explained / whole
        else:
            note = f"variance explained {optimum[1]:.5f}, its {explained / whole:.5f}"
            compare(f"real labels: {n:,} values into {clusters} clusters", optimum[0], name, seconds, note=note)
        print(f"  {name:44s} {explained / whole:.6f}  {seconds:8.3f} s  {len(sizes)} clusters")


def _regression_tree(x, y, clusters):
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_leaf_nodes=clusters).fit(x, y).apply(x)


def _optbinning_means(values, y, clusters):
    from optbinning import ContinuousOptimalBinning

    found = ContinuousOptimalBinning(dtype="categorical", max_n_prebins=clusters, max_n_bins=clusters, cat_cutoff=None,
                                     min_prebin_size=1e-6, monotonic_trend=None, time_limit=20)  # fmt: skip
    return found.fit_transform(values.astype(str).astype(object), y, metric="indices")


PARTS = {
    "peers": lambda largest: peers(3000, 20),
    "real": lambda largest: real_labels(3000, 20),
    "feature": one_feature,
    "exponents": exponents,
    "log": lambda largest: whole_log(min(1.0, largest / 1e7)),
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--largest", type=float, default=1e7, help="values of the largest feature (default: 10 million)"
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="default: all")
    chosen = parser.parse_args()
    for part in chosen.only:
        PARTS[part](int(chosen.largest))
