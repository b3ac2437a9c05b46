"""Classes, functions and objects by their dotted names. They are imported when they are asked for."""

import contextlib
import importlib
from typing import Any


def resolve(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def build(value: Any, **extra: object) -> Any:
    """An object from `{class:, params:}`, nested ones first. Other values stay as they are."""
    if isinstance(value, dict) and "class" in value and set(value) <= {"class", "params"}:
        params = {k: build(v) for k, v in value.get("params", {}).items()}
        return resolve(value["class"])(**params, **extra)
    return value


def find(dotted: str) -> Any:
    """The object at a dotted path, or None where its module or its name is not there."""
    module = dotted.rpartition(".")[0]
    try:
        with contextlib.suppress(AttributeError, ValueError):
            return resolve(dotted)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but one that it imports is not
    return None


def name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def is_subclass(dotted: str, base: str) -> bool:
    """Whether the class at `dotted` descends from `base` (the dotted name of its definition)."""
    return base in map(name_of, getattr(find(dotted), "__mro__", ()))


def constant(dotted: str, name: str) -> Any:
    return getattr(find(dotted), name, None)
