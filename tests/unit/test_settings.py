"""What annotations demand of the arguments of learners and data sets."""

import ast
import importlib
import inspect
import pkgutil

import agglearn
from agglearn import settings
from agglearn.estimator import Estimator
from agglearn.registry import find, is_subclass
from agglearn.settings import REQUIRED
from agglearn_workflow import digests
from agglearn_workflow.config.checks import READING, parameters

OPTIONAL = ("agglearn.spark", "agglearn.networks", "agglearn.cli")


def classes() -> list[str]:
    """Dotted names of all learners and data sets of the package, where they are defined."""
    names = [m.name for m in pkgutil.walk_packages(agglearn.__path__, "agglearn.") if not m.name.startswith(OPTIONAL)]
    trees = {m: ast.parse(digests.find_file(m).read_text()) for m in names}
    defined = [f"{m}.{n.name}" for m, tree in trees.items() for n in tree.body if isinstance(n, ast.ClassDef)]
    return sorted(
        d
        for d in defined
        if is_subclass(d, "agglearn.estimator.Estimator") or is_subclass(d, "agglearn.datasets.base.Dataset")
    )


def test_defaults_are_allowed():
    for dotted in classes():
        declared = settings.parameters(find(dotted)) or {}
        given = {k: p.default for k, p in declared.items() if p.default is not REQUIRED}
        if not inspect.isabstract(find(dotted)):
            assert list(settings.values_at_fault(given, declared)) == [], dotted
        for parameter in declared.values():
            assert parameter.hint is not settings.Any or parameter.default is None, "only random_state may be anything"


def test_scales_and_grids_stand_for_values():
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
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "odd_for_test.py").write_text(ODD)
    digests.add_root(tmp_path)
    importlib.invalidate_caches()
    declared = parameters("odd_for_test.Odd")
    assert list(declared) == list("abcdefghij")
    given = {"a": "x", "b": print, "c": 1, "d": [1], "f": ["x"], "g": None, "h": 3, "i": (1, 2), "j": "x"}
    assert list(settings.values_at_fault(given, declared)) == []
    wrong = [place for place, _ in settings.values_at_fault({"c": 1.5, "g": 0, "i": (1, "x")}, declared)]
    assert wrong == ["c", "g", "i.1"]


def test_a_class_outside_followed_code_takes_values_of_any_type():
    assert parameters("sklearn.naive_bayes.GaussianNB")["var_smoothing"].hint is settings.Any
    assert parameters("builtins.dict") is None


def test_a_learner_keeps_an_init_that_a_person_wrote_also_below_it():
    class Written(Estimator):
        def __init__(self, prior=1.0, random_state=None):
            self.prior = prior
            self.random_state = random_state

    class Below(Written):
        pass

    class Fields(Estimator):
        rate: float = 2.0

    class BelowFields(Fields):
        size: int = 3

    assert Below(prior=4.0).get_params() == {"prior": 4.0, "random_state": None}
    assert BelowFields(1.0, 5).get_params() == {"rate": 1.0, "size": 5, "random_state": None}
