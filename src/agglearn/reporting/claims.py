"""Verdicts on what the sources claim, by predicates over measurements. There is no expression language.

docs/verdicts.md explains in words how a verdict is reached. With `each`, a claim is judged for every value of those fields,
and `cases` says how many of the cases must agree. Where judging itself fails, the verdict is `failed`, with the reason.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.errors import described
from agglearn.evaluation.verdicts import ALPHA, Region, combined, holm
from agglearn.plan import Plan
from agglearn.reporting import samples
from agglearn.reporting.samples import Missing, Sample, selected
from agglearn.reporting.summary import field, load_rows

HOLDS, FAILS, UNDECIDED, NOT_JUDGED, FAILED = "holds", "fails", "undecided", "not judged", "failed"
TOO_FEW = "undecided at this scale"
VERDICTS = (HOLDS, FAILS, UNDECIDED, TOO_FEW, NOT_JUDGED, FAILED)
MIN_PAIRS = 3
BASE_RATE = {"nllh": 0.0, "nllh_best_on_test": 0.0, "nllh_best_on_validation": 0.0, "auc": 0.5, "nmse": 1.0}  # no skill
LOWER_IS_BETTER = {"nmse"}
SHOWN = 4  # cases in a line
SAID = ("source", "claim", "place", "experiment", "predicate", "note", "deterministic", "weak")  # of a claim


@dataclass(frozen=True)
class Predicate:
    """The numbers that a claim is about, and the region where it is true.

    Attributes
    ----------
    sample : the numbers, from a claim and the rows. region : from a claim.
    words : what the numbers are, and how one is written.
    """

    sample: Callable[[dict, pd.DataFrame], Sample]
    region: Callable[[dict], Region]
    words: tuple[str, Callable[[float], str]]


def _slack(claim: dict) -> float:
    return claim.get("tolerance", 0.0) - claim.get("margin", 0.0)


DIFFERENCE = "difference", "{:+.4g}".format
MEAN = "mean", "{:.4g}".format

PREDICATES: dict[str, Predicate] = {
    "less": Predicate(samples.differences, lambda c: Region(high=_slack(c), strict=True), DIFFERENCE),
    "greater": Predicate(samples.differences, lambda c: Region(low=-_slack(c), strict=True), DIFFERENCE),
    "within": Predicate(samples.differences, lambda c: Region(-c["tolerance"], c["tolerance"]), DIFFERENCE),
    "at_least": Predicate(samples.values, lambda c: Region(low=c["bound"]), MEAN),
    "at_most": Predicate(samples.values, lambda c: Region(high=c["bound"]), MEAN),
    "ratio_at_least": Predicate(
        samples.log_ratios, lambda c: Region(low=np.log(c["bound"])), ("ratio", lambda x: f"{np.exp(x):.3g}")
    ),
    "slope_between": Predicate(samples.slopes, lambda c: Region(*c["bound"]), ("slope", "{:.3f}".format)),
    "earlier": Predicate(samples.delays, lambda c: Region(high=0.0, strict=True), ("delay in steps", "{:+.4g}".format)),
}


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
        judged.append({"name": name, **{k: claim.get(k) for k in SAID}, **outcome})
    return judged


def _absent(experiment: str) -> dict:
    return {"verdict": NOT_JUDGED, "detail": f"experiment {experiment} is not in this run", "cases": []}


def judge(claim: dict, rows: pd.DataFrame) -> dict:
    """Verdict on one claim from the rows of its experiment; `weak` where every case's rival is below the base rate."""
    cases, found = [], []
    for label, case in _cases(claim, rows):
        try:
            sample = PREDICATES[claim["predicate"]].sample(case, rows)
            cases.append(_case(claim, label, sample) | {"rival_below_base": _rival_below_base(case, rows)})
            found.append(sample)
        except Missing as error:
            cases.append({"case": label, "verdict": NOT_JUDGED, "detail": str(error)})
    if not found:
        return {"verdict": NOT_JUDGED, "detail": cases[0]["detail"] if cases else "no such rows", "cases": cases}
    judged = [c for c in cases if c["verdict"] != NOT_JUDGED]
    _correct(judged)
    overall = _over_all(claim, judged, found)
    detail = [overall["detail"], _left(cases), _below(judged)]
    outcome = {"verdict": overall["verdict"], "detail": "; ".join(d for d in detail if d), "cases": cases}
    if all(c["rival_below_base"] for c in judged):
        outcome["weak"] = claim.get("weak", "the rival is below the base rate")
    return outcome


def _cases(claim: dict, rows: pd.DataFrame):
    """(label, claim with the selectors of this case) for every value of the fields in `each`."""
    each = claim.get("each", [])
    # a run that lacks the measure is a case too, which is then not judged
    selector = claim["value"] if "item" in each else _without_measure(claim["value"])
    here = rows[selected(rows, selector)]
    keys = sorted(set(zip(*(field(here, f) for f in each), strict=True)), key=str) if each else [()]
    for key in keys:
        case = dict(zip(each, key, strict=True))
        # what the reference says of itself stays: each level of a parameter may be held against one of them
        sides = {k: {**case, **claim[k]} for k in ("reference",) if k in claim} | {"value": {**claim["value"], **case}}
        yield ", ".join(map(str, key)), claim | sides


def _without_measure(selector: dict) -> dict:
    return {k: v for k, v in selector.items() if k not in ("measure", "item")}


