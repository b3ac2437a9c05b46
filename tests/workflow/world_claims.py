"""Claims on the small world, and the verdicts on them by hand. `tests/unit/reporting/` has those of every predicate, and on several cases."""

import math
from dataclasses import dataclass

from scipy import stats
from world import LEAST, SEEDS, Estimate, World, mean


def side(method: str, measure: str, rows=240, **more) -> dict:
    prior = {"params.prior": more.pop("prior", 1.0)} if method == "rates" else {}
    return {"method": method, "measure": measure, "dataset_params.rows": rows} | prior | more


def claim(predicate: str, value: dict, reference: dict | None = None, **more) -> dict:
    said = {
        "source": "spike",
        "claim": f"{predicate} <so>",
        "place": "p. 7",
        "experiment": "world",
        "predicate": predicate,
    }
    return said | {"value": value} | ({"reference": reference} if reference else {}) | more


RIGHT = (side("rates", "right", keys=None), side("base", "right", keys=None))
CLAIMS = {
    "less": claim("less", side("base", "auc"), side("rates", "auc")),
    "less_with_tolerance": claim("less", *RIGHT, tolerance=0.6),
    "greater": claim("greater", *RIGHT[::-1]),
    "greater_by_a_margin": claim("greater", *RIGHT, margin=0.1),
    "within": claim("within", side("rates", "nllh"), side("rates", "nllh", prior=8.0), tolerance=0.3),
    "not_within": claim("within", *RIGHT, tolerance=0.01),
    "at_least": claim("at_least", side("rates", "auc"), bound=0.5, note="A note"),
    "at_most": claim("at_most", side("base", "nllh"), bound=-0.1),
    "few": claim("at_least", side("exacting", "nllh"), bound=0.0),
    "few_are_enough": claim("at_least", side("exacting", "auc"), bound=-9.0, min_pairs=2),
    "the_same": claim("at_least", side("base", "auc"), bound=0.4),
    "weak": claim("greater", side("rates", "nllh", 120), side("base", "nllh", 120)),
    "absent": claim("at_least", side("absent", "nllh"), bound=0.0),
    "stopped": claim("at_least", side("limited", "nllh"), bound=0.0),
    "apart": claim("at_least", side("base", "nllh"), bound=0.0) | {"experiment": "world_apart"},
}  # fmt: skip
BROKEN = {"broken": claim("slope_between", side("base", "nllh"), x="method", bound=[0, 1])}  # a method is no number


@dataclass
class Judged:
    """Verdict and text of a claim, why it says little, and what it is judged by."""

    verdict: str
    detail: str
    weak: str | None = None
    estimate: Estimate | None = None


FEW = "undecided at this scale"
NO_RESULT = {
    "absent": Judged("not judged", "surrogate is not installed"),
    "stopped": Judged("not judged", "stopped: > 3 steps"),
    "apart": Judged("not judged", "experiment world_apart is not in this run"),
    "broken": Judged("failed", 'ValueError: Unable to parse string "base" at position 0'),
}


def values(world: World, selector: dict) -> dict[int, float]:
    """Values of a cell by seed."""
    where = (selector["method"], selector.get("params.prior"), selector["dataset_params.rows"])
    found = {seed: world.values[(*where, seed)].get((selector["measure"], None, None)) for seed in SEEDS}
    return {seed: value for seed, value in found.items() if value is not None}


def region(claim: dict) -> tuple[float, float]:
    """From where to where the claim is true."""
    allowed, bound, inf = claim.get("tolerance", 0) - claim.get("margin", 0), claim.get("bound"), math.inf
    ends = {"less": (-inf, allowed), "greater": (-allowed, inf), "within": (-allowed, allowed), "at_least": (bound, inf), "at_most": (-inf, bound)}  # fmt: skip
    return ends[claim["predicate"]]


def judged(world: World, name: str, claim: dict) -> Judged:
    if name in NO_RESULT:
        return NO_RESULT[name]
    a, b = values(world, claim["value"]), values(world, claim.get("reference", claim["value"]))
    paired = "reference" in claim
    estimate = Estimate.of([a[seed] - b[seed] * paired for seed in a])
    number = "{:+.4g}".format if paired else "{:.4g}".format
    detail = f"{'difference' if paired else 'mean'} {number(estimate.mean)}"
    if estimate.error:
        detail += f" [{number(estimate.low)}, {number(estimate.high)}]"
    detail += "".join(f", {k} {claim[k]:g}" for k in ("tolerance", "margin") if k in claim)
    detail += f", {estimate.n} pairs" if paired else f" against {claim['bound']:g}, {estimate.n} replicates"
    lacking = len(SEEDS) - len(a)
    note = (
        f"; without result: {lacking} of {len(SEEDS)} runs of the value (ValueError: needs {LEAST} records & more)"
        * bool(lacking)
    )
    if estimate.n < claim.get("min_pairs", 3):
        return Judged(FEW, f"{detail}; a verdict needs 3{note}", None, estimate)
    if not estimate.error:
        return Judged(FEW, f"{detail}, all the same, so that they have no interval", None, estimate)
    low, high = region(claim)
    true = stats.t.cdf(
        [(estimate.mean - low) / estimate.error, (high - estimate.mean) / estimate.error], estimate.n - 1
    )
    verdict = "holds" if max(1 - true) <= 0.025 else "fails" if min(true) <= 0.025 else "undecided"
    no_skill = {"nllh": 0.0, "auc": 0.5}.get(claim["value"]["measure"], -math.inf)
    weak = claim["predicate"] == "greater" and mean(list(b.values())) < no_skill
    return Judged(verdict, detail + note, "the rival is below the base rate" if weak else None, estimate)
