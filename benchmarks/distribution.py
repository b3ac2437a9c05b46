"""Speed of the embeddings of bags: beside scikit-learn and NumPy, from disk in bounded memory, on census persons.

    python benchmarks/distribution.py

Compilation is not timed.
"""

import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from _common import compare, exponentials, fastest, products, show
from sklearn.cluster import MiniBatchKMeans
from sklearn.kernel_approximation import RBFSampler

from agglearn.distribution import (
    BagOfWordsEmbedding,
    DeepSetsRegressor,
    FisherVectorEmbedding,
    MomentEmbedding,
    OrthogonalRandomEmbedding,
    RandomFourierEmbedding,
    set_batches,
)
from agglearn.observations import Bags

ROOT = Path(__file__).resolve().parents[1]


def bags_of(n: int, size: int, d: int) -> Bags:
    x = np.random.default_rng(0).standard_normal((n * size, d), dtype=np.float32)
    return Bags(x, np.arange(0, n * size + 1, size))


def sampler_means(bags: Bags, embedding) -> np.ndarray:
    """Means of scikit-learn's random features of the same width, a bag's rows added up by NumPy."""
    sampler = RBFSampler(gamma=0.5 / embedding.bandwidth_**2, n_components=embedding.n_sums_, random_state=0).fit(
        bags.X[:10]
    )
    features = sampler.transform(bags.X)
    return np.add.reduceat(features, bags.offsets[:-1], axis=0) / bags.sizes[:, None]


def words_counted(bags: Bags, embedding) -> np.ndarray:
    """Histograms of scikit-learn's nearest centres."""
    k = len(embedding.centres_)
    model = MiniBatchKMeans(k, n_init=1, max_iter=1).fit(bags.X[: 2 * k])
    model.cluster_centers_ = embedding.centres_
    found = model.predict(bags.X)
    return np.bincount(bags.bag_of * k + found, minlength=len(bags) * k).reshape(-1, k) / bags.sizes[:, None]


