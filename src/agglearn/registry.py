"""Objects by name."""

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
