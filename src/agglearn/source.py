"""What code a dotted name depends on, read from the syntax tree: nothing is imported, nobody maintains a list.

Followed are modules of this package and of the folders named under `code:` in the configuration. Comments,
docstrings and layout are no part of a digest. The versions of the packages that these modules import are.
"""

import ast
import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from agglearn import summaries

ROOTS = [Path(__file__).resolve().parent.parent]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}  # of packages that are imported under another name
PARTNERS = {"jax": "jaxlib", "numba": "llvmlite", "cvxpy": "clarabel"}  # packages that do another one's work
OPTIONAL = {"pyspark"}  # its numbers are those of one machine, so its installation must make nothing anew
_CACHED: list = []  # functions whose results hold for these roots
_READ: dict[str, tuple[int, int]] = {}  # path of every file that was read → its state then
_ADOPTED: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}  # names → digest and versions, from `share`


def cached(function):
    """The function with its results kept for as long as the roots are the same."""
    _CACHED.append(functools.cache(function))
    return _CACHED[-1]


def add_root(folder) -> None:
    """Follow modules in this folder too."""
    folder = Path(folder).resolve()
    if folder not in ROOTS:
        ROOTS.append(folder)
        for function in _CACHED:
            function.cache_clear()


def is_followed(dotted: str) -> bool:
    """Whether a class or module lies in followed code: in this package, or in a folder named under `code:`."""
    return _file(dotted.partition(".")[0]) is not None


@cached
def _file(module: str) -> Path | None:
    for root in ROOTS:
        path = root.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _state(path) -> tuple[int, int]:
    """Time and size of a file, which an edit changes."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


class Summary(NamedTuple):
    """What a module is to what depends on it.

    digest : of its code without docstrings. imports : (module, name or None, local name) of every import and every
    `optional.require`, at any depth. defined : names of its classes and functions.
    """

    digest: str
    imports: list[tuple[str, str | None, str]]
    defined: list[str]


@functools.cache
def _reader() -> bytes:
    """What a summary depends on besides the module: this module and the grammar."""
    return hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).digest()


@cached
def _summary(module: str) -> Summary:
    path = _file(module)
    _READ[str(path)] = _state(path)
    name = f"{module} {path.name}\0".encode()
    key = hashlib.sha256(_reader() + name + path.read_bytes()).hexdigest()[:32]
    fields = summaries.find(key)
    if fields is None:
        digest = hashlib.sha256(ast.dump(_tree(module)).encode()).hexdigest()
        fields = Summary(digest, _read_imports(module), _read_names(module))
        summaries.keep(key, fields)
    digest, imports, defined = fields
    return Summary(digest, list(map(tuple, imports)), defined)


@cached
def _nodes(module: str) -> list[ast.AST]:
    """The tree of a module without docstrings, and all nodes in it, the outer ones first.

    Expressions are among them only where the module calls a `require`: no other is looked for, and they are most of a tree.
    """
    path = _file(module)
    _READ[str(path)] = _state(path)
    text = path.read_text()
    passed = () if "require(" in text else (ast.expr, ast.arguments)
    nodes = [ast.parse(text)]
    for node in nodes:  # which grows
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # a docstring
            del body[0]
        nodes += [child for child in ast.iter_child_nodes(node) if not isinstance(child, passed)]
    return nodes


def _tree(module: str) -> ast.Module:
    return _nodes(module)[0]


def _read_names(module: str) -> list[str]:
    return [n.name for n in _tree(module).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]


def _read_imports(module: str) -> list[tuple[str, str | None, str]]:
    is_package = _file(module).name == "__init__.py"
    found = []
    for node in _nodes(module):
        if isinstance(node, ast.Import):
            found += [(a.name, None, a.asname or a.name) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join(parts + ([base] if base else []))
            found += [(base, a.name, a.asname or a.name) for a in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "require":
            found += [(a.value, None, a.value) for a in node.args[:1] if isinstance(a, ast.Constant)]
    return found


@cached
def _imports(module: str) -> list[tuple[str, str | None, str]]:
    """Imports of followed code."""
    return [f for f in _summary(module).imports if _file(f[0])]


@cached
def _origin(module: str, name: str | None) -> tuple[str, str | None]:
    """Module that defines `name`, and its name there, followed through re-exports and `as`; no name for a module."""
    if name and _file(f"{module}.{name}"):
        return f"{module}.{name}", None
    if name and name not in _summary(module).defined:
        for base, original, local in _imports(module):
            if local == name and original:
                return _origin(base, original)
    return module, name


@cached
def modules_behind(dotted: str) -> tuple[str, ...]:
    """Modules that the class or module `dotted` reaches through imports, sorted."""
    module, _, name = dotted.rpartition(".")
    todo, seen = [dotted if _file(dotted) else _origin(module, name)[0]], set()
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += [_origin(base, name)[0] for base, name, _ in _imports(current)]
    return tuple(sorted(seen))


@cached
def code_digest(*dotted: str) -> str:
    """12 hex digits over the code behind these names and the versions of the packages that it imports."""
    if dotted in _ADOPTED:
        return _ADOPTED[dotted][0]
    modules = sorted({m for d in dotted for m in modules_behind(d)})
    text = "".join(m + _summary(m).digest for m in modules) + str(versions(*dotted))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cached
def versions(*dotted: str) -> dict[str, str]:
    """Distribution → version of every installed package that the code behind these names imports."""
    if dotted in _ADOPTED:
        return _ADOPTED[dotted][1]
    imported = {
        base for d in dotted for m in modules_behind(d) for base, _, _ in _summary(m).imports if not _file(base)
    }
    names = {name.partition(".")[0] for name in (*imported, *dotted)} - sys.stdlib_module_names - OPTIONAL
    names |= {PARTNERS[n] for n in names & set(PARTNERS)}
    found = {n: _version(n) for n in names if not _file(n)}
    return {DISTRIBUTIONS.get(n, n): found[n] for n in sorted(found) if found[n]}


def share(groups: Iterable[tuple[str, ...]]) -> dict:
    """Digest and versions of groups of names, for `adopt` in other processes, with the files that they were read from."""
    return {"known": {names: (code_digest(*names), versions(*names)) for names in groups}, "read": dict(_READ)}


def adopt(shared: dict) -> None:
    """Take digests and versions from `share` of another process, unless a file that it has read is another one today."""
    _ADOPTED.clear()
    with contextlib.suppress(OSError):
        if all(_state(path) == state for path, state in shared["read"].items()):
            _ADOPTED.update(shared["known"])


@cached
def _version(package: str) -> str | None:
    """Version of the distribution that a package belongs to; None where there is none."""
    try:
        return metadata.version(DISTRIBUTIONS.get(package, package))
    except metadata.PackageNotFoundError:
        return None


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
    if not module or not _file(module):
        return None
    module, name = _origin(module, name)
    return next(((module, n) for n in _tree(module).body if isinstance(n, kind) and n.name == name), None)


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
    for imported, name, local in _imports(module):
        if name is None and text.startswith(f"{local}."):
            return imported + text[len(local) :]
    head, _, rest = text.partition(".")
    return ".".join(part for part in (*_origin(module, head), rest) if part)


def is_subclass(dotted: str, base: str) -> bool:
    """Whether the class at `dotted` descends from `base` (the dotted name of its definition)."""
    return base in [name for name, _ in ancestors(dotted)]


@cached
def assigned(module: str, name: str) -> ast.expr | None:
    """What a followed module assigns to a name, or None."""
    for node in _tree(module).body if _file(module) else ():
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