def fisher_by_numpy(bags: Bags, embedding) -> np.ndarray:
    """Fisher vectors bag by bag, in NumPy and single precision."""
    w, m, s = (a.astype(np.float32) for a in (embedding.weights_, embedding.means_, embedding.deviations_))
    out = np.empty((len(bags), 2 * m.size), np.float32)
    for b, (low, high) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        z = (bags.X[low:high, None, :] - m) / s
        score = np.log(w) - np.log(s).sum(axis=1) - 0.5 * (z * z).sum(axis=2)
        share = np.exp(score - score.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        first = np.einsum("nk,nkd->kd", share, z, optimize=True) / np.sqrt(w)[:, None]
        second = np.einsum("nk,nkd->kd", share, z * z - 1, optimize=True) / np.sqrt(2 * w)[:, None]
        out[b] = np.concatenate([first, second], axis=1).ravel() / (high - low)
    return out


PEERS = {
    "RFF, 512 frequencies": (RandomFourierEmbedding(512, random_state=0), "RBFSampler + grouped mean", sampler_means),
    "BOW, 200 words": (BagOfWordsEmbedding(200, random_state=0), "MiniBatchKMeans.predict + histogram", words_counted),
    "Fisher vector, 200": (FisherVectorEmbedding(200, random_state=0), "NumPy", fisher_by_numpy),
    "mean and covariance": (MomentEmbedding(), None, None),
}


def beside_peers(n: int = 200, size: int = 512, d: int = 32) -> None:
    bags, rows = bags_of(n, size, d), []
    for name, (embedding, peer, other) in PEERS.items():
        embedding.fit(bags)
        seconds, peers = fastest(lambda e=embedding: e.transform(bags)), np.nan
        if other:
            peers = fastest(lambda o=other, e=embedding: o(bags, e), 1)
            if name.startswith("Fisher"):  # two products with the means and squares, and an exponential of each score
                k = len(embedding.weights_)
                floor = n * size * k * (8 * d / products() + 1 / exponentials())
            else:
                floor = None
            compare(f"{n} bags of {size} × {d}: {name}", seconds, peer, peers, floor)
        row = {"": name, "M instances/s": n * size / seconds / 1e6, "MB/s": bags.X.nbytes / seconds / 1e6}
        rows.append(row | {"peer": peer, "its M instances/s": n * size / peers / 1e6, "ratio": peers / seconds})
        if peer and name[:3] != "RFF":  # random features of the peer are other features
            rows[-1]["largest difference"] = float(
                abs(other(bags.take(range(20)), embedding) - embedding.transform(bags.take(range(20)))).max()
            )
    show(f"{n} bags of {size} × {d}, features of the same width", rows)


def network_steps(n: int = 128, d: int = 32) -> None:
    """Steps of DeepSets and of attention pooling at the thesis's batch, in parts and with the batch at once."""
    parts, rows = set_batches.CACHED, []
    for pooling in ("mean", "attention"):
        for size in (512, 2048):
            bags = bags_of(n + 32, size, d)
            bags = Bags(bags.X, bags.offsets, target=np.random.default_rng(0).standard_normal(n + 32))
            seconds = {}
            for name, set_batches.CACHED in {"parts": parts, "batch at once": n * size}.items():
                fits = [DeepSetsRegressor(pooling=pooling, steps=k, n_validation=32, random_state=0) for k in (1, 21)]
                fits[0].fit(bags)  # compilation
                begin, end = (fastest(lambda f=f, b=bags: f.fit(b), 2) for f in fits)
                seconds[name] = (end - begin) / 20
            # products of φ, which their gradients take twice more; with attention the last layer, keys and values too
            last = 100 * 50 + 50 * (5 + 50) if pooling == "attention" else 0
            floor = n * size * (6 * (d * 50 + 50 * 100 + last) / products() + 150 / exponentials())
            line = f"step of {n} bags of {size} × {d}: DeepSets, {pooling}"
            compare(line, seconds["parts"], "batch at once", seconds["batch at once"], floor)
            rows.append({"pooling": pooling, "bag": size, "ms a step": 1e3 * seconds["parts"]})
            rows[-1] |= {"batch at once": 1e3 * seconds["batch at once"], "of floor": floor / seconds["parts"]}
    set_batches.CACHED = parts
    show(f"Networks, {n} bags of {d} covariates a step", rows)


def from_disk(n: int = 65_536, size: int = 512, d: int = 32) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        x = np.lib.format.open_memmap(path, "w+", np.float32, (n * size, d))
        rng = np.random.default_rng(0)
        for start in range(0, len(x), 1 << 20):
            x[start : start + (1 << 20)] = rng.standard_normal((min(1 << 20, len(x) - start), d), dtype=np.float32)
        x.flush()
        del x
        tracemalloc.start()
        bags = Bags(np.load(path, mmap_mode="c"), np.arange(0, n * size + 1, size))
        rows = []
        for name, embedding in {
            "RFF, 256 frequencies": OrthogonalRandomEmbedding(256),
            "BOW, 200 words": BagOfWordsEmbedding(200),
        }.items():
            embedding.fit(bags)
            tracemalloc.reset_peak()
            begin = time.perf_counter()
            vectors = embedding.transform(bags)
            seconds = time.perf_counter() - begin
            peak = tracemalloc.get_traced_memory()[1]
            rows.append(
                {
                    "": name,
                    "s": seconds,
                    "M instances/s": n * size / seconds / 1e6,
                    "peak MB": peak / 1e6,
                    "of these the result": vectors.nbytes / 1e6,
                }
            )
            del vectors
        tracemalloc.stop()
    show(f"{n:,} bags of {size} × {d} from disk, {n * size * d * 4 / 1e9:.1f} GB", rows)


def census(frequencies: int = 1024, components: int = 50) -> None:
    """From person files to the vectors of all regions."""
    from agglearn.datasets import Census
    from agglearn.datasets.fetching import obtain
    from agglearn.errors import AgglearnError
    from agglearn.tasks import census_design as regions
    from agglearn_workflow.config import loading

    found = loading.load(ROOT)
    entry = found["datasets"]["acs_2024"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        try:
            files = {name: Path(facts["path"]) for name, facts in obtain("acs_2024", entry, found, ROOT).items()}
        except AgglearnError as error:
            print(f"\ncensus persons: not available ({error})")
            return
        begin = time.perf_counter()
        read = Census.from_entry(entry).parse(files, out)["rows"]
        parsed = time.perf_counter()
        design = regions.voter_design(out, "shared", 0.0, components)
        bags = regions.region_bags(design, None, "all")
        encoded = time.perf_counter()
        vectors = OrthogonalRandomEmbedding(frequencies, random_state=0).fit_transform(bags)
        end = time.perf_counter()
    row = {
        "adult citizens": f"{read:,}",
        "read, s": parsed - begin,
        "encoded, s": encoded - parsed,
        "embedded, s": end - encoded,
        "together, s": end - begin,
    }
    show(f"Persons of the survey (3.4M records) to {vectors.shape[1]} features of {len(vectors)} regions", [row])


def main() -> None:
    begin = time.perf_counter()
    for embedding, *_ in PEERS.values():
        embedding.warm_up()
    print(f"compilation or reading it from the cache: {time.perf_counter() - begin:.1f} s")
    beside_peers()
    network_steps()
    from_disk()
    census()


if __name__ == "__main__":
    main()
