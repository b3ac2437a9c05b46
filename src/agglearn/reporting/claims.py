"""Verdicts on the claims of a source, by predicates over measurements. There is no expression language.

docs/verdicts.md explains how a verdict is reached. With `each`, a claim is judged for every value of those fields,
and `cases` is the number of cases that must agree.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from agglearn.evaluation.verdicts import ALPHA, FAILS, HOLDS, UNDECIDED, combine_p_values, holm
from agglearn.reporting import samples
from agglearn.reporting.numbers import parameter_name, plain
from agglearn.reporting.predicates import NOT_JUDGED, PREDICATES, TOO_FEW, VERDICTS, judge_case
from agglearn.reporting.rows import Rows
from agglearn.reporting.samples import Sample
from agglearn.reporting.sides import RowsMissing, without_measure

BASE_RATE = {"nllh": 0.0, "nllh_best_on_test": 0.0, "nllh_best_on_validation": 0.0, "auc": 0.5, "nmse": 1.0}  # no skill
LOWER_IS_BETTER = {"nmse"}
SHOWN = 4  # cases in a line


def judge(claim: dict, rows: Rows) -> dict:
    """Verdict on one claim from the rows of its experiment. It is `weak` where the rival of every case is below the base rate."""
    cases: list[dict] = []
    drawn: list[Sample] = []
    for label, case in _cases(claim, rows):
        try:
            sample = PREDICATES[claim["predicate"]].sample(case, rows)
            below = _rival_below_base(case, rows)
            cases.append({"case": label, **judge_case(claim, sample), "rival_below_base": below})
            drawn.append(sample)
        except RowsMissing as error:
            cases.append({"case": label, "verdict": NOT_JUDGED, "detail": str(error), "absent": error.absent})
    if not drawn:
        first = cases[0] if cases else {"detail": "no such rows", "absent": True}
        return {"verdict": NOT_JUDGED, "detail": first["detail"], "absent": first["absent"], "cases": cases}
    with_result = [c for c in cases if c["verdict"] != NOT_JUDGED]
    _correct(with_result)
    verdict, detail = _over_all(claim, with_result, drawn)
    outcome = {
        "verdict": verdict,
        "detail": "; ".join(filter(None, (detail, _without_result(cases), _below(with_result)))),
        "cases": cases,
    }
    if all(c["rival_below_base"] for c in with_result):
        outcome["weak"] = claim.get("weak", "the rival is below the base rate")
    return outcome


def _cases(claim: dict, rows: Rows) -> Iterator[tuple[str, dict]]:
    """(label, claim with the selectors of this case) for every value of the fields in `each`."""
    each = claim.get("each", [])
    # a run without the measure is a case, too, which is not judged
    by_key = any(name.startswith("keys.") for name in each)
    selector = claim["value"] if by_key else without_measure(claim["value"])
    for key in sorted(_levels(rows, each, rows.selected(selector)), key=str) if each else [()]:
        case = dict(zip(each, key, strict=True))
        # the reference keeps its own values: every level of a parameter may be compared with one of them
        sides = {k: {**case, **claim[k]} for k in ("reference",) if k in claim} | {"value": {**claim["value"], **case}}
        yield ", ".join(itertools.starmap(_case_name, zip(each, key, strict=True))), claim | sides


def _case_name(field: str, value: object) -> str:
    """A value of a field as text, with the name of its parameter."""
    if "." not in field:
        return str(value)
    name = parameter_name(field.rpartition(".")[2])
    return f"without {name}" if value is None else f"{name} {plain(value)}"


def _levels(rows: Rows, names: list[str], here: np.ndarray) -> set[tuple]:
    """Combinations of values of the fields in the rows `here`."""
    codes, values = zip(*map(rows.field, names), strict=True)
    keys = set(zip(*(c[here].tolist() for c in codes), strict=True))
    return {tuple(v[c] for v, c in zip(values, key, strict=True)) for key in keys}


def _correct(cases: list[dict]) -> None:
    """Leave `fails` to the cases that fail after Holm's correction for their number."""
    for case, p in zip(cases, holm([c["p_true"] for c in cases]), strict=True):
        if case["verdict"] == FAILS and p > ALPHA:
            case["verdict"] = UNDECIDED


def _over_all(claim: dict, cases: list[dict], drawn: list[Sample]) -> tuple[str, str]:
    """(verdict, detail) over all cases that have one."""
    required, m = claim.get("cases", "all"), len(cases)
    if m == 1:
        return cases[0]["verdict"], cases[0]["detail"]
    if required == "average":
        mean = judge_case(claim, samples.average(drawn))
        return mean["verdict"], f"on average over {m} cases: {mean['detail']}; {_tally(cases)}"
    needed = m if required == "all" else m // 2 + 1
    p_false, p_true = combine_p_values([c["p_false"] for c in cases], [c["p_true"] for c in cases], needed)
    verdicts = {c["verdict"] for c in cases}
    undecided = TOO_FEW if TOO_FEW in verdicts and UNDECIDED not in verdicts else UNDECIDED
    verdict = HOLDS if p_false <= ALPHA else FAILS if p_true <= ALPHA else undecided
    first = [c for v in (FAILS, UNDECIDED, TOO_FEW, HOLDS) for c in cases if c["verdict"] == v][:SHOWN]
    shown = "; ".join(f"{c['case']}: {c['detail']}" for c in first)
    return verdict, f"{_tally(cases)}: {shown}{' …' if m > SHOWN else ''}"


def _tally(cases: list[dict]) -> str:
    """Number of cases by verdict."""
    counts = {v: sum(c["verdict"] == v for c in cases) for v in VERDICTS}
    others = [f"{n} {v}" for v, n in counts.items() if n and v != HOLDS]
    return ", ".join([f"holds in {counts[HOLDS]} of {len(cases)}", *others])


def _without_result(cases: list[dict]) -> str:
    left = [c for c in cases if c["verdict"] == NOT_JUDGED]
    return f"{len(left)} of {len(cases)} cases not judged ({left[0]['detail']})" if left else ""


def _below(cases: list[dict]) -> str:
    below = sum(c["rival_below_base"] for c in cases)
    return f"in {below} of {len(cases)} cases the rival is below the base rate" if below and len(cases) > 1 else ""


def _rival_below_base(claim: dict, rows: Rows) -> bool:
    """Whether the side that a claim calls worse is below the base rate, so that a win shows little."""
    measure = claim["value"]["measure"].removesuffix("_of_part")
    greater = claim["predicate"] in ("greater", "ratio_at_least")
    if "reference" not in claim or measure not in BASE_RATE or not (greater or claim["predicate"] == "less"):
        return False
    if measure not in LOWER_IS_BETTER and not greater:
        return False  # a claim that something is worse is about its failure
    rival = claim["value" if greater == (measure in LOWER_IS_BETTER) else "reference"]
    base = BASE_RATE.get(rival["measure"].removesuffix("_of_part"), np.nan)
    mean = pd.Series(rows.number("value")[rows.selected(rival) & rows.ok & np.isnan(rows.number("step"))]).mean()
    return bool(mean > base if measure in LOWER_IS_BETTER else mean < base)
