"""What is read from the source is what running code takes."""

import importlib
import inspect
import pkgutil

import pytest

import agglearn
from agglearn import settings
from agglearn.collective.inference import METHODS
from agglearn.inspection import modules, signatures
from agglearn.inspection.classes import is_subclass
from agglearn.settings import REQUIRED, Runtime, type_words
from agglearn.tasks import keys
from agglearn.workflow.checks import DATASET, ESTIMATOR, READING

OPTIONAL = ("agglearn.spark", "agglearn.networks", "agglearn.cli")


def classes() -> list[str]:
    """Dotted names of all learners and data sets of the package, where they are defined."""
    names = [m.name for m in pkgutil.walk_packages(agglearn.__path__, "agglearn.") if not m.name.startswith(OPTIONAL)]
    found = [f"{m}.{n}" for m in names for n in modules.summary_of(m).defined]
    return sorted(d for d in found if is_subclass(d, ESTIMATOR) or is_subclass(d, DATASET))


def loaded(dotted: str):
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def described(declared) -> dict:
    return declared and {k: (type_words(p.hint), p.default is REQUIRED) for k, p in declared.items()}


@pytest.mark.parametrize("dotted", classes())
def test_constructors(dotted):
    assert described(signatures.parameters(dotted)) == described(settings.parameters(loaded(dotted)))
    for parameter in (signatures.parameters(dotted) or {}).values():
        assert parameter.hint is not settings.Any or parameter.default is None, "only random_state may be anything"


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods_of_inference(name):
    function = METHODS[name]
    assert described(signatures.parameters(f"{function.__module__}.{function.__name__}")) == described(
        settings.parameters(function)
    )


@pytest.mark.parametrize("name", sorted(n for n in vars(keys) if n.endswith("Keys")))
def test_keys_of_tasks(name):
    assert described(signatures.parameters(f"agglearn.tasks.keys.{name}")) == described(
        settings.parameters(getattr(keys, name))
    )


def test_defaults_are_allowed():
    for dotted in classes():
        declared = settings.parameters(loaded(dotted)) or {}
        given = {k: p.default for k, p in declared.items() if p.default is not REQUIRED}
        if not inspect.isabstract(loaded(dotted)):
            assert list(settings.values_at_fault(given, declared, reading=Runtime())) == []
    assert list(READING.variants({"smoke": 1, "default": {"grid": [2, {"paper": 3}]}}, "a")) == [
        ("a.smoke", 1),
        ("a.default.grid.0", 2),
        ("a.default.grid.1.paper", 3),
    ]


ODD = """
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Literal, TypeVar
import numpy as np
from agglearn.settings import Count

T = TypeVar("T")
Size = Count | None

class Odd:
    def __init__(
        self, a: "Count", b: Callable[..., int], c: Annotated[int, "doc"], d: T, e: np.ndarray, f: list["T"], g: Size = 2,
        h: np.dtype[int] = None, *, i: tuple[int, ...] = (), j=3,
    ): ...
"""


def test_annotations_of_other_kinds_may_be_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "ROOTS", list(modules.ROOTS))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "odd_for_test.py").write_text(ODD)
    modules.add_root(tmp_path)
    given = {"a": "x", "b": print, "c": 1, "d": [1], "f": ["x"], "g": None, "h": 3, "i": (1, 2), "j": "x"}
    both = signatures.parameters("odd_for_test.Odd"), settings.parameters(loaded("odd_for_test.Odd"))
    for declared in both:
        assert list(declared) == list("abcdefghij")
        assert list(settings.values_at_fault(given, declared)) == []
        wrong = [place for place, _ in settings.values_at_fault({"c": 1.5, "g": 0, "i": (1, "x")}, declared)]
        assert wrong == ["c", "g", "i.1"]
