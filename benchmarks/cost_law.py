"""Runs from which `agglearn cost` without data predicts, and the fit of its law.

    python benchmarks/cost_law.py run ../shared/data results/records   # writes benchmarks/cost_runs.csv, about 15 minutes
    python benchmarks/cost_law.py fit                                  # writes the coefficients, prints the errors

`run` reads prepared records of the workflow (`snakemake data`) and a mirror of the census files. Each data set is
released at several budgets, with all its records (48,000 at most) and with 6,000 of them.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from agglearn.cost import measure_cost
from agglearn.datasets import ClickLog, LogLinear, RecordStore
from agglearn.encoding import FrameEncoder

RUNS = Path(__file__).with_name("cost_runs.csv")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (48_000, 6_000)
LARGE = 100  # values above which a column of names is hashed
STORED = (
    "fair", "breast_cancer", "anes96", "adult", "bank", "bank_without_duration", "acs_disability", "acs_hearing",
    "criteo_dac_sample", "adkdd21_eleven",
)  # fmt: skip
NAMES = {"SEX", "RAC1P", "HISP", "CIT", "MAR", "ESR", "COW", "MIL", "SCHL", "DIS", "JWTRNS"}  # numbers that are names
PERSON = ["AGEP", "SCHL", "MAR", "SEX", "RAC1P", "CIT", "DIS", "MIL"]
CENSUS = {  # records, label and features of tasks on the census, as Ding et al. 2021 define them
    "acs_income": ("AGEP > 16 and WKHP >= 1", "PINCP > 50000", [*PERSON, "COW", "WKHP", "HISP", "JWMNP", "JWTRNS"]),
    "acs_coverage": ("AGEP < 65 and PINCP < 30000", "PUBCOV == 1", [*PERSON, "ESR", "PINCP", "HISP"]),
    "acs_employment": ("AGEP > 16 and AGEP < 90", "ESR == 1", [*PERSON, "HISP"]),
    "acs_travel": ("AGEP > 16 and JWMNP >= 1", "JWMNP > 20", [*PERSON, "COW", "JWTRNS", "POVPIP", "WKHP"]),
}


def data_sets(mirror: Path, records: Path) -> Iterator[tuple[str, pd.DataFrame, np.ndarray, list[str]]]:
    """(name, raw features, labels, columns of names) of every data set."""
    for name in STORED:
        store = RecordStore.open(records / name)
        frame, names = store.features(), [c for c in store.header["categorical"] if not c.startswith("I")]
        for column in (c for c in names if frame[c].nunique() > LARGE):
            frame[column] = pd.util.hash_array(frame[column].astype(str).to_numpy()) % LARGE
        yield name, frame, store.labels(), names
    persons = pd.read_parquet(mirror / "acs_pums_2024/p_25.parquet")
    for name, (rows, label, features) in CENSUS.items():
        part = persons.query(rows)
        yield name, part[features], part.eval(label).to_numpy().astype(int), [f for f in features if f in NAMES]
    for name, drawn in {
        "click_log": ClickLog(n_values=300, n=60_000).draw(0),
        "loglinear": LogLinear(n_features=6, n_modalities=8, n=60_000).draw(0),
    }.items():
        yield name, drawn.frame, drawn.y, []


def run(mirror: Path, records: Path) -> None:
    warnings.simplefilter("ignore")
    results = []
    for name, frame, y, categorical in data_sets(mirror, records):
        order = np.random.default_rng(0).permutation(len(y))
        for n in sorted({min(size, len(y)) for size in SIZES}):
            x, labels = frame.iloc[order[:n]].reset_index(drop=True), np.asarray(y)[order[:n]]
            sizes = FrameEncoder.fit(x, categorical=categorical).sizes
            scores = measure_cost(x.assign(label=labels), "label", epsilons=EPSILONS, categorical=categorical, splits=3)
            keys = ["release", "protected", "epsilon"]
            mean = scores.groupby(keys, sort=False)[["nllh", "auc"]].mean().round(4).reset_index()
            facts = {"dataset": name, "rows": n, "features": len(sizes), "values": round(float(sizes.mean()), 2)}
            results.append(mean.assign(**facts, base_rate=round(labels.mean(), 4)))
            pd.concat(results).to_csv(RUNS, index=False)
            print(name, n, sizes.tolist(), flush=True)


if __name__ == "__main__":
    run(*map(Path, sys.argv[2:]))
