"""Verdicts on what the sources claim, by predicates over measurements. There is no expression language.

A claim holds, fails, or is undecided (the interval covers both); it is not judged where rows are missing. With
`each`, it is judged for every value of those fields, and holds when it holds for all. Where judging itself fails, the
verdict is `failed`, with the reason.
"""

import json
import traceback
from collections.abc import Callable

import numpy as np
import pandas as pd

from agglearn.errors import described
from agglearn.evaluation.intervals import mean_interval
from agglearn.plan import Plan
from agglearn.reporting.summary import field, load_rows

HOLDS, FAILS, UNDECIDED, NOT_JUDGED, FAILED = "holds", "fails", "undecided", "not judged", "failed"


class Missing(Exception):
    """Rows that a claim needs are not there."""


def judge_all(claims: dict, plan: Plan, results) -> list[dict]:
    """One entry per claim: source, claim, place, verdict, detail, cases."""
    rows = {}
    judged = []
    for name, claim in claims.items():
        experiment = claim["experiment"]
        try:
            if experiment in plan.experiments and experiment not in rows:
                paths = [f"{results}/measurements/{experiment}/{b}.parquet" for b in plan.batches(experiment)]
                rows[experiment] = load_rows(paths, plan, experiment)
            outcome = judge(claim, rows[experiment]) if experiment in rows else _absent(experiment)
        except Exception as error:
            traceback.print_exc()
            outcome = {"verdict": FAILED, "detail": f"failed: {described(error)}", "cases": []}
        said = {k: claim.get(k) for k in ("source", "claim", "place", "experiment", "predicate", "note")}
        judged.append({"name": name, **said, **outcome})
    return judged


def _absent(experiment: str) -> dict:
    return {"verdict": NOT_JUDGED, "detail": f"experiment {experiment} is not in this run", "cases": []}


def judge(claim: dict, rows: pd.DataFrame) -> dict:
    """Verdict on one claim from the rows of its experiment."""
    each = claim.get("each", [])
    here = rows[_selected(rows, claim["value"])]
    keys = [()]
    if each:
        keys = sorted(set(zip(*(field(here, f) for f in each), strict=True)), key=str)
    cases = []
    for key in keys:
        case = dict(zip(each, key, strict=True))
        # what the reference says of itself stays: each level of a parameter may be held against one of them
        sides = {k: {**case, **claim[k]} for k in ("reference",) if k in claim} | {"value": {**claim["value"], **case}}
        try:
            verdict, detail = PREDICATES[claim["predicate"]](claim | sides, rows)
        except Missing as error:
            verdict, detail = NOT_JUDGED, str(error)
        cases.append({"case": ", ".join(f"{v}" for v in key), "verdict": verdict, "detail": detail})
    if not cases:
        return {"verdict": NOT_JUDGED, "detail": "no such rows", "cases": []}
    found = {c["verdict"] for c in cases}
    decided = found - {NOT_JUDGED}
    overall = next((v for v in (FAILS, UNDECIDED, HOLDS) if v in decided), NOT_JUDGED)
    left = sum(c["verdict"] == NOT_JUDGED for c in cases)
    detail = cases[0]["detail"] if len(cases) == 1 else "; ".join(f"{c['case']}: {c['detail']}" for c in cases[:4])
    if len(cases) > 4:
        detail += f"; … {len(cases)} cases"
    if left and decided:
        detail += f" ({left} of {len(cases)} cases not judged)"
    return {"verdict": overall, "detail": detail, "cases": cases}


def _selected(rows: pd.DataFrame, selector: dict) -> pd.Series:
    """Rows that have the values; a list allows several, null asks for a parameter that is not there."""
    same = pd.Series(True, index=rows.index)
    for name, value in selector.items():
        column = field(rows, name)
        same &= column.isna() if value is None else column.isin(value) if isinstance(value, list) else column == value
    return same


def _values(rows: pd.DataFrame, selector: dict, curve: bool = False) -> pd.DataFrame:
    """Good rows of a selector: scalars, or the points of curves."""
    found = rows[_selected(rows, selector)]
    found = found[found["step"].notna() if curve else found["step"].isna()]
    found = found[(found["status"] == "ok") & found["value"].notna()]
    if found.empty:
        bad = rows[_selected(rows, {k: v for k, v in selector.items() if k != "measure"})]
        bad = bad[bad["status"] != "ok"]
        reasons = bad["reason"].where(bad["status"] != "stopped", "stopped: " + bad["reason"]).dropna().unique()
        raise Missing(reasons[0] if len(reasons) else f"no rows for {json.dumps(selector)}")
    return found


