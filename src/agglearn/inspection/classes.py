"""Classes and functions by their dotted names, from the text of modules: definitions, ancestors, attributes."""

import ast
from typing import Any, TypeVar

from agglearn.inspection.modules import cache_by_roots, find_file, imports_of, origin_of, tree_of

Definition = TypeVar("Definition", ast.ClassDef, ast.FunctionDef)


@cache_by_roots
def find_class(dotted: str) -> tuple[str, ast.ClassDef] | None:
    """Defining module and definition of a class, or None where there is no such class."""
    return _definition(dotted, ast.ClassDef)


@cache_by_roots
def find_function(dotted: str) -> tuple[str, ast.FunctionDef] | None:
    """Defining module and definition of a function, or None where there is no such function."""
    return _definition(dotted, ast.FunctionDef)


def _definition(dotted: str, kind: type[Definition]) -> tuple[str, Definition] | None:
    module, _, name = dotted.rpartition(".")
    if not module or not find_file(module):
        return None
    module, original = origin_of(module, name)
    return next(((module, n) for n in tree_of(module).body if isinstance(n, kind) and n.name == original), None)


@cache_by_roots
def ancestors(dotted: str) -> list[tuple[str, ast.ClassDef]]:
    """The class and its bases in followed code, depth first."""
    if not (definition := find_class(dotted)):
        return []
    module, node = definition
    chain = [(f"{module}.{node.name}", node)]
    for base in node.bases:
        name = resolve_name(module, base)
        if name != f"{module}.{node.name}":
            chain = [*chain, *ancestors(name)]
    return chain


def resolve_name(module: str, base: ast.expr) -> str:
    """Dotted name of what `module` writes as `Base`, `package.module.Base` or `Base[T]`."""
    text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
    for imported, name, local in imports_of(module):
        if name is None and text.startswith(f"{local}."):
            return imported + text[len(local) :]
    head, _, tail = text.partition(".")
    return ".".join(word for word in (*origin_of(module, head), tail) if word)


def is_subclass(dotted: str, base: str) -> bool:
    """Whether the class at `dotted` descends from `base` (the dotted name of its definition)."""
    return base in [name for name, _ in ancestors(dotted)]


@cache_by_roots
def find_assignment(module: str, name: str) -> ast.expr | None:
    """What a followed module assigns to a name, or None."""
    for node in tree_of(module).body if find_file(module) else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return getattr(node, "value", None)
    return None


def attribute(dotted: str, name: str) -> tuple[str, ast.expr] | None:
    """Module and expression of a class attribute, the nearest ancestor's, or None."""
    for name_of_class, node in ancestors(dotted):
        for item in node.body:
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets) and (
                value := getattr(item, "value", None)
            ):
                return name_of_class.rpartition(".")[0], value
    return None


def constant(dotted: str, name: str) -> Any:
    """Value of a class attribute that is written as a literal, the nearest ancestor's, or None."""
    definition = attribute(dotted, name)
    return definition and ast.literal_eval(definition[1])
