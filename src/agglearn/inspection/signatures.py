"""What constructors, functions and TypedDicts take, read from the syntax tree: names, types and defaults. Nothing is imported.

Types are the objects that running code has, see `agglearn.settings`. Only a class is replaced by a placeholder with its dotted
name. What cannot be read (an expression, a class outside followed code) stands for anything.
"""

import ast
import typing
from typing import Annotated, Any, Literal, NotRequired, Required, Union

from agglearn import settings
from agglearn.inspection import classes, modules
from agglearn.settings import REQUIRED, Parameter

PLAIN: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "Sequence": list,
}
GENERIC: dict[str, Any] = {
    "Literal": Literal,
    "Annotated": Annotated,
    "Required": Required,
    "NotRequired": NotRequired,
    "Union": Union,
}
MARKS: dict[str, Any] = {
    "Range": settings.Range,
    "OneOf": settings.OneOf,
    "OptionsOf": settings.OptionsOf,
    "ParametersOf": settings.ParametersOf,
}


class Followed:
    """Base of the placeholders of followed classes. `dotted` is the class's name."""

    dotted: str


@modules.cache_by_roots
def parameters(dotted: str) -> dict[str, Parameter] | None:
    """Keys that a followed class's constructor, a function or a TypedDict takes, or None where it takes any."""
    if function := classes.find_function(dotted):
        return _arguments(*function)
    chain = classes.ancestors(dotted)
    if any(_is_typed_dict(node) for _, node in chain):
        return {k: p for name, node in reversed(chain) for k, p in _fields(name.rpartition(".")[0], node).items()}
    for name, node in chain:
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                return _arguments(name.rpartition(".")[0], item, without=1)
    return {}


def _arguments(module: str, function: ast.FunctionDef, without: int = 0) -> dict[str, Parameter] | None:
    args = function.args
    if args.kwarg:
        return None
    names = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    first = len(args.posonlyargs) + len(args.args) - len(args.defaults)
    defaults = [*[None] * first, *args.defaults, *args.kw_defaults]
    pairs = [*zip(names, defaults, strict=True)][without:]
    return {a.arg: Parameter(_hint(module, a.annotation), REQUIRED if d is None else _value(d)) for a, d in pairs}


def attribute(dotted: str, name: str) -> str | None:
    """Dotted name of the class that a class attribute holds, the nearest ancestor's, or None where that cannot be read."""
    module, node = classes.attribute(dotted, name) or ("", None)
    return classes.resolve_name(module, node) if isinstance(node, ast.Name | ast.Attribute) else None


def rows(dotted: str, name: str) -> list[tuple[str, ...]]:
    """A class attribute that is a tuple of tuples of names, each as its dotted name."""
    module, node = classes.attribute(dotted, name) or ("", None)
    return [tuple(classes.resolve_name(module, x) for x in row.elts) for row in getattr(node, "elts", ())]


def _value(node: ast.expr) -> Any:
    """A default that is written as a literal, or None."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _is_typed_dict(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) in ("TypedDict", "typing.TypedDict") for base in node.bases)


def _fields(module: str, node: ast.ClassDef) -> dict[str, Parameter]:
    total = not any(k.arg == "total" and _value(k.value) is False for k in node.keywords)
    fields = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            hint, needed = _hint(module, item.annotation), total
            if typing.get_origin(hint) in (Required, NotRequired):
                needed, hint = typing.get_origin(hint) is Required, typing.get_args(hint)[0]
            fields[item.target.id] = Parameter(hint, REQUIRED if needed else None)
    return fields


# -- types ------------------------------------------------------------------------------------------------------------


def _hint(module: str, node: ast.expr | None) -> Any:
    """The type that an annotation in a module stands for, or Any where that cannot be read."""
    try:
        return _read(module, node)
    except (AttributeError, KeyError, TypeError, ValueError):
        return Any


def _read(module: str, node: ast.expr | None) -> Any:
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_hint(module, node.left), _hint(module, node.right)]  # noqa: UP007 (values, not an annotation)
    if isinstance(node, ast.Subscript):
        return _subscript(module, node)
    return _resolve_named(module, node) if isinstance(node, ast.Name | ast.Attribute) else Any


def _subscript(module: str, node: ast.Subscript) -> Any:
    form = ast.unparse(node.value).rpartition(".")[2]
    args = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if form == "Literal":
        return Literal[tuple(ast.literal_eval(a) for a in args)]
    if form == "Annotated" and any(_value(a) == settings.UNCHECKED for a in args[1:]):
        return Any
    if form == "Annotated":
        base, marks = _hint(module, args[0]), [_mark(module, a) for a in args[1:] if isinstance(a, ast.Call)]
        return Annotated[(base, *marks)] if marks else base
    if form not in GENERIC and form not in PLAIN:
        return Any
    hints = tuple(... if isinstance(a, ast.Constant) and a.value is ... else _hint(module, a) for a in args)
    return {**GENERIC, **PLAIN}[form][hints if len(hints) > 1 else hints[0]]


def _mark(module: str, call: ast.Call) -> Any:
    """A mark of an annotation. Where it takes names from a mapping or a tuple of the code, these are read too."""
    args = [functions(module, a) if isinstance(a, ast.Name | ast.Attribute) else _value(a) for a in call.args]
    keywords = {k.arg: _value(k.value) for k in call.keywords if k.arg}
    return MARKS[ast.unparse(call.func).rpartition(".")[2]](*args, **keywords)


def _resolve_named(module: str, node: ast.expr) -> Any:
    """A plain type, a type of `agglearn.settings`, an alias of the module's own, or a placeholder of a followed class."""
    text = ast.unparse(node)
    if text in PLAIN:
        return PLAIN[text]
    origin, _, name = classes.resolve_name(module, node).rpartition(".")
    if origin == settings.__name__ and hasattr(settings, name):
        return getattr(settings, name)
    if classes.find_class(f"{origin}.{name}"):
        return placeholder(f"{origin}.{name}")
    alias = classes.find_assignment(origin, name) if origin else None
    return _hint(origin, alias) if alias is not None else Any


@modules.cache_by_roots
def placeholder(dotted: str) -> type:
    """What stands for a followed class in a type: a TypedDict of the same keys, or a `Followed`."""
    name = dotted.rpartition(".")[2]
    if any(_is_typed_dict(node) for _, node in classes.ancestors(dotted)):
        keys = (parameters(dotted) or {}).items()
        hints = {k: p.hint if p.default is REQUIRED else NotRequired[p.hint] for k, p in keys}
        return typing.TypedDict(name, hints)  # type: ignore[operator]  # mypy takes it for a base class only
    return type(name, (Followed,), {"dotted": dotted})


def functions(module: str, node: ast.expr | None) -> dict[str, str] | tuple[str, ...]:
    """A mapping from names to functions, as name → dotted name, or a tuple of names, that a module writes as such."""
    if isinstance(node, ast.Name | ast.Attribute):
        origin, _, name = classes.resolve_name(module, node).rpartition(".")
        return functions(origin, classes.find_assignment(origin, name))
    if not isinstance(node, ast.Dict):
        return tuple(ast.literal_eval(node)) if node is not None else ()
    by_name: dict[str, str] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = functions(module, value)
            by_name |= inner if isinstance(inner, dict) else {}
        else:
            by_name[ast.literal_eval(key)] = classes.resolve_name(module, value)
    return by_name
