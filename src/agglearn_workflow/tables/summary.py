"""Summary of an experiment: measurements over seeds, beside the numbers that the source printed."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import stdtr, stdtrit

from agglearn.evaluation.intervals import LEVEL, Estimate
from agglearn.evaluation.verdicts import FAILS, HOLDS, UNDECIDED, Comparison, Region
from agglearn.text import count_text
from agglearn_workflow.plan import Plan, nested
from agglearn_workflow.run_summary import CELL

COLUMNS = [
    *CELL, "measure", "keys", "n", "mean", "low", "high", "unit", "reported", "printed", "place", "difference", "tolerance", "outcome",
    "status", "reason", "lost",
]  # fmt: skip
TEXT = dict.fromkeys(("measure", "keys", "printed", "place", "outcome", "reason", "lost"), object)
# Statuses of runs without numbers, the most urgent first.
WITHOUT = ("failed", "stale", "unavailable", "not archived", "stopped")


def load_rows(paths: Iterable[str | Path], plan: Plan, experiment: str) -> pd.DataFrame:
    """Rows of the runs of a plan. One of another recipe than today's is `stale`, or from the archive with a `mark`."""
    current = {r.key: r.recipe for r in plan.runs(experiment)}
    recipes: dict[str, str] = {}
    marks: dict[str, str] = {}
    tables = [pq.read_table(path) for path in paths]
    for table in tables:
        metadata = table.schema.metadata or {}
        recipes |= json.loads(metadata.get(b"recipes", b"{}"))
        marks |= json.loads(metadata.get(b"marks", b"{}"))
    rows = pa.concat_tables(tables).to_pandas()
    rows = rows[rows["run"].isin(current)].reset_index(drop=True)
    stale = rows["run"].isin([k for k, recipe in current.items() if recipes.get(k) != recipe])
    reason = "computed with other code, settings or packages than today's; run the workflow again"
    rows.loc[stale, ["status", "reason", "value"]] = "stale", reason, np.nan
    return rows.assign(mark=rows["run"].map(marks).astype(object)) if marks else rows


def summarise(rows: pd.DataFrame, experiment: dict) -> pd.DataFrame:
    """A row per cell, measure and keys, with mean and 95 % interval over seeds, or a status with its reason."""
    scalars, keys = rows[rows["step"].isna()], [*CELL, "measure", "keys"]
    good = scalars[(scalars["status"] == "ok") & scalars["measure"].notna()]
    if "baseline" in experiment:
        good = pd.concat([good, differences(good, experiment["baseline"], experiment["measures"])], ignore_index=True)
    good = good.astype({"value": float, "overlap": float})
    groups = good.groupby(keys, dropna=False, sort=False)
    overlap = groups["overlap"].max().fillna(0.0).to_numpy()
    mean, low, high = intervals(good["value"].to_numpy(), groups.ngroup().to_numpy(), overlap).T
    table = good.drop_duplicates(keys)[[*keys, "unit"]]
    table = table.assign(n=groups["value"].count().to_numpy(), mean=mean, low=low, high=high, status="ok")
    table["keys"] = table["keys"].where(table["keys"].notna())
    table = table.reindex(columns=COLUMNS).reset_index(drop=True).astype(TEXT)
    table = _with_problems(table, scalars[scalars["status"] != "ok"].drop_duplicates("run"))
    return _with_reported(_with_marks(table, scalars), experiment)[COLUMNS]


