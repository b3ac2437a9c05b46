"""Verdicts on claims, from the rows of their experiments. A table's job reaches them, and pages collect them from its files."""

import contextlib
import itertools
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from agglearn import storage
from agglearn.errors import describe
from agglearn.evaluation.intervals import Estimate
from agglearn.evaluation.verdicts import ALPHA, FAILS, HOLDS, UNDECIDED, Comparison, Region, combine_p_values, holm
from agglearn.text import count_text
from agglearn_workflow.archive import store
from agglearn_workflow.claims import samples
from agglearn_workflow.claims.samples import Rows, RowsMissing, Sample, without_measure
from agglearn_workflow.plan import Plan
from agglearn_workflow.tables.numbers import direction, parameter_name, setting

NOT_JUDGED, FAILED = "not judged", "failed"
TOO_FEW = "undecided at this scale"
VERDICTS = (HOLDS, FAILS, UNDECIDED, TOO_FEW, NOT_JUDGED, FAILED)
MIN_PAIRS = 3
BASE_RATE = {"nllh": 0.0, "nllh_best_on_test": 0.0, "nllh_best_on_validation": 0.0, "auc": 0.5, "nmse": 1.0}  # no skill
CLAIMED = {"greater": "higher", "ratio_at_least": "higher", "less": "lower"}  # what `value` is said to be
SHOWN = 4  # cases in a line


@dataclass(frozen=True)
class Predicate:
    """The numbers that a claim is about, and the region where it is true."""

    sample: Callable[[dict, Rows], Sample]
    region: Callable[[dict], Region]
    name: str
    text: Callable[[Any], str]
    scale: Callable[[Any], float] = float


def _slack(claim: dict) -> float:
    return claim.get("tolerance", 0.0) - claim.get("margin", 0.0)


def _ratio(log_ratio: float) -> str:
    return f"{np.exp(log_ratio):.3g}"


SIGNED, PLAIN = "{:+.4g}".format, "{:.4g}".format

PREDICATES: dict[str, Predicate] = {
    "less": Predicate(samples.differences, lambda c: Region(high=_slack(c), strict=True), "difference", SIGNED),
    "greater": Predicate(samples.differences, lambda c: Region(low=-_slack(c), strict=True), "difference", SIGNED),
    "within": Predicate(samples.differences, lambda c: Region(-c["tolerance"], c["tolerance"]), "difference", SIGNED),
    "at_least": Predicate(samples.values, lambda c: Region(low=c["bound"]), "mean", PLAIN),
    "at_most": Predicate(samples.values, lambda c: Region(high=c["bound"]), "mean", PLAIN),
    "ratio_at_least": Predicate(samples.log_ratios, lambda c: Region(low=np.log(c["bound"])), "ratio", _ratio, np.exp),
    "slope_between": Predicate(samples.slopes, lambda c: Region(*c["bound"]), "slope", PLAIN),
    "earlier": Predicate(samples.delays, lambda c: Region(high=0.0, strict=True), "delay in steps", SIGNED),
}


def judge_case(claim: dict, sample: Sample, units: Sample | None = None) -> dict:
    """Verdict on one case, with its detail and two P values: that the claim is false, that it is true. With parts of the
    tested units as a second sample, the wider of the two intervals counts."""
    return _judge_every_value(claim, sample) if "deterministic" in claim else _judge_by_interval(claim, sample, units)


def _judge_every_value(claim: dict, sample: Sample) -> dict:
    predicate = PREDICATES[claim["predicate"]]
    comparison = Comparison.by_every_value(sample.single, predicate.region(claim))
    name = "value" if predicate.name == "mean" else predicate.name
    numbers = " to ".join(dict.fromkeys(map(predicate.text, (comparison.low, comparison.high))))
    detail = f"{name} {numbers}{_bound(claim)}, {count_text(len(sample.single), 'value')}, each judged by itself"
    true = float(comparison.outcome == HOLDS)
    return _case(predicate, comparison, comparison.outcome, (1 - true, true), [detail, *sample.notes])


