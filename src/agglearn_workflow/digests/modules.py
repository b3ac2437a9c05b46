"""The text of modules, read and not imported: what each imports and defines.

Followed are modules of this package and of the folders named under `code:` in the configuration.
"""

import ast
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from agglearn_workflow.digests import summaries

ROOTS = [Path(__file__).resolve().parents[2]]
Result = TypeVar("Result")
CACHED: list = []  # functions whose results hold for these roots
READ: dict[str, tuple[int, int]] = {}  # path of every file that was read → its state then


def cache_by_roots(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with its results kept for as long as the roots are the same."""
    cache = functools.cache(function)
    CACHED.append(cache)
    return cache


def add_root(folder: Path | str) -> None:
    """Follow modules in this folder too."""
    folder = Path(folder).resolve()
    if folder not in ROOTS:
        ROOTS.append(folder)
        for function in CACHED:
            function.cache_clear()


def is_followed(dotted: str) -> bool:
    """Whether a class or module lies in followed code: in this package, or in a folder named under `code:`."""
    return find_file(dotted.partition(".")[0]) is not None


@cache_by_roots
def find_file(module: str) -> Path | None:
    """File of a followed module, or None."""
    for root in ROOTS:
        path = root.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _existing_file(module: str) -> Path:
    """File of a module that is followed for sure."""
    path = find_file(module)
    if path is None:
        raise ModuleNotFoundError(f"{module} is not among the followed modules")
    return path


def file_state(path: Path | str) -> tuple[int, int]:
    """Time and size of a file, which an edit changes."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


Import = tuple[str, str | None, str]  # module, name or None, local name


class Summary(NamedTuple):
    """What a module is to what depends on it."""

    digest: str
    imports: list[Import]
    defined: list[str]


@functools.cache
def _reader() -> bytes:
    """What a summary depends on besides the module: this module and the grammar."""
    return hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).digest()


@cache_by_roots
def summary_of(module: str) -> Summary:
    """Summary of a followed module, from the file of summaries where it is there."""
    path = _existing_file(module)
    READ[str(path)] = file_state(path)
    name = f"{module} {path.name}\0".encode()
    key = hashlib.sha256(_reader() + name + path.read_bytes()).hexdigest()[:32]
    if fields := summaries.find(key):
        digest, imports, defined = fields
        return Summary(digest, [(base, name, local) for base, name, local in imports], defined)
    digest = hashlib.sha256(ast.dump(tree_of(module)).encode()).hexdigest()
    summary = Summary(digest, _read_imports(module), _read_names(module))
    summaries.keep(key, summary)
    return summary


@cache_by_roots
def _nodes(module: str) -> list[ast.AST]:
    """The tree of a module without docstrings, and all nodes in it, the outer ones first.

    Expressions are among them only where the module calls a `require`: no other is looked for, and they are most of a tree.
    """
    path = _existing_file(module)
    READ[str(path)] = file_state(path)
    text = path.read_text()
    passed = () if "require(" in text else (ast.expr, ast.arguments)
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:  # which grows
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]  # a docstring
        nodes += [child for child in ast.iter_child_nodes(node) if not isinstance(child, passed)]
    return nodes


def tree_of(module: str) -> ast.Module:
    """The tree of a module without docstrings."""
    tree = _nodes(module)[0]
    assert isinstance(tree, ast.Module)
    return tree


def _read_names(module: str) -> list[str]:
    return [n.name for n in tree_of(module).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]


def _read_imports(module: str) -> list[Import]:
    is_package = _existing_file(module).name == "__init__.py"
    imports: list[Import] = []
    for node in _nodes(module):
        if isinstance(node, ast.Import):
            imports += [(a.name, None, a.asname or a.name) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                names = module.split(".")
                names = names[: len(names) - node.level + is_package]
                base = ".".join(names + ([base] if base else []))
            imports += [(base, a.name, a.asname or a.name) for a in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "require":
            constants = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            imports += [(name, None, name) for name in constants if isinstance(name, str)]
    return imports


@cache_by_roots
def imports_of(module: str) -> list[Import]:
    """Imports of followed code."""
    return [f for f in summary_of(module).imports if find_file(f[0])]


@cache_by_roots
def origin_of(module: str, name: str | None) -> tuple[str, str | None]:
    """Module that defines `name`, and its name there, followed through re-exports and `as`. A module has no name."""
    if name and find_file(f"{module}.{name}"):
        return f"{module}.{name}", None
    if name and name not in summary_of(module).defined:
        for base, original, local in imports_of(module):
            if local == name and original:
                return origin_of(base, original)
    return module, name
