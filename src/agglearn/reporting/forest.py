"""A claim as a drawing and in words: estimates with their intervals, beside the values for which the claim is true."""

import math
from dataclasses import dataclass
from html import escape

from agglearn.reporting.numbers import number

WIDTH, LABEL, ROW, MOST = 560, 240, 18, 12  # pixels, and cases in a drawing
LONGEST = 40  # letters of a case's label


def in_words(claim: dict, case: dict) -> str:
    """What was measured in a case, with its interval and what the claim asks for.

    Parameters
    ----------
    claim : a claim with its verdict. case : one of its cases, with the `numbers` of `predicates.judge_case`.
    """
    numbers = case.get("numbers")
    if not numbers or numbers["value"] is None:
        return case["detail"]
    words = TIME if claim.get("of_time") else LEVEL
    return _sentence(claim["predicate"], numbers["value"], _interval(numbers), numbers, words)


@dataclass(frozen=True)
class Words:
    """How a quantity is spoken of: more and less of it, a multiple of it, and its unit."""

    more: str
    less: str
    multiple: str
    unit: str


LEVEL, TIME = Words("higher", "lower", "as large", ""), Words("longer", "shorter", "as long", " s")


def _sentence(predicate: str, value: float, interval: str, numbers: dict, words: Words) -> str:
    low, high = numbers["from"], numbers["to"]
    if predicate in ("less", "greater"):
        return f"{_apart(value, words)}{_of_difference(numbers, words)}{_slack(low, high, words)}"
    if predicate == "within":
        return f"the difference is {number(value)}{interval}; up to {number(high)} counts as none"
    if predicate == "ratio_at_least":
        return f"{number(value)} times {words.multiple}{interval}; the claim asks for {number(low)}"
    if predicate == "slope_between":
        return f"the slope is {number(value)}{interval}; the claim asks for {number(low)} to {number(high)}"
    if predicate == "earlier":
        return f"{number(abs(value))} steps {'earlier' if value < 0 else 'later'}{interval}"
    asked = f"at least {number(low)}" if low is not None else f"at most {number(high)}"
    return f"{number(value)}{words.unit}{interval}; the claim asks for {asked}{words.unit}"


def _apart(difference: float, words: Words) -> str:
    return f"{words.more if difference > 0 else words.less} by {number(abs(difference))}{words.unit}"


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
    """What a claim of less or more allows or asks for beyond the difference itself."""
    bound = high if low is None else -low
    if not bound:
        return ""
    return f"; {number(abs(bound))}{words.unit} {'are allowed' if bound > 0 else 'more are asked for'}"


def _interval(numbers: dict) -> str:
    if numbers["low"] is None or numbers["low"] == numbers["high"]:
        return ""
    return f" (95 %: {number(numbers['low'])} to {number(numbers['high'])})"


def forest(claim: dict) -> str:
    """SVG with a row for each case: estimate, interval, and in green the values for which the claim is true. Empty without any case."""
    cases = [c for c in claim["cases"] if (c.get("numbers") or {}).get("value") is not None]
    if not cases:
        return ""
    shown = cases[:MOST]
    scale = _log if claim["predicate"] == "ratio_at_least" and all(c["numbers"]["value"] > 0 for c in shown) else float
    place, first, last = _places([c["numbers"] for c in shown], scale)
    height = ROW * len(shown) + 22
    numbers = shown[0]["numbers"]
    start, end = (place(x) if x is not None else edge for x, edge in ((numbers["from"], first), (numbers["to"], last)))
    parts = [
        f'<rect class="true" x="{start:.1f}" y="0" width="{max(end - start, 1):.1f}" height="{ROW * len(shown)}"/>'
    ]
    for k, case in enumerate(shown):
        parts.append(_row(case, ROW * k + ROW / 2, place, first, last))
    for x in sorted({v for v in (numbers["from"], numbers["to"]) if v is not None}):
        parts.append(f'<line class="bound" x1="{place(x):.1f}" x2="{place(x):.1f}" y1="0" y2="{ROW * len(shown)}"/>')
        parts.append(f'<text class="tick" x="{place(x):.1f}" y="{height - 8}">{escape(number(x))}</text>')
    more = f'<text x="0" y="{height - 8}">and {len(cases) - MOST} more</text>' if len(cases) > MOST else ""
    title = f"<title>{escape('; '.join(in_words(claim, c) for c in shown))}</title>"
    return (
        f'<svg class="forest" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"{title}{''.join(parts)}{more}</svg>"
    )


def _row(case: dict, y: float, place, first: float, last: float) -> str:
    numbers, label = case["numbers"], case["case"]
    short = label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
    text = f'<text x="0" y="{y + 4:.1f}">{escape(short)}</text>'
    x = place(numbers["value"])
    low, high = (place(numbers[k]) if numbers[k] is not None else x for k in ("low", "high"))
    kind = case["verdict"].split()[0]
    return (
        f'<g class="{kind}">{text}<line x1="{max(low, first):.1f}" x2="{min(high, last):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle cx="{x:.1f}" cy="{y}" r="4"/></g>'
    )


def _places(numbers: list[dict], scale):
    """(where a number stands, left end, right end) of an axis with all estimates, bounds and, as far as they fit, intervals."""
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
