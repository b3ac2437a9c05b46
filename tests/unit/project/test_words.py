"""Names that say nothing, and sentences that semicolons glue together, are in no module."""

import ast
import io
import re
import tokenize

import pytest
from samples import ROOT

MODULES = sorted((ROOT / "src").rglob("*.py"))
EMPTY = {
    "at", "begin", "bend", "found", "gap", "held", "home", "homes", "how", "kept", "known", "law", "laws", "made", "more", "most",
    "part", "parts", "place", "places", "room", "said", "seen", "share", "shares", "since", "wanted", "where", "which",
}  # fmt: skip
PUBLIC = {
    ("results.py", "gap"), ("generic_solvers.py", "gap"), ("subsets.py", "most"), ("models.py", "place"), ("flows.py", "place"),
    ("flows.py", "places"), ("movements.py", "places"),
}  # fmt: skip  # parameters and fields that users write
NO_PAUSE = re.compile(r"I\([^()]*;[^()]*\)|';'")  # mutual information, and the separator of a file


def names_bound(tree: ast.AST):
    """Names that a module gives to variables, parameters, functions, classes and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr.strip("_")


def sentences(text: str):
    """Docstrings and comments of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_names_and_sentences(path):
    text = path.read_text()
    empty = {name for name in names_bound(ast.parse(text)) if name in EMPTY}
    assert not {name for name in empty if (path.name, name) not in PUBLIC}
    assert not [words for words in sentences(text) if ";" in NO_PAUSE.sub("", words)]
