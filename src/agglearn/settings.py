"""Types of settings: what a parameter may be stands in its annotation, and is checked where it is given.

A constructor declares `n_chains: Count = 10_000`. Other annotations, or none, allow all. Nothing heavy is imported.
"""

import decimal
import difflib
import functools
import inspect
import math
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import yaml

from agglearn.errors import ConfigError

Fault = tuple[str, str]  # its path, and what is wrong there
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Range:
    """Bounds of a number. `open` names the ends that are not allowed. An infinite number needs `infinite`."""

    low: float = -math.inf
    high: float = math.inf
    open: Literal["", "low", "high", "both"] = ""
    infinite: bool = False

    def __contains__(self, value: Any) -> bool:
        above = value > self.low if self.open in ("low", "both") else value >= self.low
        below = value < self.high if self.open in ("high", "both") else value <= self.high
        return bool(above and below and (self.infinite or math.isfinite(value)))

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.open in ("low", "both") else f"of at least {self.low:g}"
        high = f"below {self.high:g}" if self.open in ("high", "both") else f"of at most {self.high:g}"
        bounded = [t for t, end in ((low, self.low), (high, self.high)) if math.isfinite(end)]
        return f" {' and '.join(bounded)}" if bounded else ""

    def __repr__(self) -> str:  # in signatures, which have to fit a screen
        return str(self).strip() or "finite"


@dataclass(frozen=True)
class OneOf:
    names: Collection[str]

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and value in self.names

    def __repr__(self) -> str:
        return f"one of {', '.join(map(str, self.names))}"


@dataclass(frozen=True)
class OptionsOf:
    """Keyword arguments of the function that another parameter names."""

    parameter: str
    functions: Mapping[str, Callable]
    without: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"options of {self.parameter}"

    def faults(self, options: Any, name: Any, path: str, reading: "Runtime") -> Iterator[Fault]:
        if isinstance(name, str) and name in self.functions:
            taken = reading.parameters(self.functions[name])
            taken = taken and {k: p for k, p in taken.items() if k not in self.without}
            yield from keys_at_fault(f"{self.parameter} {name}", taken, options, path, reading)


@dataclass(frozen=True)
class ParametersOf:
    """Names of the constructor's parameters of another parameter's object: text, or the keys of a mapping."""

    parameter: str

    def faults(self, names: Any, holder: Any, path: str, reading: "Runtime") -> Iterator[Fault]:
        taken = reading.parameters(holder)
        for name in names if isinstance(names, Mapping) else [names]:
            if taken is not None and name not in taken:
                there = f"there are {', '.join(sorted(taken))}"
                yield path, f"{name!r} is no parameter of {self.parameter}{meant(name, taken)}; {there}"


UNCHECKED = "checked where it is used"  # of an annotation of which nothing is checked here
Whole = Annotated[int, Range(0)]
Count = Annotated[int, Range(1)]
Number = Annotated[float, Range()]
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, open="low")]
Share = Annotated[float, Range(0, 1)]  # of something, all and nothing included
Part = Annotated[float, Range(0, 1, open="both")]  # neither all nor nothing
Damping = Annotated[float, Range(0, 1, open="low")]  # share of a step that is taken


class Built:
    """Any object. In a configuration it is `{class:, params:}`."""


@dataclass(frozen=True)
class Parameter:
    """One key: its type, and its value where it is not given (`REQUIRED` where it must be)."""

    hint: Any = Any
    default: Any = REQUIRED


@functools.cache
def parameters(target: Any) -> dict[str, Parameter] | None:
    """Keys that a class's constructor, a function or a TypedDict takes, or None where it takes any."""
    if typing.is_typeddict(target):
        hints = typing.get_type_hints(target, include_extras=True)
        needed = target.__required_keys__
        return {k: Parameter(bare(h), REQUIRED if k in needed else None) for k, h in hints.items()}
    signature = inspect.signature(target).parameters
    if any(p.kind is p.VAR_KEYWORD for p in signature.values()):
        return None
    unchecked = {k for k, p in signature.items() if p.annotation is p.empty or UNCHECKED in _marks(p.annotation)}
    return {k: Parameter(Any if k in unchecked else p.annotation, p.default) for k, p in signature.items()}


