"""Claims with their verdicts as sentences, for the pages."""

import json

from markupsafe import Markup

from agglearn.evaluation.verdicts import FAILS, HOLDS, UNDECIDED
from agglearn.reporting.forest import forest, in_words
from agglearn.reporting.numbers import duration_text, measure_name, parameter_name, plain
from agglearn.reporting.predicates import NOT_JUDGED, TOO_FEW, VERDICTS

WORST_FIRST = (FAILS, UNDECIDED, TOO_FEW, HOLDS)


def count_verdicts(claims: list[dict]) -> list[tuple[str, int]]:
    """(verdict, number of claims) for the verdicts that occur."""
    counts = [(verdict, sum(c["verdict"] == verdict for c in claims)) for verdict in VERDICTS]
    return [(verdict, n) for verdict, n in counts if n]


def describe_claim(
    claim: dict, entry: dict, seeds: int, names: dict[str, str] | None = None, spent: float = 0.0
) -> dict:
    """Texts of a claim for the pages."""
    cases = [case | {"case": _named(case["case"], names or {})} for case in claim["cases"]]
    claim = claim | {"of_time": _is_of_time(entry), "cases": cases, "sides": _sides(entry, names or {})}
    text = claim["claim"].strip()
    judged = [c for c in claim["cases"] if c.get("numbers")]
    return {
        "sentence": _capital(text.removesuffix(".")),
        "decisive": _decisive(claim, judged),
        "why": _why(claim),
        "open": _open(claim, spent),
        "rests": _rests(claim, entry, seeds),
        "lines": [f"{c['case']}: {in_words(claim, c)} ({c['verdict']})" for c in claim["cases"]]
        if len(claim["cases"]) > 1
        else [],
        "forest": Markup(forest(claim)),
        "query": _query(entry),
        "of_time": claim["of_time"],
    }


def _named(label: str, names: dict[str, str]) -> str:
    return ", ".join(names.get(text, text) for text in label.split(", "))


def _is_of_time(entry: dict) -> bool:
    """Whether the claim's measures are seconds."""
    measure = entry.get("value", {}).get("measure", "")
    return "seconds" in measure.split("_") or measure.startswith("time_")


def _sides(entry: dict, names: dict[str, str]) -> tuple[str, str]:
    """What a claim compares: the fields in which its two selectors differ. Empty is what takes several values."""
    value, reference = entry.get("value", {}), entry.get("reference", {})
    differ = [field for field in reference if reference[field] != value.get(field)]
    return _side(value, differ, names), _side(reference, differ, names)


def _side(selector: dict, fields: list[str], names: dict[str, str]) -> str:
    texts = [_field(f, selector[f], names) for f in fields if f in selector and not isinstance(selector[f], list)]
    return ", ".join(texts)


def _field(field: str, value: object, names: dict[str, str]) -> str:
    if field == "measure":
        return measure_name(str(value))
    return (
        f"{parameter_name(field.rpartition('.')[2])} {plain(value)}"
        if "." in field
        else names.get(str(value), str(value))
    )


def _decisive(claim: dict, judged: list[dict]) -> str:
    """The number that decides: that of the only case, or how many cases agree, and the least favourable case."""
    if not judged:
        return _missing(claim)
    if len(judged) == 1:
        return _capital(in_words(claim, judged[0]))
    least = next(c for v in WORST_FIRST for c in sorted(judged, key=lambda c: c["p_true"]) if c["verdict"] == v)
    agree = sum(c["verdict"] == HOLDS for c in judged)
    return f"Holds in {agree} of {len(judged)} cases. The least favourable, {least['case']}: {in_words(claim, least)}."


def _missing(claim: dict) -> str:
    """Short reason why nothing decides. The query of the claim has the whole reason."""
    if claim.get("absent"):
        return "No run at this scale has such a result."
    remedy = f"{claim['command']} computes it." if "command" in claim else "The first page has how to get it."
    return f"Missing: {claim['detail'].partition(' (')[0]}. {remedy}"


def _why(claim: dict) -> str:
    """Why a claim fails. Empty for other verdicts."""
    return (claim.get("why") or "No reason is stated yet.") if claim["verdict"] == FAILS else ""


def _open(claim: dict, spent: float) -> str:
    """What would decide an undecided claim. Empty for other verdicts."""
    if claim["verdict"] not in (UNDECIDED, TOO_FEW):
        return ""
    same = sum(c["verdict"] == TOO_FEW for c in claim["cases"])
    near = [c for c in claim["cases"] if "deciding" in c]
    sentences = []
    if any(c["deciding"] is None for c in near):
        sentences.append("Even 1,000 replicates would not decide it, if mean and spread stay as they are.")
    elif near:
        hardest = max(near, key=lambda c: c["deciding"] / c["replicates"])
        n, needed = hardest["replicates"], hardest["deciding"]
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


def _query(entry: dict) -> str:
    keys = ("value", "reference", "each", "cases", "bound", "tolerance", "margin")
    return f"{entry['predicate']} {json.dumps({k: entry[k] for k in keys if k in entry}, ensure_ascii=False)}"
