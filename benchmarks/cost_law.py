"""Runs from which `agglearn cost` without data predicts, and the fit of its law.

    python benchmarks/cost_law.py run ../shared/data results/records   # writes benchmarks/cost_runs.csv, about 15 minutes
    python benchmarks/cost_law.py fit                                  # writes the coefficients, prints the errors

`run` reads prepared records of the workflow (`snakemake data`) and a mirror of the census files. Each data set is
released at several budgets, with all its records (48,000 at most) and with 6,000 of them.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from agglearn.cost import law as law_module
from agglearn.cost.law import auc_of_nllh, nllh_of_auc, noise_ratio
from agglearn.cost.measuring import RECORDS, TESTED, measure_cost
from agglearn.datasets import ClickLog, LogLinear, RecordStore
from agglearn.encoding import FrameEncoder

RUNS = Path(__file__).with_name("cost_runs.csv")
LAW_FILE = Path(law_module.__file__).with_name("law.json")
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


def run(mirror: Path, records: Path, *chosen: Path) -> None:
    warnings.simplefilter("ignore")
    results = []
    for name, frame, y, categorical in data_sets(mirror, records):
        if chosen and Path(name) not in chosen:
            continue
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


# Data sets of one source, which are left out together.
SOURCES = {"bank_without_duration": "bank"} | {name: "acs" for name in (*CENSUS, "acs_disability", "acs_hearing")}
GOAL = 0.015


def read_runs() -> pd.DataFrame:
    """The runs, with the records that were learned from and the AUC of all of them."""
    runs = pd.read_csv(RUNS)
    best = runs[runs["release"] == RECORDS].set_index(["dataset", "rows"])["auc"].rename("best_auc")
    runs = runs[runs["release"] != RECORDS].join(best, on=["dataset", "rows"])
    source = runs["dataset"].replace(SOURCES)
    key = runs["release"] + ", " + runs["protected"]
    return runs.assign(source=source, key=key, rows=((1 - TESTED) * runs["rows"]).round().astype(int))


def explain(runs: pd.DataFrame, auc: float | None = None) -> pd.DataFrame:
    """What the law needs of each run: `best`, the NLLH of all records, and the ratio of noise."""
    best = [nllh_of_auc(auc or row.best_auc, row.base_rate) for row in runs.itertuples()]
    ratio = [
        noise_ratio(
            row.release, row.protected, row.rows, row.features, row.values, row.base_rate, b, row.epsilon,
            1 / (10 * row.rows),
        )
        for row, b in zip(runs.itertuples(), best, strict=True)
    ]  # fmt: skip
    return runs.assign(best=best, ratio=ratio)


def predict(runs: pd.DataFrame, law: list[float]) -> pd.Series:
    factor, c, a = law
    return runs["best"] * factor / (1 + (c * runs["ratio"]) ** a)


def fit_release(runs: pd.DataFrame) -> list[float]:
    """(factor, c, a) of one release, of least mean absolute error. Every source counts alike."""
    weights = 1 / runs["source"].map(runs["source"].value_counts())

    def loss(logs: np.ndarray) -> float:
        return float((weights * abs(predict(runs, np.exp(logs)) - runs["nllh"])).sum())

    fits = [minimize(loss, np.log([1, c, 0.8]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 5000}) for c in (0.1, 1, 10)]
    return [round(float(x), 4) for x in np.exp(min(fits, key=lambda f: f.fun).x)]


def left_out(runs: pd.DataFrame, auc: float | None) -> pd.DataFrame:
    """Each run with the prediction of a law that was fitted without its source."""
    parts = []
    known, asked = explain(runs), explain(runs, auc)
    for source in runs["source"].unique():
        for key, others in known[known["source"] != source].groupby("key", sort=False):
            part = asked[(asked["source"] == source) & (asked["key"] == key)]
            parts.append(part.assign(predicted=predict(part, fit_release(others))))
    table = pd.concat(parts)
    area = [auc_of_nllh(p, r) for p, r in zip(table["predicted"], table["base_rate"], strict=True)]
    return table.assign(nllh_error=abs(table["predicted"] - table["nllh"]), auc_error=abs(area - table["auc"]))


def fit() -> dict:
    """The law: coefficients, and errors that nine of ten predictions for another source keep."""
    runs = read_runs()
    middle = round(float(runs.groupby("source")["best_auc"].mean().median()), 3)
    releases = {key: fit_release(part) for key, part in explain(runs).groupby("key", sort=False)}
    errors: dict[str, dict] = {key: {} for key in releases}
    for known, auc in (("auc stated", None), ("auc unknown", middle)):
        table = left_out(runs, auc)
        for key, part in table.groupby("key"):
            errors[key][known] = [round(float(part[e].quantile(0.9)), 3) for e in ("nllh_error", "auc_error")]
        print(f"\n{known}: share of predictions within {GOAL} of the NLLH, {len(table)} runs of {table.source.nunique()} sources")
        within = table.assign(within=table["nllh_error"] <= GOAL)
        print(f"all {within['within'].mean():.2f}")
        print(within.pivot_table(index="key", columns="epsilon", values="within").round(2))
        print(within.groupby("source")["within"].mean().round(2).to_dict())
    return {"auc": middle, "releases": releases, "errors": errors}


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(*map(Path, sys.argv[2:]))
    else:
        law = fit()
        LAW_FILE.write_text(json.dumps(law, indent=1) + "\n")