def make_dataclass(kind: type) -> None:
    """Make a class a dataclass. An `__init__` that a person wrote, in the class or in the nearest base that has one, stays."""
    owner = next(base for base in kind.__mro__ if "__init__" in vars(base))
    is_generated = getattr(vars(owner).get("__dataclass_params__"), "init", False)
    dataclass(init=is_generated, eq=False, repr=False)(kind)


def check(target: Any, given: Mapping, prefix: str = "") -> None:
    name = "it" if typing.is_typeddict(target) else target.__name__
    for path, fault in keys_at_fault(name, parameters(target), given, prefix):
        raise ConfigError(f"{path}: {fault}" if path else fault)


def check_parameters(estimator: Any) -> None:
    kind: Any = type(estimator)
    for path, fault in values_at_fault(estimator.get_params(deep=False), parameters(kind) or {}):
        raise ConfigError(f"{kind.__name__}: {path}: {fault}")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{name}: {value!r:.40} is not known{meant(value, choices)}; use {', '.join(choices)}")


def scalar(text: str) -> str | float | bool | None:
    """The number, boolean or null that YAML reads in a text, or a number such as 1e-3, else the text itself."""
    try:
        value = yaml.safe_load(text)
        return value if value is None or isinstance(value, int | float) else float(text)
    except (ValueError, yaml.YAMLError):
        return text


# -- values against types ---------------------------------------------------------------------------------------------


