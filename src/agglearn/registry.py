"""Objects by name: a class at its dotted path, an object from `{class:, params:}`."""

import importlib


def resolve(dotted: str):
    """The object at a dotted path."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def build(value, **more):
    """An object from `{class:, params:}`, nested ones first; other values as they are."""
    if isinstance(value, dict) and "class" in value and set(value) <= {"class", "params"}:
        params = {k: build(v) for k, v in value.get("params", {}).items()}
        return resolve(value["class"])(**params, **more)
    return value
