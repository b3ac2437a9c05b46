"""Directives of the reference: keys of a configuration file, keys of observations, commands.

They read what the program itself reads: `workflow/schemas/`, the tasks, the parser of the command line.
"""

import argparse
import importlib
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from agglearn import cli, settings, tasks

BASE = Path(__file__).resolve().parents[2]
SCHEMAS = BASE / "workflow/schemas"
KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
    "null": "null",
}


class Written(SphinxDirective):
    """A directive whose content is Markdown that it writes."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Lines of Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The content as nodes."""
        node = nodes.Element()
        self.state.nested_parse(StringList(list(self.lines()), self.get_source_info()[0]), 0, node)
        return node.children


def type_of(hint) -> str:
    """A type in words; classes keep their names."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(filter(None, map(type_of, typing.get_args(hint))))
    is_class = isinstance(hint, type) and hint not in settings.NAMES and hint is not settings.Built
    if is_class and not typing.is_typeddict(hint) and hint not in (list, tuple, dict):
        return hint.__name__
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and origin.__module__ == "collections.abc":
        return origin.__name__
    return settings.type_words(hint)


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", r"\<")


# -- files --------------------------------------------------------------------------------------------------------------


class SchemaKeys(Written):
    """Keys of a file, from its schema: `config`, `dataset`, `experiment`, `claim` or `references`."""

    def lines(self) -> Iterator[str]:
        """A row for every key."""
        path = SCHEMAS / f"{self.arguments[0]}.schema.yaml"
        self.env.note_dependency(str(path))
        schema = yaml.safe_load(path.read_text())
        yield from ["| key | value | |", "| --- | --- | --- |"]
        for key, value, text in rows(schema, schema, "", ()):
            yield f"| `{key}` | {cell(value)} | {cell(text)} |"


def rows(schema: dict, root: dict, prefix: str, open_refs: tuple) -> Iterator[tuple[str, str, str]]:
    """(key, what it may be, description) of all keys of a schema, inner ones as `outer.inner`."""
    needed = schema.get("required", ())
    for key, inner in schema.get("properties", {}).items():
        yield from row(inner, root, f"{prefix}{key}", open_refs, key in needed)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict) and ("properties" in extra or "$ref" in extra):
        yield from row(extra, root, f"{prefix}<name>", open_refs)


def row(
    schema: dict, root: dict, key: str, open_refs: tuple, is_needed: bool = False
) -> Iterator[tuple[str, str, str]]:
    """A key, then the keys inside it."""
    text = "; ".join(
        dict.fromkeys(filter(None, [schema.get("description"), resolved(schema, root).get("description")]))
    )
    yield key, words(schema, root) + (", needed" if is_needed else ""), text
    for form, place, refs in forms(schema, root, open_refs):
        yield from rows(form, root, f"{key}{place}.", refs)


def forms(schema: dict, root: dict, open_refs: tuple, place: str = "") -> Iterator[tuple[dict, str, tuple]]:
    """(schema, place, references to it) of all that a value may be, items of lists included. None is opened inside itself."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in open_refs:
        return
    refs = (*open_refs, name) if name else open_refs
    content = resolved(schema, root)
    yield content, place, refs
    for form in (*content.get("oneOf", ()), *content.get("anyOf", ())):
        yield from forms(form, root, refs, place)
    if "items" in content:
        yield from forms(content["items"], root, refs, f"{place}[]")


def resolved(schema: dict, root: dict) -> dict:
    """The definition that a reference names."""
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def words(schema: dict, root: dict) -> str:
    """What a value may be."""
    schema = resolved(schema, root)
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(dict.fromkeys(words(form, root) for form in alternatives))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    text = " or ".join(KINDS[kind] for kind in kinds) or "anything"
    if "items" in schema and "array" in kinds:
        item = words(schema["items"], root)
        text += f", each {item}" if item != "anything" else ""
    return text + "".join(f" {sign} {schema[key]}" for key, sign in LIMITS.items() if key in schema)


LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


# -- observations ---------------------------------------------------------------------------------------------------------


class ObservationKeys(Written):
    """What a task makes of which data set, with the keys that an experiment may set of both."""

    def lines(self) -> Iterator[str]:
        """A row for every key."""
        task = getattr(tasks, self.arguments[0])
        yield from ["| observation | of | key | value |", "| --- | --- | --- | --- |"]
        for dataset, observation, of_dataset, of_observation in task.OBSERVATIONS:
            first, second = f"`{observation.__name__}`", f"`{dataset.__name__}`"
            for where, keys in (("datasets", of_dataset), ("observe", of_observation)):
                for key, hint in typing.get_type_hints(keys, include_extras=True).items():
                    yield f"| {first} | {second} | `{where}: {key}` | {cell(type_of(settings.bare(hint)))} |"
                    first = second = ""


class TaskMeasures(Written):
    """Measures of a task, with unit and which end is better."""

    def lines(self) -> Iterator[str]:
        """A row for every measure."""
        yield from ["| measure | unit | better |", "| --- | --- | --- |"]
        for name, (unit, better) in getattr(tasks, self.arguments[0]).MEASURES.items():
            yield f"| `{name}` | {cell(unit)} | {better} |"
        if keys := getattr(tasks, self.arguments[0]).KEYS:
            yield from ["", f"Some values have keys: {', '.join(f'`{key}`' for key in keys)}."]


# -- commands -------------------------------------------------------------------------------------------------------------


class CommandHelp(Written):
    """The help of a command."""

    def lines(self) -> Iterator[str]:
        """The help as code."""
        actions = cli.parser()._subparsers._group_actions
        [choices] = [a.choices for a in actions if isinstance(a, argparse._SubParsersAction)]
        yield from ["```text", *choices[self.arguments[0]].format_help().splitlines(), "```"]


def setup(app) -> dict:
    """Connect to Sphinx."""
    importlib.import_module("agglearn.tasks")
    for name, directive in (
        ("schema-keys", SchemaKeys),
        ("observation-keys", ObservationKeys),
        ("task-measures", TaskMeasures),
        ("command-help", CommandHelp),
    ):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