def _case(claim: dict, label: str, sample: Sample) -> dict:
    """One case by itself, with its P values: of the claim being false, of its being true."""
    predicate = PREDICATES[claim["predicate"]]
    region, (what, text) = predicate.region(claim), predicate.words
    if "deterministic" in claim:
        inside = region.contains(sample.single)
        low, high = sample.single.min(), sample.single.max()
        said = f"{what} {text(low)}" + (f" to {text(high)}" if high > low else "")
        detail = f"{said}, {_number(len(sample.single), 'value')}, each judged by itself"
        p = (0.0, 1.0) if inside.all() else (1.0, 0.0)
        return _outcome(label, p, detail, sample.notes, decided=True)
    found, least = sample.estimate(), claim.get("min_pairs", MIN_PAIRS)
    low, high = found.interval()
    kind = "pair" if "reference" in claim and sample.against is None else "replicate"
    detail = f"{what} {text(found.value)}"
    detail += f" [{text(low)}, {text(high)}]" if np.isfinite(low) else ""
    detail += f"{_against(claim)}, {_number(found.n, kind)}"
    if found.n < least:
        return _outcome(label, (1.0, 1.0), f"{detail}; a verdict needs {least}", sample.notes, decided=False)
    if not np.isfinite(found.error):
        why = f"{detail}, all the same, so that they have no interval"
        return _outcome(label, (1.0, 1.0), why, sample.notes, decided=False)
    return _outcome(label, tuple(map(float, region.p_values(found))), detail, sample.notes, decided=True)


def _against(claim: dict) -> str:
    """The bound that a claim names, in words."""
    bound = claim.get("bound")
    if bound is not None:
        return f" against {bound:g}" if np.isscalar(bound) else f" against {bound[0]:g} to {bound[1]:g}"
    return f", tolerance {claim['tolerance']:g}" if "tolerance" in claim else (
        f", margin {claim['margin']:g}" if "margin" in claim else ""
    )  # fmt: skip


def _outcome(label: str, p: tuple[float, float], detail: str, notes: list[str], decided: bool) -> dict:
    verdict = TOO_FEW if not decided else HOLDS if p[0] <= ALPHA else FAILS if p[1] <= ALPHA else UNDECIDED
    return {"case": label, "verdict": verdict, "detail": "; ".join([detail, *notes]), "p_false": p[0], "p_true": p[1]}


def _correct(cases: list[dict]) -> None:
    """Leave `fails` to the cases that fail after Holm's correction for their number."""
    for case, p in zip(cases, holm([c["p_true"] for c in cases]), strict=True):
        if case["verdict"] == FAILS and p > ALPHA:
            case["verdict"] = UNDECIDED


def _over_all(claim: dict, cases: list[dict], found: list[Sample]) -> dict:
    """Verdict and detail over all judged cases."""
    how, m = claim.get("cases", "all"), len(cases)
    if m == 1:
        return cases[0]
    if how == "average":
        mean = _case(claim, "", samples.average(found))
        return mean | {"detail": f"on average over {m} cases: {mean['detail']}; {_tally(cases)}"}
    needed = m if how == "all" else m // 2 + 1
    p_false, p_true = combined([c["p_false"] for c in cases], [c["p_true"] for c in cases], needed)
    verdicts = {c["verdict"] for c in cases}
    open_ = TOO_FEW if TOO_FEW in verdicts and UNDECIDED not in verdicts else UNDECIDED
    verdict = HOLDS if p_false <= ALPHA else FAILS if p_true <= ALPHA else open_
    detail = _tally(cases)
    shown = [c for v in (FAILS, UNDECIDED, TOO_FEW, HOLDS) for c in cases if c["verdict"] == v][:SHOWN]
    detail += ": " + "; ".join(f"{c['case']}: {c['detail']}" for c in shown) + (" …" if m > SHOWN else "")
    return {"verdict": verdict, "detail": detail}


def _tally(cases: list[dict]) -> str:
    """How many of the cases have which verdict."""
    counts = {v: sum(c["verdict"] == v for c in cases) for v in VERDICTS}
    others = [f"{n} {v}" for v, n in counts.items() if n and v != HOLDS]
    return ", ".join([f"holds in {counts[HOLDS]} of {len(cases)}", *others])


def _left(cases: list[dict]) -> str:
    left = [c for c in cases if c["verdict"] == NOT_JUDGED]
    return f"{len(left)} of {len(cases)} cases not judged ({left[0]['detail']})" if left else ""


def _below(cases: list[dict]) -> str:
    below = sum(c["rival_below_base"] for c in cases)
    return f"in {below} of {len(cases)} cases the rival is below the base rate" if below and len(cases) > 1 else ""


def _rival_below_base(claim: dict, rows: pd.DataFrame) -> bool:
    """Whether the side that a claim calls worse has less than no skill, so that beating it shows little."""
    higher = claim["predicate"] in ("greater", "ratio_at_least")
    if "reference" not in claim or not (higher or claim["predicate"] == "less"):
        return False
    measure = claim["value"]["measure"]
    if measure not in BASE_RATE or (measure not in LOWER_IS_BETTER and not higher):
        return False  # a claim that something is worse is about its failure
    rival = "value" if higher == (measure in LOWER_IS_BETTER) else "reference"
    mean = rows.loc[selected(rows, claim[rival]) & rows["step"].isna() & (rows["status"] == "ok"), "value"].mean()
    base = BASE_RATE.get(claim[rival]["measure"], np.nan)
    return bool(mean > base if measure in LOWER_IS_BETTER else mean < base)


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
