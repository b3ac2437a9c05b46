"""What pydantic says of a file of the configuration, as one line with the file, the key and what is allowed there."""

import re
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agglearn.errors import ConfigError
from agglearn_workflow.config import models


def validate(value: object, model: str, file: str, *prefix: str) -> None:
    try:
        models.FILES[model].model_validate(value)
    except ValidationError as error:
        keys, text = _nearest([_problem(e, value) for e in error.errors(include_url=False)])
        raise ConfigError(f"{file}: {'.'.join(map(str, [*prefix, *keys])) or 'top level'}: {text}") from None


class Problem(NamedTuple):
    """What is wrong at a place: a whole message, or what the value must be or have."""

    keys: tuple
    value: Any
    text: str = ""
    must: str = ""


def _problem(error: ErrorDetails, value: Any) -> Problem:
    """An error at its place in the file: without names of types and alternatives, which pydantic puts between keys."""
    kind, context, last = error["type"], error.get("ctx", {}), ("", *error["loc"])[-1]
    keys: tuple = ()
    for item in error["loc"][:-1] if kind == "missing" else error["loc"]:
        items = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(items, dict) and item in items:
            keys, value = (*keys, item), items[item]
    if kind == "refusal":
        return Problem((*keys, context["name"]) if context["name"] else keys, value, context["text"])
    if kind == "missing":
        return Problem(keys if isinstance(value, dict) else keys[:-1], value, f"key {last!r} is missing")
    if kind == "union_tag_not_found":
        return Problem(keys, value, f"key {context['discriminator']} is missing")
    if kind == "union_tag_invalid":
        return Problem((*keys, "kind"), context["tag"], must=f"be one of {context['expected_tags']}")
    if last == "[key]":
        keys, value = keys[:-1], error["input"]
    if kind == "string_pattern_mismatch":
        return Problem(keys, value, f"{value!r} is not allowed; {models.FORMS[context['pattern']]}")
    must = error["msg"].partition(" should ")[2].replace("valid dictionary", "mapping (name: value)")
    return Problem(keys, value, must=re.sub("( or instance| or object| after validation).*", "", must))


def _nearest(problems: list[Problem]) -> tuple[tuple, str]:
    """The outermost problem. Where a value has parts, an alternative that looked into them counts alone."""
    inner = {p.keys[:depth] for p in problems for depth in range(len(p.keys))}
    outer = [p for p in problems if p.text or p.keys not in inner]
    keys = min((p.keys for p in outer), key=lambda keys: (len(keys), str(keys)))
    nearest = sorted((p for p in outer if p.keys == keys), key=lambda p: not p.text)
    value = nearest[0].value
    must = " or ".join(dict.fromkeys(p.must for p in nearest))
    return keys, nearest[0].text or f"{value!r} is not allowed; it must {must}"