def _judge_by_interval(claim: dict, sample: Sample, units: Sample | None) -> dict:
    predicate, (estimate, beside) = PREDICATES[claim["predicate"]], _wider(sample.estimate(), units)
    value, low, high = map(float, (estimate.value, *estimate.interval()))
    comparison = Comparison.by_interval(value, low, high, predicate.region(claim))
    verdict, p = comparison.outcome, tuple(map(float, comparison.region.p_values(estimate)))
    interval = f" [{predicate.text(low)}, {predicate.text(high)}]" if np.isfinite(low) else ""
    noun = "pair" if "reference" in claim and sample.against is None else "replicate"
    detail = (
        f"{predicate.name} {predicate.text(value)}{interval}{_bound(claim)}, {count_text(estimate.n, noun)}{beside}"
    )
    least = claim.get("min_pairs", MIN_PAIRS)
    if estimate.n < least:
        verdict, p, detail = TOO_FEW, (1.0, 1.0), f"{detail}; a verdict needs {least}"
    elif not np.isfinite(estimate.error):
        same = "all the same" if np.isfinite(value) else "not all finite"
        verdict, p, detail = TOO_FEW, (1.0, 1.0), f"{detail}, {same}, so that they have no interval"
    case = _case(predicate, comparison, verdict, p, [detail, *sample.notes])
    if verdict == UNDECIDED and not beside:
        distance = min(abs(value - comparison.region.low), abs(value - comparison.region.high))
        case |= {"replicates": estimate.n, "deciding": sample.deciding(distance)}
    return case


def _sample_of_units(claim: dict, rows: Rows) -> Sample | None:
    """The sample over parts of the tested records, of a claim on means whose seeds all test the same ones."""
    predicate = PREDICATES[claim["predicate"]]
    with contextlib.suppress(RowsMissing):
        if predicate.sample in (samples.values, samples.differences) and "replicates" not in claim:
            return predicate.sample(claim | {"replicates": "part"}, rows.over_units)
    return None


def _wider(estimate: Estimate, units: Sample | None) -> tuple[Estimate, str]:
    """The estimate with the wider of the intervals over seeds and over parts of the tested records, and a note on both."""
    if units is None:
        return estimate, ""
    of_parts = replace(units.estimate(), value=estimate.value, n=estimate.n)
    records, seeds = (float(e.interval()[1] - e.value) for e in (of_parts, estimate))
    note = f", ±{records:.2g} over {len(units.values)} parts of the tested records"
    if np.isfinite(seeds):
        note += f", ±{seeds:.2g} over seeds"
    return (estimate if seeds > records else of_parts), note  # also where the seeds have no interval


def _case(predicate: Predicate, comparison: Comparison, verdict: str, p: tuple, details: list[str]) -> dict:
    """A case for `claims.json`: the comparison in numbers for readers, None where infinite, and its two P values."""
    ends = {"value": comparison.value, "low": comparison.low, "high": comparison.high}
    ends |= {"from": comparison.region.low, "to": comparison.region.high}
    numbers = {k: float(predicate.scale(x)) if np.isfinite(x) else None for k, x in ends.items()}
    return {"verdict": verdict, "detail": "; ".join(details), "p_false": p[0], "p_true": p[1], "numbers": numbers}


def _bound(claim: dict) -> str:
    bound = claim.get("bound")
    if bound is not None:
        return f" against {bound:g}" if isinstance(bound, int | float) else f" against {bound[0]:g} to {bound[1]:g}"
    return "".join(f", {key} {claim[key]:g}" for key in ("tolerance", "margin") if key in claim)