def intervals(values: np.ndarray, group: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """(n_groups, 3) `mean_interval` of each group of values, those with equally many finite values at once."""
    is_finite = np.isfinite(values)
    values = values[is_finite][np.argsort(group[is_finite], kind="stable")]
    counts = np.bincount(group[is_finite], minlength=len(overlap))
    starts, intervals = np.cumsum(counts) - counts, np.empty((len(overlap), 3))
    for n in np.unique(counts):
        same = np.flatnonzero(counts == n)
        estimate = Estimate.of_mean(values[starts[same, None] + np.arange(n)], overlap[same])
        intervals[same] = np.column_stack([estimate.value, *estimate.interval()])
    return intervals


def differences(good: pd.DataFrame, baseline: str, measures: list[str]) -> pd.DataFrame:
    """Measures `<measure>_minus_<baseline>`, paired by data, seed and tested units if the baseline has one value."""
    match = ["dataset", "dataset_params", "seed", "measure", "keys", "tested"]
    base = good[(good["method"] == baseline) & good["measure"].isin(measures)]
    base = base.drop_duplicates(match, keep=False) if base.duplicated(match).any() else base
    compared = good[(good["method"] != baseline) & good["measure"].isin(measures)]
    joined = compared.merge(base[[*match, "value"]], on=match, suffixes=("", "_base"))
    joined["value"] -= joined.pop("value_base")
    joined["measure"] += f"_minus_{baseline}"
    return joined


def _with_problems(table: pd.DataFrame, bad: pd.DataFrame) -> pd.DataFrame:
    """Add runs without a result, by the first status in `WITHOUT`: to their cell, which has `lost` then, or as rows."""
    extra, rows = [], _rows_of_cells(table)
    for keys, group in bad.groupby(CELL, sort=False):
        worst = group[group["status"] == min(group["status"], key=WITHOUT.index)]
        status, reason = worst.iloc[0][["status", "reason"]]
        if keys in rows:
            table.loc[rows[keys], ["lost", "reason"]] = status, f"{count_text(len(worst), 'seed')} {status}: {reason}"
        else:
            extra.append({**dict(zip(CELL, keys, strict=True)), "n": 0, "status": status, "reason": reason})
    return pd.concat([table, pd.DataFrame(extra, columns=COLUMNS)], ignore_index=True) if extra else table


def _rows_of_cells(table: pd.DataFrame) -> dict[tuple, np.ndarray]:
    """Cell → labels of its rows. The index is that of a new table."""
    return table.groupby(CELL, sort=False).indices


def _with_marks(table: pd.DataFrame, scalars: pd.DataFrame) -> pd.DataFrame:
    if "mark" not in scalars:
        return table
    rows = _rows_of_cells(table)
    for keys, marks in scalars.drop_duplicates("run").groupby(CELL, sort=False)["mark"]:
        if stated := marks.dropna().tolist():
            mark = f"{len(stated)} of {count_text(len(marks), 'seed')} {stated[0]}"
            reasons = table.loc[rows[keys], "reason"]
            table.loc[rows[keys], "reason"] = [f"{r}; {mark}" if isinstance(r, str) else mark for r in reasons]
    return table


def _with_reported(table: pd.DataFrame, experiment: dict) -> pd.DataFrame:
    table = table.astype(TEXT)
    for entry in experiment["reported"]:
        rows = table.index[_matches(table, entry) & (table["measure"] == entry["measure"])]
        if not len(rows):  # nothing is measured: the printed number has a row with the reason
            without = table.index[_matches(table, entry) & table["measure"].isna()]
            if not len(without):
                continue
            copy = table.loc[without[0]].copy()
            copy["measure"] = entry["measure"]
            table.loc[len(table)] = copy
            rows = [len(table) - 1]
        text = entry.get("printed") or f"{entry['value']:g}"
        printed = {"reported": entry["value"], "printed": text, "place": entry["place"]}
        for r in rows:
            printed |= compare(table.loc[r], entry, experiment["agreement"]["margins"])
            table.loc[r, list(printed)] = list(printed.values())
    cells, without = pd.MultiIndex.from_frame(table[CELL]), table["measure"].isna()
    doubled = without & cells.isin(cells[~without])
    return table[~doubled].reset_index(drop=True)


def _matches(table: pd.DataFrame, entry: dict) -> pd.Series:
    same = (table["dataset"] == entry["dataset"]) & (table["method"] == entry["method"])
    for field in ("params", "observation_params", "dataset_params", "keys"):
        for name, value in entry.get(field, {}).items():
            same &= column_or_param(table, f"{field}.{name}") == value
    return same


def compare(row: pd.Series, entry: dict, margins: dict[str, float]) -> dict[str, Any]:
    """`agrees` if the whole interval is within the tolerance, `above` or `below` if it is outside, else `undecided`."""
    if row["status"] != "ok":
        return {"difference": np.nan, "tolerance": np.nan, "outcome": "not judged"}
    difference, low, high = (row[name] - entry["value"] for name in ("mean", "low", "high"))
    if entry["measure"] not in margins:
        return {"difference": difference, "tolerance": np.nan, "outcome": "not compared"}
    tolerance = allowed(entry, margins)
    outcome = Comparison.by_interval(difference, low, high, Region(-tolerance, tolerance)).outcome
    words = {HOLDS: "agrees", FAILS: "above" if difference > 0 else "below", UNDECIDED: UNDECIDED}
    return {"difference": difference, "tolerance": tolerance, "outcome": words[outcome]}


def allowed(entry: dict, margins: dict[str, float]) -> float:
    """The margin of a printed number, with half of its last digit."""
    digits = len(entry.get("printed", repr(entry["value"])).partition(".")[2])
    return margins[entry["measure"]] + 0.5 * 10.0**-digits


def missed_by_chance(table: pd.DataFrame, experiment: dict) -> float:
    """Expected number of cells that would not agree if every true mean were the printed number."""
    expected, margins = 0.0, experiment["agreement"]["margins"]
    for entry in [e for e in experiment["reported"] if e["measure"] in margins]:
        rows = table[_matches(table, entry) & (table["measure"] == entry["measure"]) & table["low"].notna()]
        half, df = (rows["high"] - rows["low"]).astype(float) / 2, rows["n"].astype(float) - 1
        error = half / stdtrit(df, (1 + LEVEL) / 2)
        slack = np.maximum(allowed(entry, margins) - half, 0)
        expected += float((2 * stdtr(df, -slack / error)).sum())
    return expected


def column_or_param(table: pd.DataFrame, name: str) -> pd.Series:
    """A column of the table, or a parameter in one (`params.l2_mu`, nested: `params.quantizer.params.budget`)."""
    if "." not in name:
        return table[name]
    codes, values = levels(table, name)
    # as objects: a row without the parameter does not change the type of the others
    return pd.Series([values[code] for code in codes], table.index, dtype=object)


def levels(table: pd.DataFrame, name: str) -> tuple[np.ndarray, list]:
    """(n,) codes of a column or of a parameter in one, and each code's value. Two codes may have the same one."""
    column, *keys = name.split(".")
    # each text is read once: curves repeat it in thousands of rows
    codes, values = pd.factorize(table[column], use_na_sentinel=False)
    return codes, [parameter(v, keys) if keys else None if pd.isna(v) else v for v in values.tolist()]


def parameter(text: str | None, keys: Sequence[str]) -> Any:
    """Value of JSON parameters at a path of keys: None without it, and JSON of a mapping or a list."""
    value = nested(text, keys)
    return json.dumps(value) if isinstance(value, dict | list) else value
