"""Digests of code: what a class or a module depends on, read from the text of followed modules (ours, and those of
`code:`). Nothing is imported. Versions of imported packages count. Comments, docstrings and layout do not. Also the commit."""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from agglearn import kernel_cache, storage

HOME = Path(__file__).resolve().parents[1]  # the folder of all packages, if installed
OURS = {"agglearn", "agglearn_workflow"}
ROOTS = [HOME]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}  # of packages that are imported under another name
PARTNERS = {"jax": "jaxlib", "numba": "llvmlite", "cvxpy": "clarabel"}  # packages that do another one's work
OPTIONAL = {"pyspark"}  # its numbers are those of one machine, so its installation must make nothing anew


def add_root(folder: Path | str) -> None:
    """Follow and import the modules in a folder."""
    folder = Path(folder).resolve()
    sys.path[:0] = {str(folder)} - {*sys.path}
    if folder not in ROOTS:
        ROOTS.append(folder)
        for function in CACHED:
            function.cache_clear()


@functools.cache
def find_file(module: str) -> Path | None:
    is_ours = module.partition(".")[0] in OURS
    paths = [root.joinpath(*module.split(".")) for root in ROOTS if is_ours or root != HOME]
    files = (file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py"))
    return next((file for file in files if file.is_file()), None)


def is_followed(dotted: str) -> bool:
    return find_file(dotted.partition(".")[0]) is not None


Import = tuple[str, str | None, str]  # module, name in it or None, local name


class Module(NamedTuple):
    digest: str = ""
    imports: Sequence[Import] = ()


@functools.cache
def read(module: str) -> Module:
    """A followed module, from its text or from what a process kept of this text. To parse all takes seconds."""
    path = find_file(module)
    if path is None:
        return Module()
    text = path.read_bytes()
    texts = sys.version.encode(), Path(__file__).read_bytes(), path.name.encode(), text
    key = hashlib.sha256(b"\0".join(texts)).hexdigest()
    cache = kernel_cache.default_base() / "modules" / f"{module}.json"
    with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
        return Module(*storage.read_json(cache)[key])
    tree = ast.parse(text)
    imports = list(_imports(tree, module if path.name == "__init__.py" else module.rpartition(".")[0]))
    summary = Module(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports)
    with contextlib.suppress(OSError):
        storage.write_json(cache, {key: summary})
    return summary


def _imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """The imports of a module, whose docstrings are removed on the way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
        elif isinstance(node, ast.Import):
            yield from ((a.name, None, a.asname or a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from ((base, a.name, a.asname or a.name) for a in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "require":
            constants = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            yield from ((name, None, name) for name in constants if isinstance(name, str))


@functools.cache
def origin_of(module: str, name: str | None) -> str:
    """Module that defines a name of a module, followed through re-exports and `as`. A module is its own origin."""
    if name and find_file(f"{module}.{name}"):
        return f"{module}.{name}"
    for base, original, local in read(module).imports:
        if original and local == name and (base, original) != (module, name) and find_file(base):
            return origin_of(base, original)
    return module


@functools.cache
def modules_behind(dotted: str) -> tuple[str, ...]:
    """Followed modules that the class or module `dotted` reaches through imports, sorted."""
    todo, visited = [dotted if find_file(dotted) else origin_of(*dotted.rpartition(".")[::2])], set()
    while todo:
        module = todo.pop()
        if module not in visited and find_file(module):
            visited.add(module)
            todo += [origin_of(base, name) for base, name, _ in read(module).imports]
    return tuple(sorted(visited))


@functools.cache
def code_digest(*dotted: str) -> str:
    """12 hex digits over the code behind these names and the versions of the packages that it imports."""
    behind = sorted({module for name in dotted for module in modules_behind(name)})
    text = "".join(module + read(module).digest for module in behind) + str(versions(*dotted))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@functools.cache
def versions(*dotted: str) -> dict[str, str]:
    """Distribution → version of every installed package that the code behind these names imports."""
    behind = {module for name in dotted for module in modules_behind(name)}
    imported = {base for module in behind for base, *_ in read(module).imports}
    names = {name.partition(".")[0] for name in (*imported, *dotted)} - sys.stdlib_module_names - OPTIONAL
    names |= {PARTNERS[name] for name in names & set(PARTNERS)}
    installed = {name: _version(name) for name in sorted(names) if not find_file(name)}
    return {DISTRIBUTIONS.get(name, name): version for name, version in installed.items() if version}


@functools.cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(DISTRIBUTIONS.get(package, package))
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes. None outside a repository. The archive grows while
    it is computed, which is no change."""

    def git(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=5)

    try:
        name = git("describe", "--always", "--abbrev=12").stdout.strip()
        changed = git("diff", "--quiet", "HEAD", "--", ":/", ":(exclude,top)archive").returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
    return name + "-dirty" * bool(changed) if name else None


CACHED = (find_file, read, origin_of, modules_behind, code_digest, versions, _version)  # by the roots of the time
