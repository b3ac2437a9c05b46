"""Prices of planned runs: medians of what runs in the archive took."""

from pathlib import Path

import numpy as np
import pandas as pd

from agglearn_workflow.archive import store
from agglearn_workflow.plan import IDENTITY, Plan

COSTS = ["cpu_seconds", "peak_memory"]
# A run is priced by the archived runs with equal values in these columns, in the first group that has any. Runs of other
# experiments have other sizes: they would price hours as seconds.
GROUPS = (
    [field for field in IDENTITY if field != "seed"],
    ["experiment", "dataset", "method"],
    ["experiment", "method"],
)


def price_runs(plan: Plan, folder: Path | str) -> pd.DataFrame:
    """The runs of a plan with their costs (NaN: no price), and whether the archive in a folder lacks them."""
    facts = [run.facts for name in plan.experiments for run in store.read(folder, name).values()]
    archived = pd.DataFrame(facts, columns=[*IDENTITY, "recipe", *COSTS]).astype(dict.fromkeys(COSTS, float))
    runs = [run for name in plan.experiments for run in plan.runs(name)]
    planned = pd.DataFrame([run.identity | {"recipe": run.recipe} for run in runs])
    prices = pd.DataFrame(np.nan, planned.index, COSTS)
    for fields in GROUPS:
        medians = archived.groupby(fields)[COSTS].median()
        prices = prices.fillna(planned[fields].join(medians, on=fields)[COSTS])
    return planned.join(prices).assign(lacking=~planned["recipe"].isin(archived["recipe"]))


def price_plan(plan: Plan, folder: Path | str) -> pd.DataFrame:
    """Sums by experiment, the cheapest first, unpriced ones last. `peak_memory` (bytes) is that of the largest run."""
    runs = price_runs(plan, folder)
    runs = runs.assign(
        runs=1, lacking_seconds=runs["cpu_seconds"].where(runs["lacking"], 0), unpriced=runs["cpu_seconds"].isna()
    )
    experiments = runs.groupby("experiment")
    table = experiments[["runs", "cpu_seconds", "lacking", "lacking_seconds", "unpriced"]].sum()
    table = table.join(experiments["peak_memory"].max()).assign(is_unpriced=table["unpriced"] > 0)
    return table.sort_values(["is_unpriced", "lacking_seconds", "experiment"]).drop(columns="is_unpriced")


def affordable(table: pd.DataFrame, hours: float) -> pd.DataFrame:
    """The cheapest experiments that fit into some CPU hours together, of those that lack runs and have all prices."""
    table = table[(table["lacking"] > 0) & (table["unpriced"] == 0)]
    return table[table["lacking_seconds"].cumsum() <= 3600 * hours]
