"""A claim as a drawing and as text: estimates with their intervals, beside the values for which the claim is true."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from agglearn.reporting.numbers import number

WIDTH, LABEL, ROW, MAX_CASES = 560, 240, 18, 12  # pixels, and cases in a drawing
LONGEST = 40  # letters of a case's label


def in_words(claim: dict, case: dict) -> str:
    """The measured value of a case, with its interval and the bound of the claim."""
    numbers = case.get("numbers")
    if not numbers or numbers["value"] is None:
        return case["detail"]
    words = TIME if claim.get("of_time") else LEVEL
    if claim["predicate"] == "ratio_at_least":
        multiple = f"{number(numbers['value'])} times {words.multiple}{_of_sides(*claim.get('sides', ('', '')))}"
        return f"{multiple}{_interval(numbers)}; the claim asks for at least {number(numbers['from'])}"
    return _sentence(claim["predicate"], numbers["value"], _interval(numbers), numbers, words)


def _of_sides(one: str, other: str) -> str:
    """What a multiple compares. A side that the label of the case names may be empty."""
    return (f" for {one}" if one else "") + (f" as for {other}" if other else "")


@dataclass(frozen=True)
class Words:
    """Words for a quantity: a larger and a smaller value, a multiple, and the unit."""

    larger: str
    smaller: str
    multiple: str
    unit: str


LEVEL, TIME = Words("higher", "lower", "as large", ""), Words("longer", "shorter", "as long", " s")


def _sentence(predicate: str, value: float, interval: str, numbers: dict, words: Words) -> str:
    low, high = numbers["from"], numbers["to"]
    if predicate in ("less", "greater"):
        return f"{_apart(value, words)}{_of_difference(numbers, words)}{_slack(low, high, words)}"
    if predicate == "within":
        return f"the difference is {number(value)}{interval}; up to {number(high)} counts as none"
    if predicate == "slope_between":
        return f"the slope is {number(value)}{interval}; the claim asks for {number(low)} to {number(high)}"
    if predicate == "earlier":
        return f"{number(abs(value))} steps {'earlier' if value < 0 else 'later'}{interval}"
    asked = f"at least {number(low)}" if low is not None else f"at most {number(high)}"
    return f"{number(value)}{words.unit}{interval}; the claim asks for {asked}{words.unit}"


def _apart(difference: float, words: Words) -> str:
    return f"{words.larger if difference > 0 else words.smaller} by {number(abs(difference))}{words.unit}"


def _of_difference(numbers: dict, words: Words) -> str:
    """The interval of a difference, without signs."""
    low, high = numbers["low"], numbers["high"]
    if low is None or low == high:
        return ""
    if low * high > 0:
        small, large = sorted((abs(low), abs(high)))
        return f" (95 %: {number(small)} to {number(large)})"
    return f" (95 %: {_apart(low, words)} to {_apart(high, words)})"


def _slack(low: float | None, high: float | None, words: Words) -> str:
    """Tolerance or margin of a claim of less or more."""
    bound = high if low is None else -low
    if not bound:
        return ""
    return f"; {number(abs(bound))}{words.unit} {'are allowed' if bound > 0 else 'more are asked for'}"


def _interval(numbers: dict) -> str:
    if numbers["low"] is None or numbers["low"] == numbers["high"]:
        return ""
    return f" (95 %: {number(numbers['low'])} to {number(numbers['high'])})"


def forest(claim: dict) -> str:
    """SVG with a row for each case: estimate, interval, and in green the values for which the claim is true. Empty without cases."""
    cases = [c for c in claim["cases"] if (c.get("numbers") or {}).get("value") is not None]
    if not cases:
        return ""
    shown = cases[:MAX_CASES]
    scale = _log if claim["predicate"] == "ratio_at_least" and all(c["numbers"]["value"] > 0 for c in shown) else float
    position, first, last = _axis([c["numbers"] for c in shown], scale)
    height = ROW * len(shown) + 22
    numbers = shown[0]["numbers"]
    start, end = (
        position(x) if x is not None else edge for x, edge in ((numbers["from"], first), (numbers["to"], last))
    )
    shapes = [
        f'<rect class="true" x="{start:.1f}" y="0" width="{max(end - start, 1):.1f}" height="{ROW * len(shown)}"/>'
    ]
    for k, case in enumerate(shown):
        shapes.append(_row(case, ROW * k + ROW / 2, position, first, last))
    for x in sorted({v for v in (numbers["from"], numbers["to"]) if v is not None}):
        shapes.append(
            f'<line class="bound" x1="{position(x):.1f}" x2="{position(x):.1f}" y1="0" y2="{ROW * len(shown)}"/>'
        )
        shapes.append(f'<text class="tick" x="{position(x):.1f}" y="{height - 8}">{escape(number(x))}</text>')
    hidden = f'<text x="0" y="{height - 8}">and {len(cases) - MAX_CASES} more</text>' if len(cases) > MAX_CASES else ""
    title = f"<title>{escape('; '.join(in_words(claim, c) for c in shown))}</title>"
    return (
        f'<svg class="forest" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"{title}{''.join(shapes)}{hidden}</svg>"
    )


def _row(case: dict, y: float, position: Callable[[float], float], first: float, last: float) -> str:
    numbers, label = case["numbers"], case["case"]
    short = label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
    text = f'<text x="0" y="{y + 4:.1f}">{escape(short)}</text>'
    x = position(numbers["value"])
    low, high = (position(numbers[k]) if numbers[k] is not None else x for k in ("low", "high"))
    kind = case["verdict"].split()[0]
    return (
        f'<g class="{kind}">{text}<line x1="{max(low, first):.1f}" x2="{min(high, last):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle cx="{x:.1f}" cy="{y}" r="4"/></g>'
    )


def _axis(numbers: list[dict], scale: Callable[[float], float]) -> tuple[Callable[[float], float], float, float]:
    """(position of a number, left end, right end) of an axis with all estimates, bounds and, as far as they fit, intervals."""
    values = [scale(n[k]) for n in numbers for k in ("value", "from", "to") if n[k] is not None]
    spread = max(values) - min(values) or abs(values[0]) or 1.0
    ends = [
        scale(n[k])
        for n in numbers
        for k in ("low", "high")
        if n[k] is not None and n[k] > (0 if scale is _log else -math.inf)
    ]
    left = max(min([*values, *ends]), min(values) - spread)
    right = min(max([*values, *ends]), max(values) + spread)
    pad = 0.06 * (right - left or 1.0)
    left, right, width = left - pad, right + pad, WIDTH - LABEL
    return lambda x: LABEL + width * (scale(x) - left) / (right - left), LABEL, WIDTH


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