def judge(claim: dict, rows: Rows) -> dict:
    """Verdict on a claim from its experiment's rows. It is `weak` if the rival of every case is below the base rate."""
    cases: list[dict] = []
    drawn: list[Sample] = []
    for label, case in _cases(claim, rows):
        try:
            sample = PREDICATES[claim["predicate"]].sample(case, rows)
            is_below = _rival_below_base(case, rows)
            units = _sample_of_units(case, rows)
            cases.append({"case": label, **judge_case(claim, sample, units), "rival_below_base": is_below})
            drawn.append(sample)
        except RowsMissing as error:
            cases.append({"case": label, "verdict": NOT_JUDGED, "detail": str(error), "absent": error.absent})
    if not drawn:
        first = cases[0] if cases else {"detail": "no such rows", "absent": True}
        return {"verdict": NOT_JUDGED, "detail": first["detail"], "absent": first["absent"], "cases": cases}
    judged = [c for c in cases if c["verdict"] != NOT_JUDGED]
    for case, p in zip(judged, holm([c["p_true"] for c in judged]), strict=True):
        if case["verdict"] == FAILS and p > ALPHA:  # corrected for the number of cases
            case["verdict"] = UNDECIDED
    verdict, detail = _over_all(claim, judged, drawn)
    if open_cases := [c for c in cases if c["verdict"] == NOT_JUDGED]:
        detail += f"; {len(open_cases)} of {len(cases)} cases not judged ({open_cases[0]['detail']})"
    below = sum(c["rival_below_base"] for c in judged)
    if below and len(judged) > 1:
        detail += f"; in {below} of {len(judged)} cases the rival is below the base rate"
    weak = {"weak": claim.get("weak", "the rival is below the base rate")} if below == len(judged) else {}
    return {"verdict": verdict, "detail": detail, "cases": cases} | weak


def _cases(claim: dict, rows: Rows) -> Iterator[tuple[str, dict]]:
    """(label, claim with the selectors of this case) for every value of the fields in `each`."""
    each = claim.get("each", [])
    # a run without the measure is a case, too, which is not judged
    by_key = any(name.startswith("keys.") for name in each)
    selector = claim["value"] if by_key else without_measure(claim["value"])
    chosen = rows.selected(selector)
    columns = [[values[code] for code in codes[chosen].tolist()] for codes, values in map(rows.field, each)]
    for levels in sorted(set(zip(*columns, strict=True)), key=str) if each else [()]:
        case = dict(zip(each, levels, strict=True))
        # the reference keeps its own values: every level of a parameter may be compared with one of them
        sides = {k: {**case, **claim[k]} for k in ("reference",) if k in claim} | {"value": {**claim["value"], **case}}
        yield ", ".join(describe_level(field, level) for field, level in case.items()), claim | sides


def describe_level(field: str, value: object) -> str:
    if "." not in field:
        return str(value)
    return setting(field, value, {}) or f"without {parameter_name(field.rpartition('.')[2])}"


def _over_all(claim: dict, cases: list[dict], drawn: list[Sample]) -> tuple[str, str]:
    """(verdict, detail) over all cases that have one."""
    required, m = claim.get("cases", "all"), len(cases)
    if m == 1:
        return cases[0]["verdict"], cases[0]["detail"]
    counts = {v: sum(c["verdict"] == v for c in cases) for v in VERDICTS}
    against = [f"{n} {v}" for v, n in counts.items() if n and v != HOLDS]
    tally = ", ".join([f"holds in {counts[HOLDS]} of {m}", *against])
    if required == "average":
        mean = judge_case(claim, samples.average(drawn))
        return mean["verdict"], f"on average over {m} cases: {mean['detail']}; {tally}"
    needed = m if required == "all" else m // 2 + 1
    p_false, p_true = combine_p_values([c["p_false"] for c in cases], [c["p_true"] for c in cases], needed)
    undecided = TOO_FEW if counts[TOO_FEW] and not counts[UNDECIDED] else UNDECIDED
    verdict = HOLDS if p_false <= ALPHA else FAILS if p_true <= ALPHA else undecided
    first = [c for v in (FAILS, UNDECIDED, TOO_FEW, HOLDS) for c in cases if c["verdict"] == v][:SHOWN]
    details = "; ".join(f"{c['case']}: {c['detail']}" for c in first)
    return verdict, f"{tally}: {details}{' …' if m > SHOWN else ''}"


