"""Tables of the small world: the headings that they should have, and what stands below them."""

import itertools
import math
import statistics
from dataclasses import dataclass
from decimal import Decimal

from world import COLOURS, EXPERIMENT, METHODS, SIZES, Cell, Estimate, World, cell, colour_keys, compared, printed_for

ROWS = [(str(size), {"size": size}) for size in SIZES]
HEADS = [(f"rows {size}", {"size": size}) for size in SIZES]
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
        [(("Rates & 5 %", f"prior {p:g}"), {"method": "rates", "prior": p}) for p in (1.0, 8.0)]
        + [((name, ""), key) for (name,), key in combined(NAMED[1:])],
        "right", ("right",),
    ),
    "too wide": Layout(  # a page has no room for ten columns of intervals, hence they are the rows
        {"rows": ["keys.colour"], "columns": ["method", "params.prior", "dataset_params.rows"], "measure": "right"},
        ["", "prior", "rows"], [((*a, b), x | y) for a, x in with_priors(NAMED) for b, y in ROWS],
        [(("",), {"keys": None}), *(((f"colour {c}",), {"keys": colour_keys(c)}) for c in COLOURS)],
        "right", ("right",),
    ),
    "differences": Layout(
        {"rows": ["dataset_params.rows", "method"], "columns": ["params.prior"], "none": "no prior", "measure": "nllh_minus_base"},
        ["rows", ""], combined(ROWS, [n for n in NAMED if n[0] != "base"]),
        [((f"prior {p:g}",), {"prior": p}) for p in (1.0, 8.0)] + [(("no prior",), {"prior": None})],
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
    """What stands below the title: the labels of its rows and its heads, the cells, the notes, and what has no result."""

    title: str
    rows: list[tuple[str, ...]]
    heads: list[tuple[str, ...]]
    cells: list[list[Place]]
    notes: list[str]
    without: list[str]


def grids(world: World, layout: Layout, stale: str = "") -> list[Grid]:
    """Every table of a layout. The results of the method `stale` are from other code."""
    return [_grid(world, layout, end, part, stale) for end, part in layout.titles]


def _grid(world: World, layout: Layout, end: str, part: dict, stale: str) -> Grid:
    default = {"prior": None, "measure": layout.measures[0], "keys": None} | part
    reasons = [
        here.reason for where in itertools.product(layout.rows, layout.heads)
        if (here := found(world, layout, default | where[0][1] | where[1][1])) and here.status == "unavailable"
    ]  # fmt: skip
    rows, heads = (
        [one for one in mine if any(
            (here := found(world, layout, default | one[1] | other)) and here.status != "unavailable" for _, other in across
        )] for mine, across in ((layout.rows, layout.heads), (layout.heads, layout.rows))
    )  # fmt: skip
    counted = [f"{r} ({reasons.count(r)} cell{'s' if reasons.count(r) > 1 else ''})" for r in dict.fromkeys(reasons)]
    grid = Grid(end, [labels for labels, _ in rows], [labels for labels, _ in heads], [], [], counted)
    keys = [[default | row | column for _, column in heads] for _, row in rows]
    known = [
        (key, here.estimate) for line in keys for key in line
        if key["method"] != stale and (here := found(world, layout, key)) and here.estimate
    ]  # fmt: skip
    for line in keys:
        grid.cells.append([])
        for column, key in enumerate(line):
            same = [e for k, e in known if any(k == other[column] for other in keys)]
            grid.cells[-1].append(placed(world, layout, key, grid.notes, key["method"] == stale, decimals_of(same)))
    for line, places in zip(keys, grid.cells, strict=True):
        for key, place in zip(line, places, strict=True):
            place.best = any(k == key and is_best(e, key, known) for k, e in known)
    return grid


def found(world: World, layout: Layout, key: dict) -> Cell | None:
    """The cell of a key. A run without a result stands in the place of the first measure only."""
    where = [key[k] for k in ("method", "prior", "size", "measure", "keys")]
    if tuple(where[:2]) not in METHODS or (where[0] == "base" and "minus" in where[3]):
        return None
    here = cell(world, *where)
    return None if here.estimate is None and (where[3] != layout.measures[0] or where[4]) else here


def decimals_of(estimates: list[Estimate]) -> int:
    """Decimals of a column: two digits of the median half width, and no more than four digits of the largest number."""
    largest = max((abs(e.mean) for e in estimates), default=1.0)
    halves = [e.half for e in estimates if e.half is not None]
    if not halves:
        return max(0, 2 - Decimal(statistics.median([abs(e.mean) for e in estimates] or [1.0])).adjusted())
    wanted = 1 - Decimal(statistics.median(halves)).adjusted()
    return max(0, min(wanted, 3 - Decimal(largest).adjusted()))


STALE = "computed with other code or settings than today's; run the workflow again"


def placed(world: World, layout: Layout, key: dict, notes: list[str], stale: bool, decimals: int) -> Place:
    here = found(world, layout, key)
    if here is None:
        return Place("–")
    if stale:
        here = Cell(None, "stale", STALE)
    if here.note and here.note not in notes:
        notes.append(here.note)
    text = here.text if here.estimate is None else here.estimate.rounded(decimals)
    place = Place(text, note=str(notes.index(here.note) + 1) if here.note else "", stated=here.estimate is None)
    if entry := printed_for(*(key[k] for k in ("method", "prior", "size", "measure", "keys"))):
        place.printed = entry.get("printed", f"{entry['value']:g}")
        if here.estimate:
            digits = max(2, len(place.printed.partition(".")[2]))
            place.difference = f"{here.estimate.mean - entry['value']:+.{digits}f}".replace("-", "−")
            place.verdict = compared(here.estimate, entry)
    return place


def is_best(estimate: Estimate, key: dict, known: list) -> bool:
    """Whether it is the best of the methods under the same size, keys and measure, or not told from that one; not if all are. What has no interval is given the widest of them."""
    if key["measure"] not in HIGHER_IS_BETTER:
        return False
    group = [e for k, e in known if all(k[f] == key[f] for f in ("size", "keys", "measure"))]
    best = (max if HIGHER_IS_BETTER[key["measure"]] else min)(group, key=lambda e: e.mean)
    widest = max((e.half for e in group if e.half is not None), default=math.inf)
    half = lambda e: widest if e.half is None else e.half  # noqa: E731
    near = [e for e in group if abs(e.mean - best.mean) <= math.hypot(half(e), half(best))]
    return len(near) < len(group) and estimate in near
