"""A page for every public name: what the `__all__` of a package lists, below `api/`. Written anew at every build."""

import functools
import importlib
import inspect
import re
import shutil
import types
from collections.abc import Iterator
from pathlib import Path

import agglearn

FOLDER = "api"
PACKAGE = Path(agglearn.__file__).parent


def public() -> dict[str, list[str]]:
    """Names that each module of the package lists in its `__all__`, by the module's name."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "\n__all__ = " in path.read_text():
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = list(importlib.import_module(name).__all__)
    return modules


def members(cls: type) -> dict[str, str]:
    """Directive of each public method and property that the package itself defines and describes, inherited ones included."""
    directives = {}
    for name in dir(cls):
        definer = next(c for c in cls.__mro__ if name in vars(c))
        member = vars(definer)[name]
        directive = next((d for d, kinds in DIRECTIVES.items() if isinstance(member, kinds)), None)
        is_own = definer.__module__.startswith("agglearn") and not name.startswith("_")
        if directive and is_own and inspect.getdoc(getattr(cls, name)):
            directives[name] = directive
    return directives


DIRECTIVES = {
    "autoproperty": (property, functools.cached_property),
    "automethod": (types.FunctionType, classmethod, staticmethod),
}


def summary(target) -> str:
    """First sentence of a docstring, on one line."""
    paragraph = (inspect.getdoc(target) or "").partition("\n\n")[0]
    return escaped(" ".join(paragraph.split()))


def escaped(text: str) -> str:
    """Text in which names with an underscore at their end are no references, and stars and bars no markup."""
    bullet = re.match(r"\s*(?:\* )?", text).group()
    pieces = re.split(r"(`+[^`]*`+)", text[len(bullet) :])
    pieces[::2] = [re.sub(r"(?<=\w)_(?!\w)|[*|]", r"\\\g<0>", piece) for piece in pieces[::2]]
    return bullet + "".join(pieces)


def title(text: str) -> str:
    """A heading of reStructuredText."""
    return f"{text}\n{'=' * len(text)}\n\n"


def page_of(module: str, name: str) -> str:
    """The page of a class, a function or a value."""
    target, path = getattr(importlib.import_module(module), name), f"{module}.{name}"
    text = title(name) + f".. currentmodule:: {module}\n\n"
    if inspect.isclass(target):
        text += f".. autoclass:: {path}\n   :show-inheritance:\n"
        text += "".join(f"\n   .. {directive}:: {path}.{n}\n" for n, directive in members(target).items())
    elif inspect.isroutine(target):
        text += f".. autofunction:: {path}\n"
    else:
        names = ", ".join(f"``{value}``" for value in target) if hasattr(target, "__iter__") else f"``{target!r}``"
        return text + f".. py:data:: {name}\n\n   {names}\n"
    return text + f"\n.. minigallery:: {path}\n   :add-heading: Examples\n"


def overview(module: str, names: list[str]) -> str:
    """The page of a package: its docstring and a table of its names."""
    package = importlib.import_module(module)
    rows = "".join(f"   * - :py:obj:`~{module}.{n}`\n     - {_in_cell(getattr(package, n))}\n" for n in names)
    table = f".. list-table::\n   :widths: 35 65\n\n{rows}\n" if names else ""
    tree = ".. toctree::\n   :hidden:\n\n" + "".join(f"   {module}.{n}\n" for n in names)
    return f"{title(module)}{inspect.getdoc(package)}\n\n{table}{tree}"


def _in_cell(target) -> str:
    return summary(target) if inspect.isclass(target) or inspect.isroutine(target) else "value"


def pages() -> Iterator[tuple[str, str]]:
    """(name, text) of every page."""
    modules = public()
    tree = "".join(f"   {module}\n" for module in modules)
    yield "index", f"{title('API reference')}{INTRODUCTION}.. toctree::\n   :maxdepth: 2\n\n{tree}"
    for module, names in modules.items():
        yield module, overview(module, names)
        yield from ((f"{module}.{name}", page_of(module, name)) for name in names)


INTRODUCTION = """Every public name, by package. The package refuses a parameter's value of another type before anything runs.

"""


def write_pages(app) -> None:
    """Write all pages. A page that did not change keeps its time, so that Sphinx does not read it again."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    texts = {f"{name}.rst": text for name, text in pages()}
    for path in folder.iterdir():
        if path.name not in texts:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app) -> dict:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_pages, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