class Runtime:
    """How values of running code are read. Those of a configuration are read otherwise, see `Configured`."""

    def variants(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        yield path, value

    def is_object(self, value: object, hint: Any) -> bool:
        return hint in (Any, object, Built) or isinstance(value, hint)

    def description(self, value: Mapping, hint: Any, path: str) -> Iterator[Fault]:
        yield path, f"{reprlib.repr(value)} is not allowed; it must be a {hint.__name__}"

    def describe_misplaced(self, value: object, words: str) -> str:
        """The message on a value that its type does not allow. `words` name the type."""
        return f"{reprlib.repr(value)} is not allowed; it must be {words}"

    def parameters(self, target: Any) -> dict[str, Parameter] | None:
        taker: Any = target if inspect.isroutine(target) else type(target)
        return parameters(taker)


RUNTIME = Runtime()


def keys_at_fault(
    name: str, declared: dict[str, Parameter] | None, given: object, prefix: str = "", reading: Runtime = RUNTIME
) -> Iterator[Fault]:
    """What is wrong with a mapping of settings: unknown keys, missing ones, values that their types do not allow."""
    if not isinstance(given, Mapping):
        yield prefix, f"{reprlib.repr(given)} is not allowed; it must be a mapping (name: value)"
        return
    for key in given:
        if declared is not None and key not in declared:
            takes = f"it takes {', '.join(sorted(declared))}" if declared else "it takes none"
            yield prefix, f"{name} takes no {key!r}{meant(key, declared)}; {takes}"
    for key, parameter in (declared or {}).items():
        if parameter.default is REQUIRED and key not in given:
            yield prefix, f"key {key!r} is missing, which {name} needs"
    yield from values_at_fault(given, declared or {}, prefix, reading)


def values_at_fault(
    given: Mapping, declared: dict[str, Parameter], prefix: str = "", reading: Runtime = RUNTIME
) -> Iterator[Fault]:
    for key, value in given.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        hint = declared.get(key, Parameter()).hint
        mark = next((m for arm in _arms(hint) for m in _marks(arm) if isinstance(m, OptionsOf | ParametersOf)), None)
        yield from faults(value, typing.get_args(hint)[0] if mark else hint, path, reading)
        if mark is None or value is None:
            continue
        beside = given.get(mark.parameter, declared[mark.parameter].default)
        for _, variant in reading.variants(beside, "") if beside is not REQUIRED else ():
            for inner_path, inner in reading.variants(value, path):
                yield from mark.faults(inner, variant, inner_path, reading)


def faults(value: Any, hint: Any, path: str, reading: Runtime) -> Iterator[Fault]:
    """Paths within a value where its type does not allow it, and what is allowed there."""
    for inner_path, inner in reading.variants(value, path):
        arms = _arms(hint)
        if not any(_allows(arm, inner, reading) for arm in arms):
            container = next((a for a in arms if _contains(a, inner)), None)
            if container is None:
                yield inner_path, reading.describe_misplaced(inner, " or ".join(map(type_words, arms)))
            else:
                yield from _within(inner, container, inner_path, reading)


def meant(wrong: object, allowed: Iterable) -> str:
    """The nearest of the allowed names in parentheses, or nothing."""
    close = difflib.get_close_matches(str(wrong), [*map(str, allowed)], 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def bare(hint: Any) -> Any:
    """A type without Required and NotRequired."""
    wrapped = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
    return typing.get_args(hint)[0] if wrapped else hint


def _arms(hint: Any) -> tuple:
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(arm for member in typing.get_args(hint) for arm in _arms(member))
    return (hint,)


def _marks(hint: Any) -> tuple:
    return typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()


def _allows(hint: Any, value: Any, reading: Runtime) -> bool:
    """Whether a value that has no parts to be looked at is of a type."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        base, *marks = typing.get_args(hint)
        return _allows(base, value, reading) and all(value in m for m in marks if isinstance(m, Range | OneOf))
    if origin is Literal:
        return any(type(value) is type(literal) and value == literal for literal in typing.get_args(hint))
    if hint in (None, types.NoneType):
        return value is None
    if hint is bool:
        return type(value).__name__ in ("bool", "bool_")  # NumPy's, too
    if hint in (int, float):
        kinds = numbers.Integral if hint is int else (numbers.Real, decimal.Decimal)
        return isinstance(value, kinds) and not isinstance(value, bool) and not math.isnan(value)
    if hint is str:
        return isinstance(value, str)
    if origin in (list, tuple, dict) or typing.is_typeddict(hint) or hint in (list, tuple, dict):
        return False
    return not isinstance(hint, type) or reading.is_object(value, hint)  # of other types of types: anything


def _contains(hint: Any, value: object) -> bool:
    base = typing.get_origin(hint) or hint
    if base in (list, tuple):
        return hasattr(value, "__iter__") and not isinstance(value, str | Mapping)
    plain = (int, float, str, bool, types.NoneType, Annotated)
    return isinstance(value, Mapping) and isinstance(base, type) and base not in plain


def _within(value: Any, hint: Any, path: str, reading: Runtime) -> Iterator[Fault]:
    base, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if base in (list, tuple):
        each = [*args[:1]] * len(value) if base is list or Ellipsis in args else args
        if args and len(each) != len(value):
            yield path, f"{reprlib.repr(value)} is not allowed; it must be {type_words(hint)}"
        # a vocabulary may have millions
        if args and args[0] in (str, int, bool) and set(map(type, value)) == {args[0]}:
            return
        for i, (inner, kind) in enumerate(zip(value, each, strict=False)):
            yield from faults(inner, kind, f"{path}.{i}", reading)
    elif base is dict:
        key_hint, value_hint = args or (Any, Any)
        for key, inner in value.items():
            if any(faults(key, key_hint, path, reading)):
                allowed = list(_names(key_hint))
                yield path, f"unknown key {key!r}{meant(key, allowed)}; it must be {type_words(key_hint)}"
            yield from faults(inner, value_hint, f"{path}.{key}", reading)
    elif typing.is_typeddict(hint):
        yield from keys_at_fault("it", parameters(hint), value, path, reading)
    else:
        yield from reading.description(value, hint, path)


def _names(hint: Any) -> Iterator:
    for arm in _arms(hint):
        if typing.get_origin(arm) is Literal:
            yield from typing.get_args(arm)
        for mark in _marks(arm):
            yield from mark.names if isinstance(mark, OneOf) else ()


NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", types.NoneType: "null"}


def type_words(hint: Any) -> str:
    base: Any = typing.get_origin(hint) or hint
    base, args = list if base is Sequence else base, typing.get_args(hint)
    if names := list(_names(hint)):
        return f"one of {', '.join(map(str, names))}" if len(names) > 1 else repr(names[0])
    if base is Annotated:
        return type_words(args[0]) + "".join(str(m) for m in args[1:] if isinstance(m, Range))
    if len(arms := _arms(hint)) > 1:
        return " or ".join(map(type_words, arms))
    if base in (list, tuple):
        if base is tuple and args and Ellipsis not in args:
            return f"a list of {len(args)} values"
        return f"a list of values, each {type_words(args[0])}" if args and args[0] is not Any else "a list"
    if base is dict or typing.is_typeddict(base):
        return "a mapping (name: value)"
    kind = "" if base is Built else f" of class {base.__name__}"
    return NAMES.get(base) or f"an object{kind} (in a file, {{class:, params:}})"
