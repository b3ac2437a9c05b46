"""Claims on the small world, and the verdicts on them by hand."""

import math
from dataclasses import dataclass

from scipy import stats
from world import COLOURS, LEAST, LEGS, SEEDS, SIZES, STAGES, Estimate, World, colour_keys, leg_keys, mean
from world_tables import OF_COLOURS


def side(method: str, measure: str, rows=None, **more) -> dict:
    chosen = {"method": method, "measure": measure} | ({} if rows is None else {"dataset_params.rows": rows})
    return chosen | ({"params.prior": more.pop("prior", 1.0)} if method == "rates" else {}) | more


def claim(predicate: str, value: dict, reference: dict | None = None, **more) -> dict:
    said = {
        "source": "spike",
        "claim": f"{predicate} <so>",
        "place": "p. 7",
        "experiment": "world",
        "predicate": predicate,
    }
    return said | {"value": value} | ({"reference": reference} if reference else {}) | more


BETTER = (side("rates", "auc"), side("base", "auc"))
RIGHT = (side("rates", "right", 240, keys=None), side("base", "right", 240, keys=None))
CLAIMS = {
    "less": claim("less", side("base", "auc", 240), side("rates", "auc", 240)),
    "less_with_tolerance": claim("less", RIGHT[0], RIGHT[1], tolerance=0.6),
    "greater": claim("greater", RIGHT[1], RIGHT[0]),
    "greater_by_a_margin": claim("greater", *RIGHT, margin=0.1),
    "within": claim("within", side("rates", "nllh", 240), side("rates", "nllh", 240, prior=8.0), tolerance=0.3),
    "not_within": claim("within", *RIGHT, tolerance=0.01),
    "at_least": claim("at_least", side("rates", "auc", 240), bound=0.5, note="A note"),
    "at_most": claim("at_most", side("base", "nllh", 240), bound=-0.1),
    "ratio_at_least": claim("ratio_at_least", side("base", "log_loss", 240), side("rates", "log_loss", 240), bound=1.01),
    "slope_between": claim("slope_between", side("base", "log_loss"), x="dataset_params.rows", bound=[-0.5, 0.4]),
    "earlier": claim("earlier", side("rates", "nllh", 240), side("base", "nllh", 240)),
    "all": claim("greater", *BETTER, each=["dataset_params.rows"]),
    "most": claim("greater", side("rates", "right"), side("base", "right"), each=["keys.colour"], cases="most"),
    "average": claim("greater", *BETTER, each=["dataset_params.rows"], cases="average"),
    "all_fail": claim("less", *BETTER, each=["dataset_params.rows"]),
    "single_values": claim("at_least", side("base", "auc"), bound=0.5, deterministic="a constant ranks nothing"),
    "single_value_fails": claim("at_least", side("rates", "auc", 240), bound=0.85, deterministic="it is not so, as it happens"),
    "parts": claim("less", side("base", "flow", 240), side("rates", "flow", 240), replicates="part", margin=0.2),
    "unpaired": claim("greater", side("rates", "right", 240, keys=None), side("base", "right", 120, keys=None)),
    "few": claim("at_least", side("exacting", "nllh", 240), bound=0.0),
    "few_are_enough": claim("at_least", side("exacting", "auc", 240), bound=-9.0, min_pairs=2),
    "the_same": claim("at_least", side("base", "auc", 240), bound=0.4),
    "weak": claim("greater", side("rates", "nllh", 120), side("base", "nllh", 120)),
    "absent": claim("at_least", side("absent", "nllh"), bound=0.0),
    "stopped": claim("at_least", side("limited", "nllh"), bound=0.0),
    "apart": claim("at_least", side("base", "nllh"), bound=0.0) | {"experiment": "world_apart"},
}  # fmt: skip
BROKEN = {"broken": claim("slope_between", side("base", "nllh"), x="method", bound=[0, 1])}  # a method is no number


@dataclass
class Judged:
    """Verdict and text of a claim, and why it says little."""

    verdict: str
    detail: str
    weak: str | None = None
    estimate: Estimate | None = None  # where there is one case only


@dataclass
class Case:
    label: str
    estimate: Estimate
    outside: float  # P value of the hypothesis that the claim is false
    inside: float  # and that it is true
    verdict: str
    detail: str


FEW = "undecided at this scale"
NO_RESULT = {
    "absent": Judged("not judged", "surrogate is not installed"),
    "stopped": Judged("not judged", "stopped: > 3 steps"),
    "apart": Judged("not judged", "experiment world_apart is not in this run"),
    "broken": Judged("failed", 'ValueError: Unable to parse string "base" at position 0'),
}


