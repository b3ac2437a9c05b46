"""How the settings of a method are chosen: as its `tune:` states, or as its parameters say."""

import re
from collections.abc import Iterator
from typing import Any

from agglearn_workflow.config.checks import parameters

HELD_OUT = {"patience": "steps", "strengths": "λ", "trials": "trials"}  # parameters of learners that choose → what


def tunings(e: dict, name: str) -> list[dict]:
    """Entries as under `tune:` for a method of an experiment at a scale. Empty where nothing says how."""
    m = e["methods"][name]
    kind = e["observe"][m["observe"]]["type"].rpartition(".")[2]
    held_out = f"held-out {re.sub('(?<=[a-z])(?=[A-Z])', ' ', kind).lower()}"
    stated = [m["tune"]] if "tune" in m else []
    derived = _derived(m["class"], m.get("params", {}), held_out)
    return [*stated, *(d for d in derived if not any(d.keys() & s.keys() - {"by"} for s in stated))]


def _derived(dotted: str, given: dict, held_out: str) -> Iterator[dict]:
    """Entries that parameters imply, those of objects that the method is built with among them."""
    params: dict[str, Any] = {k: p.default for k, p in (parameters(dotted) or {}).items()} | given
    if name := params.get("option") or params.get("parameter"):
        yield {name: list(params["values"]), "by": "measure" if "option" in params else held_out}
    for key, value in params.items():
        is_grid, is_fixed = isinstance(value, dict) and "grid" in value, isinstance(value, int | float)
        if key.startswith("l2") and key in given and (is_grid or is_fixed):
            yield {key: value["grid"], "by": "rows"} if is_grid else {key: [value], "by": "fixed"}
        elif value == "held_out" or key in HELD_OUT or (key == "l2" and isinstance(value, list | tuple | None)):
            yield {HELD_OUT.get(key, key): list(value) if isinstance(value, list | tuple) else None, "by": held_out}
        elif key == "tune" and value:
            yield value | {"by": held_out}
        elif value == "moments" and not name:  # `values` stand in the place of what the base would choose
            yield {key: None, "by": value}
        elif isinstance(value, dict) and "class" in value and not name:
            yield from _derived(value["class"], value.get("params", {}), held_out)
