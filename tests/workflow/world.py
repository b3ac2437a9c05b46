"""A small world with known answers: records, an experiment on them, and the numbers that follow, in plain Python.

Nothing here uses the package. Given are the raw records, and which of them each seed trained and tested.
"""

import json
import math
import random
import statistics
from dataclasses import dataclass
from decimal import Decimal

from scipy import stats

SIZES, SEEDS, COLOURS, STAGES = (120, 240), (0, 1, 2), ("blue", "green", "red"), (1, 2, 3, 4)
LEGS = {"0,0>1,0": 0.15, "0,1>0,0": 0.85, "1,0>1,1": 0.35, "1,1>0,1": 0.7}  # leg → rate of label 1


def colour_keys(colour: str | None) -> str | None:
    """Keys of a measure of a colour, as they are stored."""
    return colour and f'{{"colour": "{colour}"}}'


def leg_keys(leg: str) -> str:
    """Keys of a measure of a leg."""
    start, end = (f"[{point.replace(',', ', ')}]" for point in leg.split(">"))
    return f'{{"from": {start}, "to": {end}}}'


LEAST = 181  # records that the method `exacting` needs
OVERLAP = 0.25 / 0.75  # test records per training record


def people() -> list[dict]:
    """300 records whose label depends on the leg."""
    rng = random.Random(11)
    found = []
    for i in range(300):
        leg = rng.choice(list(LEGS))
        y = "yes" if rng.random() < LEGS[leg] else "no"
        found.append({"id": f"r{i:03}", "leg": leg, "colour": rng.choice(COLOURS), "y": y})
    return found


def csv_of(records: list[dict]) -> str:
    lines = [";".join(records[0]), *(";".join(r.values()) for r in records)]
    return "\n".join(lines) + "\n"


ENTRY = {
    "title": "People & <co>",
    "class": "agglearn.datasets.Tabular",
    "format": {"separator": ";"},
    "label": {"column": "y", "positive": "yes"},
    "split": 0.25,
}

MARGIN = 0.05
MEASURES = ["nllh", "auc", "log_loss", "curve", "right", "flow", "true_flow"]
BY_METHOD = ["method", "params.prior", "dataset_params.rows"]


def printed(method: str, rows: int, measure: str, value: float, **more) -> dict:
    return {"dataset": "people", "method": method, "measure": measure, "value": value, "place": f"Table {rows}",
            "dataset_params": {"rows": rows}} | more  # fmt: skip


