"""Predicates of claims, and the verdict on one case: its numbers, the region where it is true, its description."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from agglearn.evaluation.intervals import Estimate
from agglearn.evaluation.verdicts import FAILS, HOLDS, UNDECIDED, Comparison, Region
from agglearn.reporting import samples
from agglearn.reporting.rows import Rows
from agglearn.reporting.samples import Sample

NOT_JUDGED, FAILED = "not judged", "failed"
TOO_FEW = "undecided at this scale"
VERDICTS = (HOLDS, FAILS, UNDECIDED, TOO_FEW, NOT_JUDGED, FAILED)
MIN_PAIRS = 3


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


def judge_case(claim: dict, sample: Sample) -> dict:
    """Verdict on one case, with its detail and two P values: that the claim is false, that it is true."""
    return _judge_every_value(claim, sample) if "deterministic" in claim else _judge_by_interval(claim, sample)


def _judge_every_value(claim: dict, sample: Sample) -> dict:
    predicate = PREDICATES[claim["predicate"]]
    comparison = Comparison.by_every_value(sample.single, predicate.region(claim))
    name = "value" if predicate.name == "mean" else predicate.name
    numbers = predicate.text(comparison.low)
    numbers += f" to {predicate.text(comparison.high)}" if comparison.high > comparison.low else ""
    detail = f"{name} {numbers}{_bound(claim)}, {_count(len(sample.single), 'value')}, each judged by itself"
    true = float(comparison.outcome == HOLDS)
    return _entry(predicate, comparison, comparison.outcome, (1 - true, true), [detail, *sample.notes])


def _judge_by_interval(claim: dict, sample: Sample) -> dict:
    predicate, estimate = PREDICATES[claim["predicate"]], sample.estimate()
    low, high = map(float, estimate.interval())
    comparison = Comparison.by_interval(float(estimate.value), low, high, predicate.region(claim))
    verdict, p = comparison.outcome, tuple(map(float, comparison.region.p_values(estimate)))
    detail = f"{predicate.name} {predicate.text(estimate.value)}{_interval(predicate, estimate)}{_bound(claim)}"
    detail += f", {_count(estimate.n, 'pair' if 'reference' in claim and sample.against is None else 'replicate')}"
    least = claim.get("min_pairs", MIN_PAIRS)
    if estimate.n < least:
        verdict, p, detail = TOO_FEW, (1.0, 1.0), f"{detail}; a verdict needs {least}"
    elif not np.isfinite(estimate.error):
        same = "all the same" if np.isfinite(estimate.value) else "not all finite"
        verdict, p, detail = TOO_FEW, (1.0, 1.0), f"{detail}, {same}, so that they have no interval"
    case = _entry(predicate, comparison, verdict, p, [detail, *sample.notes])
    if verdict != UNDECIDED:
        return case
    region = comparison.region
    return case | {
        "replicates": estimate.n,
        "deciding": sample.deciding(min(abs(comparison.value - region.low), abs(comparison.value - region.high))),
    }


def _entry(
    predicate: Predicate, comparison: Comparison, verdict: str, p: tuple[float, ...], details: list[str]
) -> dict:
    """A case for `claims.json`: the comparison in numbers for readers, None where infinite, and its two P values."""
    ends = {"value": comparison.value, "low": comparison.low, "high": comparison.high}
    ends |= {"from": comparison.region.low, "to": comparison.region.high}
    numbers = {k: float(predicate.scale(x)) if np.isfinite(x) else None for k, x in ends.items()}
    return {"verdict": verdict, "detail": "; ".join(details), "p_false": p[0], "p_true": p[1], "numbers": numbers}


def _interval(predicate: Predicate, estimate: Estimate) -> str:
    low, high = estimate.interval()
    return f" [{predicate.text(low)}, {predicate.text(high)}]" if np.isfinite(low) else ""


def _bound(claim: dict) -> str:
    """The bound, tolerance or margin of a claim as text."""
    bound = claim.get("bound")
    if bound is not None:
        return f" against {bound:g}" if isinstance(bound, int | float) else f" against {bound[0]:g} to {bound[1]:g}"
    return "".join(f", {key} {claim[key]:g}" for key in ("tolerance", "margin") if key in claim)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
