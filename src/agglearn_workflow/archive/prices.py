"""What the archive has of a plan, and prices of planned runs: medians of what runs in the archive took."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agglearn.text import bytes_text
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


def runs_of(plan: Plan, folder: Path | str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of a plan, and the runs that the archive in a folder has of its experiments."""
    facts = ["recipe", *COSTS, "commit", "machine", "ended"]
    archived = pd.concat([store.read_facts(folder, name, facts) for name in plan.experiments], ignore_index=True)
    archived["day"] = pd.to_datetime(archived.pop("ended"), unit="s").dt.date.astype(str)
    planned = [run.identity | {"run": run.key, "recipe": run.recipe} for n in plan.experiments for run in plan.runs(n)]
    return pd.DataFrame(planned), archived


def summarise(plan: Plan, folder: Path | str) -> dict[str, dict]:
    """Facts on the archived runs of each experiment, and under `all` of all together."""
    planned, archived = runs_of(plan, folder)
    runs = planned.merge(archived.drop(columns=[*IDENTITY]), "left", "run", suffixes=("", "_archived"))
    runs["archived"] = runs["recipe_archived"].notna()
    runs["outdated"] = runs["archived"] & (runs["recipe"] != runs["recipe_archived"])
    return {name: _facts_on(group) for name, group in runs.groupby("experiment", sort=False)} | {"all": _facts_on(runs)}


def _facts_on(runs: pd.DataFrame) -> dict[str, Any]:
    """Numbers of runs, sorted commits and machines, first and last day, CPU seconds, number of complete experiments."""
    texts = {f"{name}s": sorted(set(runs[name].dropna()) - {""}) for name in ("commit", "machine", "day")}
    return texts | {
        "planned": len(runs),
        "archived": int(runs["archived"].sum()),
        "outdated": int(runs["outdated"].sum()),
        "days": texts["days"][:1] + texts["days"][1:][-1:],
        "cpu_seconds": runs["cpu_seconds"].sum(),
        "complete": int(runs.groupby("experiment")["archived"].all().sum()),
    }


def price_runs(plan: Plan, folder: Path | str) -> pd.DataFrame:
    """The runs of a plan with their costs (NaN: no price), and whether the archive in a folder lacks them."""
    planned, archived = runs_of(plan, folder)
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


def listing(table: pd.DataFrame) -> str:
    """The table as text, with a line for all experiments."""
    total = table.agg({name: "max" if name == "peak_memory" else "sum" for name in table})
    rows = pd.concat([table, total.to_frame("all").T])
    head = ["runs", "CPU min", "to run", "CPU min", "memory", "claims"]
    return pd.DataFrame([_texts(row) for _, row in rows.iterrows()], rows.index, head).to_string()


def _texts(row: pd.Series) -> list[str]:
    def minutes(seconds: float) -> str:
        bound = "≥ " if row["unpriced"] else ""
        return f"{bound}{seconds / 60:,.1f}" if row["unpriced"] < row["runs"] or not row["runs"] else "no price"

    memory = bytes_text(round(row["peak_memory"])) if row["peak_memory"] > 0 else "?"
    counts = [f"{row[name]:.0f}" for name in ("runs", "lacking", "claims")]
    return [counts[0], minutes(row["cpu_seconds"]), counts[1], minutes(row["lacking_seconds"]), memory, counts[2]]