def picked(selector: dict) -> list[tuple]:
    """(method, prior, size, keys) of every cell that a selector names."""
    every = {"right": [key["keys"] for _, key in OF_COLOURS], "flow": list(map(leg_keys, LEGS))}.get(
        selector["measure"], [None]
    )
    every = [selector["keys"]] if "keys" in selector else every
    every = [colour_keys(selector["keys.colour"])] if "keys.colour" in selector else every
    sizes = [selector["dataset_params.rows"]] if "dataset_params.rows" in selector else SIZES
    return [(selector["method"], selector.get("params.prior"), size, keys) for size in sizes for keys in every]


def values(world: World, selector: dict, by_part: bool = False) -> dict:
    """Values by seed, or by seed and keys, averaged over the cells of a selector; without what lacks one."""
    found = {}
    for seed in SEEDS:
        for method, prior, size, keys in picked(selector):
            measured = world.values[method, prior, size, seed].get((selector["measure"], keys, None))
            found.setdefault((seed, keys) if by_part else seed, []).append(measured)
    return {k: v for k, v in found.items() if None not in v}


def replicates(world: World, claim: dict) -> list[float]:
    """The numbers that a claim with pairs, or with one side, is judged by."""
    if claim["predicate"] == "earlier":
        return [delay(world, claim, seed) for seed in SEEDS]
    by_part = claim.get("replicates") == "part"
    scale = math.log if claim["predicate"] in ("ratio_at_least", "slope_between") else float
    a = {k: [scale(x) for x in v] for k, v in values(world, claim["value"], by_part).items()}
    if claim["predicate"] == "slope_between":
        return [(large - small) / math.log(SIZES[1] / SIZES[0]) for small, large in a.values()]
    if "reference" not in claim:
        return [mean(v) for v in a.values()]
    b = values(world, claim["reference"], by_part)
    return [mean(a[k]) - mean([scale(x) for x in b[k]]) for k in a if k in b]


def delay(world: World, claim: dict, seed: int) -> int:
    """Stages after which the value's curve reaches the last level of the reference's, less those of the reference."""
    curves = []
    for selector in (claim["value"], claim["reference"]):
        [(method, prior, size, _)] = picked(selector)
        curves.append([world.values[method, prior, size, seed]["nllh", None, k] for k in STAGES])
    first, second = ([k for k, v in zip(STAGES, c, strict=True) if v >= curves[1][-1]] or [5] for c in curves)
    return first[0] - second[0]


def region(claim: dict) -> tuple[float, float]:
    """From where to where the claim is true."""
    allowed, bound, inf = claim.get("tolerance", 0) - claim.get("margin", 0), claim.get("bound"), math.inf
    match claim["predicate"]:
        case "less":
            return -inf, allowed
        case "greater":
            return -allowed, inf
        case "within":
            return -allowed, allowed
        case "at_least":
            return bound, inf
        case "at_most":
            return -inf, bound
        case "ratio_at_least":
            return math.log(bound), inf
        case "slope_between":
            return tuple(bound)
        case "earlier":
            return -inf, 0


NAMES = {
    "at_least": "mean",
    "at_most": "mean",
    "ratio_at_least": "ratio",
    "slope_between": "slope",
    "earlier": "delay in steps",
}


def number_of(claim: dict, x: float) -> str:
    if claim["predicate"] == "ratio_at_least":
        return f"{math.exp(x):.3g}"
    return f"{x:.4g}" if claim["predicate"] in ("at_least", "at_most", "slope_between") else f"{x:+.4g}"


def against(claim: dict) -> str:
    if isinstance(bound := claim.get("bound"), list):
        return f" against {bound[0]:g} to {bound[1]:g}"
    if bound is not None:
        return f" against {bound:g}"
    return "".join(f", {k} {claim[k]:g}" for k in ("tolerance", "margin") if k in claim)


def case(claim: dict, estimate: Estimate, label: str = "", pairs: bool = True, note: str = "") -> Case:
    """A claim judged by one estimate."""
    low, high = region(claim)
    detail = f"{NAMES.get(claim['predicate'], 'difference')} {number_of(claim, estimate.mean)}"
    if estimate.half is not None:
        detail += f" [{number_of(claim, estimate.low)}, {number_of(claim, estimate.high)}]"
    detail += f"{against(claim)}, {estimate.n} {'pairs' if 'reference' in claim and pairs else 'replicates'}"
    if estimate.n < claim.get("min_pairs", 3):
        return Case(label, estimate, 1, 1, FEW, f"{detail}; a verdict needs 3{note}")
    if estimate.half is None:
        return Case(label, estimate, 1, 1, FEW, f"{detail}, all the same, so that they have no interval")
    ends = [(estimate.mean - low) / estimate.error] * (low > -math.inf) + [(high - estimate.mean) / estimate.error] * (
        high < math.inf
    )
    true = [float(stats.t.cdf(e, estimate.df)) for e in ends]
    outside, inside = max(1 - p for p in true), min(true)
    verdict = "holds" if outside <= 0.025 else "fails" if inside <= 0.025 else "undecided"
    return Case(label, estimate, outside, inside, verdict, detail + note)


