"""Claims with their verdicts as sentences and drawings, for the pages."""

import json
import math
from collections import Counter, namedtuple
from collections.abc import Callable

from markupsafe import Markup

from agglearn.evaluation.verdicts import FAILS, HOLDS, UNDECIDED
from agglearn_workflow.claims.judging import NOT_JUDGED, TOO_FEW, VERDICTS, describe_level
from agglearn_workflow.tables.numbers import duration_text, measure_name, number
from agglearn_workflow.tables.printed_table import TEMPLATES

WORST_FIRST = (FAILS, UNDECIDED, TOO_FEW, HOLDS)
WIDTH, LABEL, ROW, MAX_CASES = 560, 240, 18, 12  # pixels, and cases in a drawing
LONGEST = 40  # letters of a case's label


def count_verdicts(claims: list[dict], key: str = "verdict") -> list[tuple[str, int]]:
    counts = Counter(claim.get(key) for claim in claims)
    return [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]]


def describe_claim(claim: dict, entry: dict, seeds: int, names: dict[str, str], spent: float) -> dict:
    measure = entry.get("value", {}).get("measure", "")
    of_time = "seconds" in measure.split("_") or measure.startswith("time_")
    cases = [c | {"case": ", ".join(names.get(text, text) for text in c["case"].split(", "))} for c in claim["cases"]]
    claim = claim | {"of_time": of_time, "cases": cases, "sides": _sides(entry, names)}
    lines = [f"{c['case']}: {in_words(claim, c)} ({c['verdict']})" for c in cases]
    keys = ("value", "reference", "each", "cases", "bound", "tolerance", "margin")
    query = json.dumps({k: entry[k] for k in keys if k in entry}, ensure_ascii=False)
    return {
        "sentence": _capital(claim["claim"].strip().removesuffix(".")),
        "decisive": _decisive(claim, [c for c in cases if c.get("numbers")]),
        "why": (claim.get("why") or "No reason is stated yet.") if claim["verdict"] == FAILS else "",
        "open": _open(claim, spent),
        "rests": _rests(claim, entry, seeds),
        "lines": lines if len(lines) > 1 else [],
        "forest": Markup(forest(claim)),
        "query": f"{entry['predicate']} {query}",
        "of_time": of_time,
    }


def _sides(entry: dict, names: dict[str, str]) -> list[str]:
    """What a claim compares: the fields in which its two selectors differ. Empty is what takes several values."""
    value, reference = entry.get("value", {}), entry.get("reference", {})

    def text(field: str, level: object) -> str:
        if field == "measure":
            return measure_name(str(level))
        return describe_level(field, level) if "." in field else names.get(str(level), str(level))

    differ = [field for field in reference if reference[field] != value.get(field)]
    sides = [{f: side[f] for f in differ if f in side} for side in (value, reference)]
    return [", ".join(text(f, level) for f, level in side.items() if not isinstance(level, list)) for side in sides]


def _decisive(claim: dict, judged: list[dict]) -> str:
    """The number that decides: that of the only case, or how many cases agree, and the least favourable case."""
    if not judged:
        if claim.get("absent"):
            return "No run at this scale has such a result."
        detail = claim["detail"].partition(" (")[0]
        if detail.startswith("make archive"):
            return f"Not archived: {detail}."
        remedy = f"{claim['command']} computes it." if "command" in claim else "The first page says how to get it."
        return f"Missing: {detail}. {remedy}"
    if len(judged) == 1:
        return _capital(in_words(claim, judged[0]))
    least = min(judged, key=lambda c: (WORST_FIRST.index(c["verdict"]), c["p_true"]))
    agree = sum(c["verdict"] == HOLDS for c in judged)
    return f"Holds in {agree} of {len(judged)} cases. The least favourable, {least['case']}: {in_words(claim, least)}."


def _open(claim: dict, spent: float) -> str:
    """What would decide an undecided claim. Empty for other verdicts."""
    if claim["verdict"] not in (UNDECIDED, TOO_FEW):
        return ""
    same, near = sum(c["verdict"] == TOO_FEW for c in claim["cases"]), [c for c in claim["cases"] if "deciding" in c]
    sentences = []
    if any(c["deciding"] is None for c in near):
        sentences.append("Even 1,000 replicates would not decide it, if mean and spread stay as they are.")
    elif near:
        n, needed = max(((c["replicates"], c["deciding"]) for c in near), key=lambda pair: pair[1] / pair[0])
        sentences.append(
            f"{needed} replicates in place of {n} would decide it, if mean and spread stay as they are. "
            f"They take {duration_text(spent * (needed / n - 1))} more."
        )
    if same:
        sentences.append(f"{same} of {len(claim['cases'])} cases have too few replicates or no interval.")
    return " ".join(sentences)


def _rests(claim: dict, entry: dict, seeds: int) -> str:
    """A note on variation that an interval over parts of the test does not cover."""
    if entry.get("replicates") != "part" or claim["verdict"] == NOT_JUDGED:
        return ""
    drawn = "one seed" if seeds == 1 else f"{seeds} seeds"
    return f"The interval is over parts of the tests of {drawn}. Other seeds may differ by more."


