"""Maximum entropy from noisy tables beside Private-PGM (McKenna, Sheldon, Miklau 2019), where its junction tree fits.

    python benchmarks/noisy_maxent.py

Fair's survey (in statsmodels), five features: all pairs with the label make one clique of 10,080 cells. Private-PGM is the
package mbi (Apache 2.0, pip install mbi); without it its rows are left out. Test NLLH, mean over seeds of split and noise.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm

from agglearn.errors import NoiseIgnored
from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import MaxEntClassifier, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import project_tables
from agglearn.observations.release import release_tables
from agglearn.privacy import draw_seeded

FEATURES = ["rate_marriage", "age", "yrs_married", "children", "religious"]
EPSILONS, SEEDS, LABEL = (0.1, 0.3, 1.0, 3.0, 10.0), range(3), "label"


def survey() -> pd.DataFrame:
    data = sm.datasets.fair.load_pandas().data
    return data[FEATURES].assign(label=(data["affairs"] > 0).astype(int))


def ours(kind, tables: ContingencyTables, test: pd.DataFrame) -> np.ndarray:
    warnings.simplefilter("ignore", NoiseIgnored)  # which plain training does on purpose here
    return kind(3000, max_iter=300, l2_theta=16.0, random_state=0).fit(tables).predict_proba(test)[:, 1]


def private_pgm(tables: ContingencyTables, test: pd.DataFrame) -> np.ndarray:
    """P(Y=1) under the model that Private-PGM estimates from the same noisy counts and label sums."""
    from mbi import Domain, LinearMeasurement, estimation

    names, sizes = [*tables.names, LABEL], [*map(int, tables.encoder.sizes), 2]
    measured = []
    for key in tables.tables:
        clique, (d, c) = tuple(tables.names[i] for i in key), tables.dense(*key)
        measured.append(LinearMeasurement(d.ravel(), clique, stddev=tables.noise.scale))
        measured.append(LinearMeasurement(c.ravel(), (*clique, LABEL), stddev=tables.noise.scale, query=OfLabelOne()))
    model = estimation.MirrorDescent().estimate(Domain(names, sizes), measured, known_total=tables.total, iters=2000)
    joint = np.asarray(model.project(names).datavector(flatten=False))
    cells = joint[tuple(tables.encoder.encode(test).T)]
    return (cells[:, 1] + 1e-9) / (cells.sum(axis=1) + 2e-9)


@dataclass(frozen=True)
class OfLabelOne:
    """The half of a factor that has the label 1, its last attribute."""

    def __call__(self, factor):
        return factor.datavector(flatten=False)[..., 1].ravel()

    def op_norm_sq(self) -> float:
        return 1.0


METHODS = {
    "plain": lambda t, test: ours(MaxEntClassifier, t, test),
    "plain, projected": lambda t, test: ours(MaxEntClassifier, project_tables(t), test),
    "noise-aware": lambda t, test: ours(NoiseAwareMaxEntClassifier, t, test),
    "noise-aware, projected": lambda t, test: ours(NoiseAwareMaxEntClassifier, project_tables(t), test),
    "Private-PGM (mbi)": private_pgm,
}


def compared(methods: dict) -> pd.DataFrame:
    frame, rows = survey(), []
    for seed in SEEDS:
        held = np.random.default_rng(seed).random(len(frame)) < 0.2
        test, y = frame[held], frame[LABEL][held].to_numpy()
        exact = ContingencyTables.from_records(frame[~held], LABEL, categorical=FEATURES)
        for epsilon in EPSILONS:
            noisy = release_tables(exact, epsilon, 1e-5, draw=draw_seeded(seed))
            for name, method in methods.items():
                begin = time.perf_counter()
                p = method(noisy, test)
                rows.append((name, epsilon, normalized_log_likelihood(y, p), time.perf_counter() - begin))
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