def _paired(claim: dict, rows: pd.DataFrame) -> np.ndarray:
    """Differences value − reference on the same data and seed (each side's mean per seed)."""
    on = ["dataset", "dataset_params", "seed", "item"]
    a, b = (_values(rows, claim[k]).groupby(on, dropna=False)["value"].mean() for k in ("value", "reference"))
    gaps = (a - b).dropna().to_numpy()
    if not len(gaps):
        raise Missing("value and reference have no data set and seed in common")
    return gaps


def _compare(claim: dict, rows: pd.DataFrame, sign: int) -> tuple[str, str]:
    """Whether sign·(value − reference) > −tolerance, by the 95 % interval of paired differences."""
    gaps, slack = sign * _paired(claim, rows), claim.get("tolerance", 0.0)
    mean, low, high = mean_interval(gaps)
    form = ".4f" if abs(mean) >= 1e-3 else ".2g"
    detail = f"difference {sign * mean:+{form}}" + (f" ± {(high - low) / 2:{form}}" if np.isfinite(high) else "")
    low, high = (mean, mean) if not np.isfinite(high) else (low, high)
    return (
        HOLDS if low > -slack else FAILS if high < -slack else UNDECIDED
    ), f"{detail} over {len(gaps)} pair{'s' * (len(gaps) > 1)}"


def _less(claim, rows):
    return _compare(claim, rows, -1)


def _greater(claim, rows):
    return _compare(claim, rows, 1)


def _within(claim, rows):
    """|value − reference| ≤ tolerance, by the interval of paired differences."""
    mean, low, high = mean_interval(_paired(claim, rows))
    low, high = (mean, mean) if not np.isfinite(high) else (low, high)
    allowed = claim["tolerance"]
    detail = f"difference {mean:+.4f} [{low:+.4f}, {high:+.4f}], allowed ± {allowed:g}"
    if -allowed <= low and high <= allowed:
        return HOLDS, detail
    return (FAILS if high < -allowed or low > allowed else UNDECIDED), detail


def _bound(claim, rows, sign):
    mean, low, high = mean_interval(_values(rows, claim["value"])["value"])
    low, high = (mean, mean) if not np.isfinite(high) else (low, high)
    least, most = sorted((sign * (low - claim["bound"]), sign * (high - claim["bound"])))
    detail = f"{mean:.4f} [{low:.4f}, {high:.4f}] against {claim['bound']:g}"
    return (HOLDS if least >= 0 else FAILS if most < 0 else UNDECIDED), detail


def _at_least(claim, rows):
    return _bound(claim, rows, 1)


def _at_most(claim, rows):
    return _bound(claim, rows, -1)


def _ratio_at_least(claim, rows):
    """Ratio of means value / reference ≥ bound."""
    top, bottom = (_values(rows, claim[k])["value"].mean() for k in ("value", "reference"))
    ratio = top / bottom if bottom else float("inf")
    return (HOLDS if ratio >= claim["bound"] else FAILS), f"ratio {ratio:.3g} against {claim['bound']:g}"


def _slope_between(claim, rows):
    """Slope of log value on log x between the bounds."""
    found = _values(rows, claim["value"])
    x = pd.to_numeric(field(found, claim["x"]))
    if x.nunique() < 2:
        raise Missing(f"fewer than two values of {claim['x']}")
    slope = float(np.polyfit(np.log(x), np.log(found["value"]), 1)[0])
    low, high = claim["bound"]
    return (HOLDS if low <= slope <= high else FAILS), f"slope {slope:.3f}, bounds {low:g} to {high:g}"


def _earlier(claim, rows):
    """The curve of `value` reaches the reference's final level (less tolerance) at an earlier step."""
    steps = []
    a, b = (_values(rows, claim[k], curve=True) for k in ("value", "reference"))
    for seed in sorted(set(a["seed"]) & set(b["seed"])):
        one, two = (t[t["seed"] == seed].sort_values("step") for t in (a, b))
        level = two["value"].iloc[-1] - claim.get("tolerance", 0.0)
        reached = [t.loc[t["value"] >= level, "step"].min() for t in (one, two)]
        steps.append([r if r == r else np.inf for r in reached])
    if not steps:
        raise Missing("value and reference have no seed in common")
    ours, theirs = np.mean(steps, axis=0)
    return (HOLDS if ours < theirs else FAILS), f"reaches it at step {ours:.0f}, the reference at {theirs:.0f}"


PREDICATES: dict[str, Callable] = {
    "less": _less,
    "greater": _greater,
    "within": _within,
    "at_least": _at_least,
    "at_most": _at_most,
    "ratio_at_least": _ratio_at_least,
    "slope_between": _slope_between,
    "earlier": _earlier,
}