def _capital(text: str) -> str:
    first = text[0].upper() if text[0].isascii() else text[0]  # the capital of the symbol λ is another symbol
    return f"{first}{text[1:]}."


Words = namedtuple("Words", "larger smaller multiple unit")
LEVEL, TIME = Words("higher", "lower", "as large", ""), Words("longer", "shorter", "as long", " s")


def in_words(claim: dict, case: dict) -> str:
    numbers = case.get("numbers")
    if not numbers or numbers["value"] is None:
        return case["detail"]
    words, predicate = TIME if claim.get("of_time") else LEVEL, claim["predicate"]
    value, low, high = number(numbers["value"]), numbers["from"], numbers["to"]
    ends = [] if numbers["low"] in (None, numbers["high"]) else [numbers["low"], numbers["high"]]
    if predicate in ("less", "greater"):
        if ends and ends[0] * ends[1] <= 0:  # without signs
            interval = f" (95 %: {_apart(ends[0], words)} to {_apart(ends[1], words)})"
        else:
            interval = _range(sorted(map(abs, ends)))
        return f"{_apart(numbers['value'], words)}{interval}{_slack(low, high, words)}"
    interval = _range(ends)
    if predicate == "within":
        return f"the difference is {value}{interval}; up to {number(high)} counts as none"
    if predicate == "slope_between":
        return f"the slope is {value}{interval}; the claim asks for {number(low)} to {number(high)}"
    if predicate == "earlier":
        return f"{number(abs(numbers['value']))} steps {'earlier' if numbers['value'] < 0 else 'later'}{interval}"
    if predicate == "ratio_at_least":
        compared, rival = claim.get("sides", ("", ""))  # a side that the label of the case names may be empty
        sides = (f" for {compared}" if compared else "") + (f" as for {rival}" if rival else "")
        multiple = f"{value} times {words.multiple}".removeprefix("1 times ")
        return f"{multiple}{sides}{interval}; the claim asks for at least {number(low)}"
    asked = f"at least {number(low)}" if low is not None else f"at most {number(high)}"
    return f"{value}{words.unit}{interval}; the claim asks for {asked}{words.unit}"


def _range(ends: list[float]) -> str:
    return f" (95 %: {number(ends[0])} to {number(ends[1])})" if ends else ""


def _apart(difference: float, words: Words) -> str:
    return f"{words.larger if difference > 0 else words.smaller} by {number(abs(difference))}{words.unit}"


def _slack(low: float | None, high: float | None, words: Words) -> str:
    bound = high if low is None else -low
    if not bound:
        return ""
    return f"; {number(abs(bound))}{words.unit} {'are allowed' if bound > 0 else 'more are asked for'}"


def forest(claim: dict) -> str:
    """SVG with a row for each case: estimate, interval, in green where the claim is true. Empty without cases."""
    cases = [c for c in claim["cases"] if (c.get("numbers") or {}).get("value") is not None]
    if not cases:
        return ""
    drawn, rows = cases[:MAX_CASES], []
    numbers = [c["numbers"] for c in drawn]
    scale = _log if claim["predicate"] == "ratio_at_least" and all(n["value"] > 0 for n in numbers) else float
    position, first, last = _axis(numbers, scale)
    for case, values in zip(drawn, numbers, strict=True):
        x, label = position(values["value"]), case["case"]
        low, high = (x if values[k] is None else position(values[k]) for k in ("low", "high"))
        label = label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
        verdict = case["verdict"].split()[0]
        rows.append({"label": label, "verdict": verdict, "x": x, "low": max(low, first), "high": min(high, last)})
    low, high = numbers[0]["from"], numbers[0]["to"]
    start, end = first if low is None else position(low), last if high is None else position(high)
    return TEMPLATES.get_template("forest.svg").render(
        title="; ".join(in_words(claim, c) for c in drawn),
        width=WIDTH,
        row=ROW,
        rows=rows,
        region=(start, max(end - start, 1)),
        bounds=[(position(x), number(x)) for x in sorted({low, high} - {None})],
        hidden=len(cases) - len(drawn),
    )


def _axis(numbers: list[dict], scale: Callable[[float], float]) -> tuple[Callable[[float], float], float, float]:
    """(position of a number, left end, right end) of an axis with estimates, bounds, and intervals that fit."""
    values = [scale(n[k]) for n in numbers for k in ("value", "from", "to") if n[k] is not None]
    spread = max(values) - min(values) or abs(values[0]) or 1.0
    ends = [scale(n[k]) for n in numbers for k in ("low", "high") if n[k] is not None]
    ends = [end for end in ends if end > -math.inf]
    start = max(min([*values, *ends]), min(values) - spread)
    end = min(max([*values, *ends]), max(values) + spread)
    pad = 0.06 * (end - start or 1.0)
    start, end, width = start - pad, end + pad, WIDTH - LABEL
    return lambda x: LABEL + width * (scale(x) - start) / (end - start), LABEL, WIDTH


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