EXPERIMENT = {
    "source": "spike",
    "title": "World & 5 % of_it",
    "caption": "By hand, <plainly>.",
    "task": "ledger.Ledger",
    "datasets": {"people": {"rows": {"grid": list(SIZES)}}},
    "observe": {"records": {"type": "agglearn.observations.Records"}},
    "seeds": list(SEEDS),
    "methods": {
        "rates": {"class": "drawn.Drawn", "observe": "records", "name": "Rates & 5 %", "params": {"prior": {"grid": [1.0, 8.0]}}},
        "base": {"class": "ledger.Rates", "observe": "records", "params": {"column": ""}},
        "exacting": {"class": "ledger.Exacting", "observe": "records", "params": {"least": LEAST}},
        "limited": {"class": "ledger.Limited", "observe": "records"},
        "absent": {"class": "ledger.Absent", "observe": "records"},
    },
    "measures": MEASURES,
    "baseline": "base",
    "batch_by": ["dataset"],
    "keep_model": "all",
    "budget": 7,
    "table": {"rows": ["method", "params.prior"], "columns": ["dataset_params.rows"], "measure": "nllh"},
    "figure": [
        {"kind": "dots", "y": "nllh", "series": BY_METHOD},
        {"kind": "curve", "y": "nllh", "series": ["method", "params.prior"], "panel": ["dataset_params.rows"], "x": "seconds"},
        {"kind": "line", "x": "params.prior", "y": "nllh", "series": ["method"], "panel": ["dataset_params.rows"], "x_none": "none"},
        {"kind": "scatter", "x": "base", "y": "right", "panel": ["dataset_params.rows", "keys.colour"], "series": ["method", "params.prior"]},
        {"kind": "scatter", "x": "true_flow", "y": "flow", "series": BY_METHOD},
        {"kind": "flows", "x": "true_flow", "y": "flow", "series": BY_METHOD},
    ],
    "reported": [
        printed("base", 240, "nllh", -0.01),  # agrees
        printed("rates", 120, "nllh", 0.995, params={"prior": 1.0}),  # 1½ half-widths beyond the margin
        printed("rates", 120, "nllh", -0.7, params={"prior": 8.0}),
        printed("rates", 240, "nllh", 0.3, params={"prior": 8.0}, printed="0.30"),
        printed("exacting", 120, "nllh", 0.25),
        printed("exacting", 240, "nllh", 0.26),
        printed("limited", 240, "nllh", 0.27),
        printed("base", 240, "auc", 0.5),
        printed("base", 240, "right", 0.5, keys={"colour": "red"}),
    ],
    "agreement": {"margins": {"nllh": MARGIN}, "reason": "no reader of these tables cares"},
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Ids of the records that a seed trained and tested, in their order."""

    trained: tuple[str, ...]
    tested: tuple[str, ...]


class World:
    """Every number of the experiment."""

    def __init__(self, splits: dict[tuple[int, int], Split], pull: float, mended: bool):
        """`splits`: by size and seed. `pull`: rate of the prior of `rates`. `mended`: whether `exacting` takes any number."""
        self.records = {r["id"]: r for r in people()}
        self.splits, self.pull, self.mended = splits, pull, mended
        self.cells = [(m, p, size) for size in SIZES for m, p in METHODS]
        self.values = {
            (m, p, size, seed): self._measured(m, p, size, seed) for m, p, size in self.cells for seed in SEEDS
        }

    def status(self, method: str, size: int, seed: int) -> tuple[str, str]:
        """(status, reason) of a run."""
        if method == "limited":
            return "stopped", "> 3 steps"
        if method == "absent":
            return "unavailable", "surrogate is not installed"
        if method == "exacting" and not self.mended and len(self.splits[size, seed].trained) < LEAST:
            return "failed", f"ValueError: needs {LEAST} records & more"
        return "ok", ""

    def _measured(self, method, prior, size, seed) -> dict[tuple, float]:
        """{(measure, keys, step): value} of a run."""
        if self.status(method, size, seed)[0] != "ok":
            return {}
        trained = [self.records[i] for i in self.splits[size, seed].trained]
        tested = [self.records[i] for i in self.splits[size, seed].tested]
        pull = self.pull if method == "rates" else 0.5
        group = (lambda r: "all") if method == "base" else (lambda r: r["leg"])
        y = [r["y"] == "yes" for r in tested]

        def predicted(known, prior):
            p = []
            for r in tested:
                same = [k["y"] == "yes" for k in known if group(k) == group(r)]
                p.append((sum(same) + pull * prior) / (len(same) + prior) if same else 0.5)
            return p

        p = predicted(trained, prior or 1.0)
        found = {
            ("log_loss", None, None): log_loss(y, p),
            ("nllh", None, None): nllh(y, p),
            ("auc", None, None): auc(y, p),
        }
        for k in STAGES:
            found["nllh", None, k] = nllh(y, predicted(trained[: len(trained) * k // 4], 4.0))
            found["seconds", None, k] = k / 8
        found["right", None, None] = mean([(q > 0.5) == v for q, v in zip(p, y, strict=True)])
        for colour in COLOURS:
            here = [i for i, r in enumerate(tested) if r["colour"] == colour]
            found["right", colour_keys(colour), None] = mean([(p[i] > 0.5) == y[i] for i in here])
        for leg in LEGS:
            here = [i for i, r in enumerate(tested) if r["leg"] == leg]
            found["flow", leg_keys(leg), None], found["true_flow", leg_keys(leg), None] = (
                mean([p[i] for i in here]),
                mean([y[i] for i in here]),
            )
        return found

    def seeds(self, method, prior, size, measure, keys=None, step=None) -> list[float]:
        """One value per seed that has one; of `<measure>_minus_base` the differences."""
        name, minus, _ = measure.partition("_minus_")
        key, found = (name, keys, step), []
        for seed in SEEDS:
            mine, base = self.values[method, prior, size, seed], self.values["base", None, size, seed]
            if key in mine:
                found.append(mine[key] - base[key] if minus else mine[key])
        return found


METHODS = [("rates", 1.0), ("rates", 8.0), ("base", None), ("exacting", None), ("limited", None), ("absent", None)]


def mean(values) -> float:
    return sum(values) / len(values)


def log_loss(y, p) -> float:
    return -mean([math.log(q if v else 1 - q) for q, v in zip(p, y, strict=True)])


def nllh(y, p) -> float:
    rate = mean(y)
    return 1 - log_loss(y, p) / -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))


def auc(y, p) -> float:
    """Share of pairs of a positive and a negative in the right order; a tie is half."""
    pairs = [(a, b) for a, v in zip(p, y, strict=True) if v for b, w in zip(p, y, strict=True) if not w]
    return mean([(a > b) + (a == b) / 2 for a, b in pairs])


@dataclass(frozen=True)
class Estimate:
    """A mean with the 95 % interval of Nadeau and Bengio; `low` and `high` are None where values have no spread."""

    n: int
    mean: float
    error: float | None
    df: float

    @classmethod
    def of(cls, values: list[float]) -> "Estimate":
        n, s = len(values), statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(n, mean(values), s * math.sqrt(1 / n + OVERLAP) if s > 1e-12 else None, n - 1)

    @property
    def half(self) -> float | None:
        return None if self.error is None else float(stats.t.ppf(0.975, self.df)) * self.error

    @property
    def text(self) -> str:
        """The mean with the decimals of two digits of the half width; alone with three digits. For usual sizes."""
        if self.half is None:
            return f"{self.mean:.3g}"
        decimals = max(0, 1 - Decimal(self.half).adjusted())
        return f"{self.mean:.{decimals}f} ± {self.half:.{decimals}f}".replace("-", "−")

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


METHOD_NAMES = {"rates": "Rates & 5 %"}


def printed_for(method, prior, size, measure, keys=None) -> dict | None:
    """The printed number that belongs to a cell."""
    for entry in EXPERIMENT["reported"]:
        same = entry["method"] == method and entry["dataset_params"]["rows"] == size and entry["measure"] == measure
        if (
            same
            and (json.dumps(entry["keys"]) if "keys" in entry else None) == keys
            and entry.get("params", {}).get("prior", prior) == prior
        ):
            return entry
    return None


def compared(estimate: Estimate | None, entry: dict) -> str:
    """Verdict on a printed number."""
    if estimate is None:
        return "not judged"
    if entry["measure"] != "nllh":
        return "not compared"
    digits = len(entry.get("printed", str(entry["value"])).partition(".")[2])
    least, most = entry["value"] - MARGIN - 0.5 / 10**digits, entry["value"] + MARGIN + 0.5 / 10**digits
    if estimate.half is not None and least <= estimate.low and estimate.high <= most:
        return "agrees"
    if estimate.half is not None and estimate.low > most:
        return "above"
    if estimate.half is not None and estimate.high < least:
        return "below"
    return "undecided"


@dataclass(frozen=True)
class Cell:
    """What a reader finds of one measure of one method: an estimate or none, the status and the reason."""

    estimate: Estimate | None
    status: str
    reason: str

    @property
    def text(self) -> str:
        if self.estimate is None:
            return {"unavailable": "not available", "stopped": self.reason}.get(self.status, self.status)
        return self.estimate.text

    @property
    def note(self) -> str:
        return "" if self.status == "stopped" else self.reason


def cell(world: World, method, prior, size, measure, keys=None) -> Cell:
    values = world.seeds(method, prior, size, measure, keys)
    bad = [s for s in (world.status(method, size, seed) for seed in SEEDS) if s[0] != "ok"]
    if not values:
        return Cell(None, *bad[0]) if bad else Cell(None, "", "")
    reason = f"{len(bad)} seeds {bad[0][0]}: {bad[0][1]}" if bad else ""
    return Cell(Estimate.of(values), "ok", reason)


# -- tables -------------------------------------------------------------------------------------------------------------

ROWS = [(str(size), {"size": size}) for size in SIZES]
HEADS = [(f"rows = {size}", {"size": size}) for size in SIZES]
NAMED = [("Rates & 5 %", {"method": "rates"}), *((m, {"method": m}) for m in ("base", "exacting", "limited", "absent"))]
MEASURED = [("NLLH", {"measure": "nllh"}), ("log loss (nat)", {"measure": "log_loss"})]
OF_COLOURS = [("", {"keys": None}), *((c, {"keys": colour_keys(c)}) for c in COLOURS)]


def combined(*parts: list[tuple[str, dict]]) -> list[tuple[tuple[str, ...], dict]]:
    """Every combination of headings."""
    found = [((), {})]
    for part in parts:
        found = [((*a, b), x | y) for a, x in found for b, y in part]
    return found


def with_priors(named: list[tuple[str, dict]], *more) -> list[tuple[tuple[str, ...], dict]]:
    """Headings of methods, more of them, and of the prior, which `rates` alone has."""
    priors = [("1", {"prior": 1.0}), ("8", {"prior": 8.0})]
    return [
        c for n in named for c in combined([n], *more, priors if n[1]["method"] == "rates" else [("", {"prior": None})])
    ]


@dataclass(frozen=True)
class Layout:
    """A table of the experiment, and the headings that it should have with what stands under them."""

    table: dict | None
    stubs: list[str]
    rows: list[tuple[tuple[str, ...], dict]]
    heads: list[tuple[tuple[str, ...], dict]]
    corner: str = "NLLH"
    measures: tuple[str, ...] = ("nllh",)
    titles: tuple[tuple[str, dict], ...] = (("", {}),)


LAYOUTS = {
    "main": Layout(EXPERIMENT["table"], ["", "prior"], with_priors(NAMED), combined(HEADS)),
    "default": Layout(None, ["", "rows", "prior"], with_priors(NAMED, ROWS), [(("People & <co>",), {})]),
    "each": Layout(
        {"each": "dataset_params.rows", "rows": ["method"], "columns": [], "measure": ["nllh", "auc"]},
        ["", "prior"], with_priors(NAMED), combined([MEASURED[0], ("AUC", {"measure": "auc"})]), "", ("nllh", "auc"),
        tuple((f": {head}", key) for head, key in HEADS),
    ),
    "colours": Layout(
        {"rows": ["keys.colour", "dataset_params.rows"], "columns": ["method", "params.prior"], "measure": "right"},
        ["colour", "rows"], combined(OF_COLOURS, ROWS),
        [(("Rates & 5 %", f"prior = {p:g}"), {"method": "rates", "prior": p}) for p in (1.0, 8.0)]
        + [((name, ""), key) for (name,), key in combined(NAMED[1:])],
        "right", ("right",),
    ),
    "differences": Layout(
        {"rows": ["dataset_params.rows", "method"], "columns": ["params.prior"], "none": "no prior", "measure": "nllh_minus_base"},
        ["rows", ""], combined(ROWS, [n for n in NAMED if n[0] != "base"]),
        [((f"prior = {p:g}",), {"prior": p}) for p in (1.0, 8.0)] + [(("no prior",), {"prior": None})],
        "NLLH minus base", ("nllh_minus_base",),
    ),
    "measures": Layout(
        {"rows": ["method", "params.prior"], "columns": ["dataset_params.rows"], "measure": ["nllh", "log_loss"]},
        ["", "prior"], with_priors(NAMED), combined(HEADS, MEASURED), "", ("nllh", "log_loss"),
    ),
}  # fmt: skip
HIGHER_IS_BETTER = {"nllh": True, "auc": True, "log_loss": False, "nllh_minus_base": True}


@dataclass
class Place:
    """What stands in a place of a table: value, printed number, ours less that, number of a note, whether it is marked as best."""

    value: str = ""
    printed: str = ""
    difference: str = ""
    note: str = ""
    best: bool = False
    verdict: str = ""
    stated: bool = False


@dataclass
class Grid:
    title: str
    cells: list[list[Place]]
    notes: list[str]


def grids(world: World, layout: Layout) -> list[Grid]:
    """Every table of a layout: the end of its title, the cells below its headings, the notes."""
    found = []
    for end, part in layout.titles:
        grid, known = Grid(end, [], []), []
        for _, row in layout.rows:
            grid.cells.append([])
            for _, column in layout.heads:
                key = {"prior": None, "measure": layout.measures[0], "keys": None} | part | row | column
                place, estimate = placed(world, layout, key, grid.notes)
                grid.cells[-1].append(place)
                if estimate:
                    known.append((key, place, estimate))
        for key, place, estimate in known:
            place.best = is_best(estimate, key, known)
        found.append(grid)
    return found


def placed(world: World, layout: Layout, key: dict, notes: list[str]) -> tuple[Place, Estimate | None]:
    where = [key[k] for k in ("method", "prior", "size", "measure", "keys")]
    if tuple(where[:2]) not in METHODS or (where[0] == "base" and "minus" in where[3]):
        return Place(), None
    here = cell(world, *where)
    if here.estimate is None and (where[3] != layout.measures[0] or where[4]):
        return Place(), None  # a run without result stands in the place of the first measure
    if here.note and here.note not in notes:
        notes.append(here.note)
    place = Place(here.text, note=str(notes.index(here.note) + 1) if here.note else "", stated=here.estimate is None)
    if entry := printed_for(*where):
        place.printed = entry.get("printed", f"{entry['value']:g}")
        if here.estimate:
            digits = max(2, len(place.printed.partition(".")[2]))
            place.difference = f"{here.estimate.mean - entry['value']:+.{digits}f}".replace("-", "−")
            place.verdict = compared(here.estimate, entry)
    return place, here.estimate


def is_best(estimate: Estimate, key: dict, known: list) -> bool:
    """Whether it is the best of the methods under the same size, keys and measure, or not told from that one; not if all are. What has no interval is given the widest of them."""
    if key["measure"] not in HIGHER_IS_BETTER:
        return False
    group = [e for k, _, e in known if all(k[f] == key[f] for f in ("size", "keys", "measure"))]
    best = (max if HIGHER_IS_BETTER[key["measure"]] else min)(group, key=lambda e: e.mean)
    widest = max((e.half for e in group if e.half is not None), default=math.inf)
    half = lambda e: widest if e.half is None else e.half  # noqa: E731
    near = [e for e in group if abs(e.mean - best.mean) <= math.hypot(half(e), half(best))]
    return len(near) < len(group) and estimate in near


# -- claims -------------------------------------------------------------------------------------------------------------


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
        return Case(label, estimate, 1, 1, FEW, f"{detail}; a verdict needs 3")
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
        found = case(claim, Estimate.of(replicates(world, claim)))
        weak = "the rival is below the base rate" if rival_below(world, claim) else None
        return Judged(found.verdict, found.detail, weak, found.estimate)
    return over_cases(world, claim)


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
