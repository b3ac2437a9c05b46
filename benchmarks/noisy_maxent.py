"""Maximum entropy from noisy tables beside Private-PGM (McKenna, Sheldon, Miklau 2019), where its junction tree fits.

    python benchmarks/noisy_maxent.py

Fair's survey (in statsmodels), five features: all pairs with the label make one clique of 10,080 cells. Private-PGM is the
package mbi (Apache 2.0, pip install mbi); without it its rows are left out. Test NLLH, mean over seeds of split and noise.
Private-PGM has no penalty. Its iterations and pseudo-records are chosen for each release, in its favour: by a fifth of
the training records, held out of a second release under the same budget. Ours has one penalty for all and no such records.
"""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm

from agglearn.errors import NoiseIgnored
from agglearn.evaluation import normalized_log_likelihood
from agglearn.evaluation.metrics import log_likelihood
from agglearn.maxent import MaxEntClassifier, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import project_tables
from agglearn.observations.release import release_tables
from agglearn.privacy import draw_seeded

FEATURES = ["rate_marriage", "age", "yrs_married", "children", "religious"]
EPSILONS, SEEDS, LABEL = (0.1, 0.3, 1.0, 3.0, 10.0), range(3), "label"
STAGES, PSEUDO_RECORDS = (50, 250), (1e-9, 0.1, 1.0, 10.0)  # iterations after one another; in each cell


@dataclass(frozen=True)
class Release:
    """Noisy tables, and for tuning those of four fifths of the records, with the fifth that is held out."""

    tables: ContingencyTables
    without_held_out: ContingencyTables
    held_out: pd.DataFrame
    y: np.ndarray


def survey() -> pd.DataFrame:
    data = sm.datasets.fair.load_pandas().data
    return data[FEATURES].assign(label=(data["affairs"] > 0).astype(int))


def ours(kind, tables: ContingencyTables, test: pd.DataFrame) -> np.ndarray:
    warnings.simplefilter("ignore", NoiseIgnored)  # which plain training does on purpose here
    return kind(3000, max_iter=300, l2_theta=16.0, random_state=0).fit(tables).predict_proba(test)[:, 1]


def private_pgm(release: Release, test: pd.DataFrame) -> np.ndarray:
    """P(Y=1) under the model that Private-PGM estimates from the noisy counts and label sums, stopped early."""
    scores = {
        (stage, pseudo): log_likelihood(release.y, label_probability(joint, release, release.held_out, pseudo))
        for stage, joint in enumerate(joints(release.without_held_out))
        for pseudo in PSEUDO_RECORDS
    }
    stage, pseudo = max(scores, key=scores.get)
    return label_probability(list(joints(release.tables))[stage], release, test, pseudo)


def joints(tables: ContingencyTables) -> Iterator[np.ndarray]:
    """Expected records of every state of features and label, after each stage."""
    from mbi import Domain, LinearMeasurement, estimation

    names, sizes = [*tables.names, LABEL], [*map(int, tables.encoder.sizes), 2]
    measured, model = [], None
    for key in tables.tables:
        clique, (d, c) = tuple(tables.names[i] for i in key), tables.dense(*key)
        measured.append(LinearMeasurement(d.ravel(), clique, stddev=tables.noise.scale))
        measured.append(LinearMeasurement(c.ravel(), (*clique, LABEL), stddev=tables.noise.scale, query=OfLabelOne()))
    for iterations in STAGES:
        model = estimation.MirrorDescent().estimate(
            Domain(names, sizes), measured, known_total=tables.total, iters=iterations, warm_start=model
        )
        yield np.asarray(model.project(names).datavector(flatten=False))


def label_probability(joint: np.ndarray, release: Release, frame: pd.DataFrame, pseudo: float) -> np.ndarray:
    cells = joint[tuple(release.tables.encoder.encode(frame).T)]
    rate = release.tables.positives / release.tables.total
    return (cells[:, 1] + pseudo * rate) / (cells.sum(axis=1) + pseudo)


@dataclass(frozen=True)
class OfLabelOne:
    """The half of a factor that has the label 1, its last attribute."""

    def __call__(self, factor):
        return factor.datavector(flatten=False)[..., 1].ravel()

    def op_norm_sq(self) -> float:
        return 1.0


METHODS = {
    "plain": lambda r, test: ours(MaxEntClassifier, r.tables, test),
    "plain, projected": lambda r, test: ours(MaxEntClassifier, project_tables(r.tables), test),
    "noise-aware": lambda r, test: ours(NoiseAwareMaxEntClassifier, r.tables, test),
    "noise-aware, projected": lambda r, test: ours(NoiseAwareMaxEntClassifier, project_tables(r.tables), test),
    "Private-PGM (mbi)": private_pgm,
}


def compared(methods: dict) -> pd.DataFrame:
    frame, rows = survey(), []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        of_test, of_tuning = rng.random(len(frame)) < 0.2, rng.random(len(frame)) < 0.2
        test, held_out = frame[of_test], frame[~of_test & of_tuning]
        exact, fewer = (
            ContingencyTables.from_records(frame[chosen], LABEL, categorical=FEATURES)
            for chosen in (~of_test, ~of_test & ~of_tuning)
        )
        for epsilon in EPSILONS:
            noisy, second = (release_tables(t, epsilon, 1e-5, draw=draw_seeded(seed)) for t in (exact, fewer))
            release = Release(noisy, second, held_out, held_out[LABEL].to_numpy())
            for name, method in methods.items():
                begin = time.perf_counter()
                score = normalized_log_likelihood(test[LABEL].to_numpy(), method(release, test))
                rows.append((name, epsilon, score, time.perf_counter() - begin))
    return pd.DataFrame(rows, columns=["method", "epsilon", "nllh", "seconds"])


def main() -> None:
    methods = dict(METHODS)
    try:
        import mbi  # noqa: F401
    except ImportError:
        methods.pop("Private-PGM (mbi)")
        print("Private-PGM is left out: pip install mbi")
    NoiseAwareMaxEntClassifier().warm_up()
    found = compared(methods)
    table = found.pivot_table(index="method", columns="epsilon", values="nllh", sort=False)
    table["seconds"] = found.groupby("method")["seconds"].median()
    print(table.to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
