"""What code a dotted name depends on, read from the syntax tree: nothing is imported, nobody maintains a list.

Followed are modules of this package and of the folders named under `code:` in the configuration. Comments,
docstrings and layout are no part of a digest. The versions of the packages that these modules import are.
"""

import contextlib
import hashlib
import sys
from collections.abc import Iterable
from importlib import metadata

from agglearn_workflow.digests import modules
from agglearn_workflow.digests.modules import cache_by_roots, find_file

DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}  # of packages that are imported under another name
PARTNERS = {"jax": "jaxlib", "numba": "llvmlite", "cvxpy": "clarabel"}  # packages that do another one's work
OPTIONAL = {"pyspark"}  # its numbers are those of one machine, so its installation must make nothing anew
_ADOPTED: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}  # names → digest and versions, from `export_digests`


@cache_by_roots
def modules_behind(dotted: str) -> tuple[str, ...]:
    """Modules that the class or module `dotted` reaches through imports, sorted."""
    module, _, name = dotted.rpartition(".")
    todo, visited = [dotted if find_file(dotted) else modules.origin_of(module, name)[0]], set()
    while todo:
        current = todo.pop()
        if current not in visited:
            visited.add(current)
            todo += [modules.origin_of(base, name)[0] for base, name, _ in modules.imports_of(current)]
    return tuple(sorted(visited))


@cache_by_roots
def code_digest(*dotted: str) -> str:
    """12 hex digits over the code behind these names and the versions of the packages that it imports."""
    if dotted in _ADOPTED:
        return _ADOPTED[dotted][0]
    behind = sorted({m for d in dotted for m in modules_behind(d)})
    text = "".join(m + modules.summary_of(m).digest for m in behind) + str(versions(*dotted))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache_by_roots
def versions(*dotted: str) -> dict[str, str]:
    """Distribution → version of every installed package that the code behind these names imports."""
    if dotted in _ADOPTED:
        return _ADOPTED[dotted][1]
    imported = {
        base
        for d in dotted
        for m in modules_behind(d)
        for base, _, _ in modules.summary_of(m).imports
        if not find_file(base)
    }
    names = {name.partition(".")[0] for name in (*imported, *dotted)} - sys.stdlib_module_names - OPTIONAL
    names |= {PARTNERS[n] for n in names & set(PARTNERS)}
    installed = {n: _version(n) for n in sorted(names) if not find_file(n)}
    return {DISTRIBUTIONS.get(n, n): version for n, version in installed.items() if version}


def export_digests(groups: Iterable[tuple[str, ...]]) -> dict:
    """Digest and versions of groups of names, for `adopt` in other processes, with the files that they were read from."""
    return {"digests": {names: (code_digest(*names), versions(*names)) for names in groups}, "read": dict(modules.READ)}


def adopt(exported: dict) -> None:
    """Take digests and versions from `export_digests` of another process, unless a file that it has read is another one today."""
    _ADOPTED.clear()
    with contextlib.suppress(OSError):
        if all(modules.file_state(path) == state for path, state in exported["read"].items()):
            _ADOPTED.update(exported["digests"])


@cache_by_roots
def _version(package: str) -> str | None:
    """Version of the distribution that a package belongs to, or None."""
    try:
        return metadata.version(DISTRIBUTIONS.get(package, package))
    except metadata.PackageNotFoundError:
        return None