def judged(world: World, name: str, claim: dict) -> Judged:
    if name in NO_RESULT:
        return NO_RESULT[name]
    if "deterministic" in claim:
        found = [x for v in values(world, claim["value"]).values() for x in v]
        low, high = min(found), max(found)
        numbers = f"{low:.4g}" + (f" to {high:.4g}" if high > low else "")
        detail = f"value {numbers}{against(claim)}, {len(found)} values, each judged by itself"
        return Judged("holds" if low >= claim["bound"] else "fails", detail)
    if name == "unpaired":
        sides = [Estimate.of([mean(v) for v in values(world, claim[k]).values()]) for k in ("value", "reference")]
        found = case(claim, welch(*sides), pairs=False, note="; the two sides were tested on different units")
        return Judged(found.verdict, found.detail, None, found.estimate)
    if "each" not in claim:
        found = case(claim, Estimate.of(replicates(world, claim)), note=without_result(world, claim))
        weak = "the rival is below the base rate" if rival_below(world, claim) else None
        return Judged(found.verdict, found.detail, weak, found.estimate)
    return over_cases(world, claim)


def without_result(world: World, claim: dict) -> str:
    """Of `exacting`, which fails on few records, the runs that do."""
    n = len(SEEDS) - len(values(world, claim["value"])) if claim["value"]["method"] == "exacting" else 0
    return (
        f"; without result: {n} of {len(SEEDS)} runs of the value (ValueError: needs {LEAST} records & more)"
        if n
        else ""
    )


def welch(a: Estimate, b: Estimate) -> Estimate:
    """The difference of two independent means."""
    u, v = a.error**2, b.error**2
    return Estimate(min(a.n, b.n), a.mean - b.mean, math.sqrt(u + v), (u + v) ** 2 / (u**2 / a.df + v**2 / b.df))


def rival_below(world: World, claim: dict) -> bool:
    """Whether a claim that something is greater has a rival without skill."""
    base = {"nllh": 0.0, "auc": 0.5}.get(claim["value"]["measure"])
    if claim["predicate"] != "greater" or base is None:
        return False
    return mean([mean(v) for v in values(world, claim["reference"]).values()]) < base


def case_name(field: str, value: object) -> str:
    """A value of a field as text, with the name of the field."""
    name = field.rpartition(".")[2]
    return f"without {name}" if value is None else f"{name} {value}"


def over_cases(world: World, claim: dict) -> Judged:
    """A claim on several cases: all, most, or their average."""
    [field] = claim["each"]
    keys = (
        list(SIZES) if field == "dataset_params.rows" else sorted((None, *COLOURS), key=lambda colour: str((colour,)))
    )
    cases, samples = [], []
    for key in keys:
        one = claim | {k: claim[k] | {field: key} for k in ("value", "reference")}
        samples.append(replicates(world, one))
        cases.append(case(one, Estimate.of(samples[-1]), case_name(field, key)))
    m, needed = len(cases), {"all": len(cases), "most": len(cases) // 2 + 1}.get(claim.get("cases", "all"))
    ordered = sorted(cases, key=lambda c: c.inside)
    adjusted = 0.0
    for rank, one in enumerate(ordered):  # Holm
        adjusted = max(adjusted, (m - rank) * one.inside)
        if one.verdict == "fails" and adjusted > 0.025:
            one.verdict = "undecided"
    counts = {v: sum(c.verdict == v for c in cases) for v in ("fails", "undecided")}
    tally = f"holds in {sum(c.verdict == 'holds' for c in cases)} of {m}" + "".join(
        f", {n} {v}" for v, n in counts.items() if n
    )
    if claim.get("cases") == "average":
        average = case(claim, Estimate.of([mean(x) for x in zip(*samples, strict=True)]))
        return Judged(average.verdict, f"on average over {m} cases: {average.detail}; {tally}")
    outside, inside = sorted(c.outside for c in cases), sorted(c.inside for c in cases)
    holds = min(1, (m - needed + 1) * outside[needed - 1])  # the needed-th smallest, times the choices that are left
    fails = min(1, needed * inside[m - needed])
    verdict = "holds" if holds <= 0.025 else "fails" if fails <= 0.025 else "undecided"
    shown = [c for v in ("fails", "undecided", "holds") for c in cases if c.verdict == v]
    return Judged(verdict, f"{tally}: " + "; ".join(f"{c.label}: {c.detail}" for c in shown))