def _rival_below_base(claim: dict, rows: Rows) -> bool:
    """Whether the side that a claim calls worse is below the base rate, so that a win shows little."""
    measure = claim["value"]["measure"].removesuffix("_of_part")
    has_rival = "reference" in claim and measure in BASE_RATE and claim["predicate"] in CLAIMED
    better, claimed = direction(measure), CLAIMED.get(claim["predicate"])
    if not has_rival or (better, claimed) == ("higher", "lower"):
        return False  # a claim that something is worse is about its failure
    rival = claim["reference" if better == claimed else "value"]
    base = BASE_RATE.get(rival["measure"].removesuffix("_of_part"), np.nan)
    mean = rows.frame.loc[rows.selected(rival) & rows.ok & rows.frame["step"].isna(), "value"].mean()
    return bool(mean > base if better == "lower" else mean < base)


# Keys of a claim that are copied to its verdict.
COPIED = ("source", "claim", "place", "experiment", "predicate", "note", "why", "tested_by", "deterministic", "weak")


def judge_all(claims: dict, rows: Rows) -> list[dict]:
    """One entry per claim on an experiment: name, `COPIED`, verdict, detail, cases. The verdict is `failed` where judging fails."""
    verdicts = []
    for name, claim in claims.items():
        try:
            outcome = _with_mark(judge(claim, rows), rows.frame)
        except Exception as error:
            traceback.print_exc()
            outcome = failed(describe(error))
        verdicts.append(entry(name, claim, outcome))
    return verdicts


def failed(reason: str) -> dict:
    return {"verdict": FAILED, "detail": reason, "cases": []}


def claims_on(claims: dict, experiment: str) -> dict:
    return {name: claim for name, claim in claims.items() if claim["experiment"] == experiment}


def judge_archive(claims: dict, plan: Plan, folder: str | Path) -> dict[str, str]:
    """Claim → its verdict at scale paper, where the archive has all runs of its experiment and the plan has others."""
    names = {claim["experiment"] for claim in claims.values()} & set(store.experiments(folder))
    paper = Plan(plan.config | {"scale": "paper", "run": sorted(names)})
    verdicts: dict[str, str] = {}
    for name in names:
        archived, keys = store.read(folder, name), [run.key for run in paper.runs(name)]
        if set(keys) <= set(archived) and set(keys) != {run.key for run in plan.runs(name)}:
            rows = Rows(pa.concat_tables([archived[key].rows for key in keys]).to_pandas())
            verdicts |= {e["name"]: e["verdict"] for e in judge_all(claims_on(claims, name), rows)}
    return verdicts


def judge_target(plan: Plan, names: list[str], folder: Path | str) -> list[dict]:
    """One entry per claim, from the files of the tables. The verdict of the archive, as `archived`, stands beside that of a smaller scale."""
    claims = plan.config["claims"]
    planned = {name: claim for name, claim in claims.items() if claim["experiment"] in names}
    computes = plan.config["scale"] != "paper" and plan.config["from"] != "archive"
    archived = judge_archive(planned, plan, plan.config["archive"]) if computes else {}
    read = [storage.read_json(Path(folder) / f"tables/{name}.json")["claims"] for name in names]
    entries = {entry["name"]: entry for entry in itertools.chain(*read)}
    for name, verdict in archived.items():
        entries[name]["archived"] = verdict
    entries |= {name: _absent(name, c) for name, c in claims.items() if c["experiment"] not in plan.experiments}
    return [entries[name] for name in claims if name in entries]


def _with_mark(outcome: dict, frame: pd.DataFrame) -> dict:
    if "mark" not in frame or outcome["verdict"] == NOT_JUDGED:
        return outcome
    marks = frame.drop_duplicates("run")["mark"]
    sentence = f"{marks.count()} of {count_text(len(marks), 'run')} of the experiment: {marks.dropna().iloc[0]}"
    return outcome | {"detail": f"{outcome['detail']}; {sentence}"}


def entry(name: str, claim: dict, outcome: dict) -> dict:
    return {"name": name, **{key: claim.get(key) for key in COPIED}, **outcome}


def _absent(name: str, claim: dict) -> dict:
    detail = f"experiment {claim['experiment']} is not in this run"
    command = f"make reproduce ARGS={claim['experiment']}"
    return entry(name, claim, {"verdict": NOT_JUDGED, "detail": detail, "cases": [], "command": command})
