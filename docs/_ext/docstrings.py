"""Docstrings of the project in numpydoc's form.

A section in numpydoc's form, `name : type` with the description below, stays as it is. Other sections describe a parameter in
running text, `name : what it is. other : what that is.`, and have the types of the annotations. Such a section, and a function
without one, gets an entry for every parameter of the signature.
"""

import inspect
import re
import types
import typing

from api_pages import escaped, public
from numpydoc import xref

from agglearn import settings

UNDERLINE = re.compile(r"-{3,}$")
ENTRY = re.compile(r"(?:^|(?<=[.;)] ))(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : ", re.M)
DESCRIBED = ("Parameters", "Attributes", "Raises")
EXTERNAL = {
    "BaseEstimator": "sklearn.base.BaseEstimator",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "csr_matrix": "scipy.sparse.csr_matrix",
    "csr_array": "scipy.sparse.csr_array",
}


def sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(heading, lines) of a docstring's sections. What comes before the first has no heading."""
    result = [("", [])]
    for i, line in enumerate(lines):
        if UNDERLINE.match(line) and i and len(line) == len(lines[i - 1]):
            result[-1][1].pop()
            result.append((lines[i - 1], []))
        else:
            result[-1][1].append(line)
    return result


def is_standard(lines: list[str]) -> bool:
    """Whether a section is in numpydoc's form: below each `name : type` or name is a description."""
    texts = [line for line in lines if line.strip()]
    starts = [i for i, line in enumerate(texts) if not line[0].isspace()]
    below = [texts[i + 1] if i + 1 < len(texts) else "" for i in starts]
    return all(
        text[:1].isspace() and not text.lstrip()[0].islower() and not texts[i].rstrip().endswith((".", ";"))
        for i, text in zip(starts, below, strict=True)
    )


def entries(lines: list[str], names: set[str] | None) -> dict[str, str]:
    """Text of each entry of a section, by its name or names. `names`: those that may begin an entry; None for any."""
    text = re.sub(r"\n\s+", " ", "\n".join(line for line in lines if line.strip()))
    starts = [m for m in ENTRY.finditer(text) if names is None or set(split(m["names"])) <= names]
    ends = [*(m.start() for m in starts), len(text)][1:]
    return {m["names"]: " ".join(text[m.end() : end].split()) for m, end in zip(starts, ends, strict=True)}


def split(names: str) -> list[str]:
    """Single names of `a, b`."""
    return [name.lstrip("*") for name in names.split(", ")]


def type_of(hint) -> str:
    """A type in words; classes keep their names."""
    if hint in (inspect.Parameter.empty, typing.Any):
        return ""
    if isinstance(hint, str):
        return hint
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(filter(None, map(type_of, typing.get_args(hint))))
    is_class = isinstance(hint, type) and hint not in settings.NAMES and hint is not settings.Built
    if is_class and not typing.is_typeddict(hint) and hint not in (list, tuple, dict):
        return hint.__name__
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and origin.__module__ == "collections.abc":
        return origin.__name__
    return settings.type_words(hint)


def signature_of(target) -> dict[str, inspect.Parameter]:
    """Parameters of a function or of a class's constructor, without the object itself."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}
    return {k: p for k, p in parameters.items() if k not in ("self", "cls")}


def hints_of(target) -> dict:
    """Annotations of a function or of a class's constructor, resolved where they can be."""
    function = target.__init__ if inspect.isclass(target) else target
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return getattr(function, "__annotations__", {})


def documented(target, names: set[str]) -> dict[str, str]:
    """Text of each parameter, from the docstring of the class or of the nearest of its bases that describes it."""
    texts = {}
    for cls in reversed(target.__mro__ if inspect.isclass(target) else [target]):
        doc = inspect.cleandoc(vars(cls).get("__doc__") or "") if inspect.isclass(cls) else inspect.getdoc(cls) or ""
        for heading, lines in sections(doc.splitlines()):
            if heading == "Parameters" or (heading == "Attributes" and _is_record(target)):
                for group, text in entries(lines, names).items():
                    texts |= dict.fromkeys(split(group), (group, text))
    return texts


def _is_record(target) -> bool:
    """Whether the attributes of a class are what its constructor takes."""
    return hasattr(target, "__dataclass_fields__") or hasattr(target, "_fields")


def parameter_lines(target) -> list[str]:
    """The section on parameters, in the order of the signature: names described together stand together."""
    signature, hints = signature_of(target), hints_of(target)
    texts = documented(target, set(signature))
    lines, done = [], set()
    for name in signature:
        if name in done:
            continue
        group, text = texts.get(name, (name, COMMON.get(name, "")))
        together = [n for n in signature if n == name or n in split(group)]
        if len({type_and_default(n, signature, hints) for n in together}) > 1:
            together = [name]
        done |= set(together)
        kind = type_and_default(name, signature, hints)
        shown = ", ".join(STARS[signature[n].kind] + n for n in together)
        lines += [f"{shown} : {kind}" if kind else shown, *([f"    {escaped(text)}"] if text else [])]
    return ["Parameters", "----------", *lines, ""] if lines else []


def type_and_default(name: str, signature: dict, hints: dict) -> str:
    """Type in words and default of a parameter."""
    default = signature[name].default
    kind = type_of(hints.get(name, inspect.Parameter.empty))
    if default is inspect.Parameter.empty:
        return kind
    shown = default.__name__ if inspect.isclass(default) or inspect.isroutine(default) else repr(default)
    return ", ".join(filter(None, [kind, f"default: {shown}" if len(shown) < 60 else "has a default"]))


STARS = {kind: {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind.name, "") for kind in inspect._ParameterKind}
COMMON = {"random_state": "seed, generator, or None for a fresh one."}


def rewrite(app, what: str, name: str, target, options, lines: list[str]) -> None:
    """Rewrite a docstring in place."""
    if what not in ("class", "function", "method", "property", "exception"):
        return
    result, described = [], False
    for heading, body in sections(list(lines)):
        if heading == "Attributes" and what == "class" and _is_record(target):
            continue  # they are its parameters
        if heading == "Parameters":
            described = True
        if heading in DESCRIBED and is_standard(body):
            result += [heading, "-" * len(heading), *map(escaped, body)]
        elif heading == "Parameters":
            result += parameter_lines(target)
        elif heading in DESCRIBED:
            result += [heading, "-" * len(heading)]
            for group, text in entries(body, None).items():
                result += [group, f"    {escaped(text)}"]
            result.append("")
        elif heading:
            result += [heading, "-" * len(heading), *map(escaped, body)]
        else:
            result += [escaped(line) for line in body]
            end_of_text = len(result)
    if not described and what in ("class", "function"):
        result[end_of_text:end_of_text] = ["", *parameter_lines(target)]
    lines[:] = result


def setup(app) -> dict:
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", rewrite, priority=400)  # before numpydoc
    xref.DEFAULT_LINKS.clear()  # they need Python's inventory
    own = {name: f"{module}.{name}" for module, names in public().items() for name in names}
    app.connect(
        "config-inited", lambda _, config: setattr(config, "numpydoc_xref_aliases", EXTERNAL | own), priority=400
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
