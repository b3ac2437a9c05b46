"""Classes and functions by their dotted names, from the text of modules: definitions, ancestors, attributes."""

import ast

from agglearn.inspection.modules import cached, find_file, imports_of, origin_of, tree_of


@cached
def find_class(dotted: str) -> tuple[str, ast.ClassDef] | None:
    """Defining module and definition of a class, or None where there is no such class."""
    return _definition(dotted, ast.ClassDef)


@cached
def find_function(dotted: str) -> tuple[str, ast.FunctionDef] | None:
    """Defining module and definition of a function, or None where there is no such function."""
    return _definition(dotted, ast.FunctionDef)


def _definition(dotted: str, kind: type):
    module, _, name = dotted.rpartition(".")
    if not module or not find_file(module):
        return None
    module, name = origin_of(module, name)
    return next(((module, n) for n in tree_of(module).body if isinstance(n, kind) and n.name == name), None)


@cached
def ancestors(dotted: str) -> list[tuple[str, ast.ClassDef]]:
    """The class and its bases in followed code, depth first."""
    found = find_class(dotted)
    if not found:
        return []
    module, node = found
    chain = [(f"{module}.{node.name}", node)]
    for base in node.bases:
        name = named(module, base)
        if name != f"{module}.{node.name}":
            chain = [*chain, *ancestors(name)]
    return chain


def named(module: str, base: ast.expr) -> str:
    """Dotted name of what `module` writes as `Base`, `package.module.Base` or `Base[T]`."""
    text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
    for imported, name, local in imports_of(module):
        if name is None and text.startswith(f"{local}."):
            return imported + text[len(local) :]
    head, _, rest = text.partition(".")
    return ".".join(part for part in (*origin_of(module, head), rest) if part)


def is_subclass(dotted: str, base: str) -> bool:
    """Whether the class at `dotted` descends from `base` (the dotted name of its definition)."""
    return base in [name for name, _ in ancestors(dotted)]


@cached
def assigned(module: str, name: str) -> ast.expr | None:
    """What a followed module assigns to a name, or None."""
    for node in tree_of(module).body if find_file(module) else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return node.value
    return None


def attribute(dotted: str, name: str) -> tuple[str, ast.expr] | None:
    """Module and expression of a class attribute, the nearest ancestor's; None where there is none."""
    for home, node in ancestors(dotted):
        for item in node.body:
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets) and getattr(item, "value", None):
                return home.rpartition(".")[0], item.value
    return None


def constant(dotted: str, name: str):
    """Value of a class attribute that is written as a literal; the nearest ancestor's, None where there is none."""
    found = attribute(dotted, name)
    return found and ast.literal_eval(found[1])
