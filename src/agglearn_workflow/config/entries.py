"""Entries of data sets, with patterns that stand for many files. Planning reads them, so nothing heavy is imported."""

import re
from typing import Any

from agglearn.errors import ConfigError
from agglearn.registry import is_subclass

SIMULATED = "agglearn.datasets.base.Simulated"
FOR_READERS = ("title", "licence", "citation", "doi", "homepage", "note")
VARIABLE = re.compile(r"\{(\w+)\}")


def expand_entry(entry: Any, path: str) -> Any:
    """The entry with `p{state}.csv: {each: {state: [al]}, …}` as `pal.csv`. The schema refuses wrong forms of it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("files"), dict):
        return entry
    files = _each(entry["files"], path)
    for file in files.values():  # of which _each has made copies
        routes = file.get("routes") if isinstance(file, dict) else None
        for route in routes if isinstance(routes, list) else ():
            if isinstance(route, dict) and isinstance(route.get("inputs"), dict):
                route["inputs"] = _each(route["inputs"], path)
    return entry | {"files": files}


def _each(files: dict, path: str) -> dict:
    out = {}
    for name, file in files.items():
        rows = _rows(file.get("each")) if isinstance(file, dict) else None
        body = {k: v for k, v in file.items() if k != "each"} if rows else file
        _check_variables(name, body, rows or [], path)
        for row in rows or [{}]:
            filled = _fill(name, row)
            if filled in out:
                raise ConfigError(
                    f"{path}: the file {filled!r} is named twice; its name needs a {{variable}} of `each`"
                )
            out[filled] = _fill(body, row)
    return out


def _check_variables(name: str, body: object, rows: list[dict], path: str) -> None:
    used = set(VARIABLE.findall(f"{name} {body}"))
    for i, row in enumerate(rows):
        if unused := [v for v in row if v not in used]:
            variables = f"used are {', '.join(sorted(used)) or 'none'}"
            raise ConfigError(f"{path}: files.{name}.each: the variable {unused[0]!r} is used nowhere; {variables}")
        if differing := set(rows[0]) ^ set(row):
            rule = "is not in all rows; every row needs the same"
            raise ConfigError(f"{path}: files.{name}.each.{i}: the variable {min(differing)!r} {rule}")


def _rows(each: object) -> list[dict] | None:
    """The values of every file, by variable. It is None where `each` is not there or is formed otherwise."""
    if isinstance(each, dict) and len(each) == 1:
        [(variable, values)] = each.items()
        each = [{variable: v} for v in values] if isinstance(values, list) else None
    return each if isinstance(each, list) and all(isinstance(row, dict) for row in each) else None


def _fill(value: Any, row: dict) -> Any:
    """`value` with a row's variables replaced. A text `{name}` alone becomes the value itself. Other braces stay."""
    if isinstance(value, dict):
        return {_fill(k, row): _fill(v, row) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill(v, row) for v in value]
    if not isinstance(value, str):
        return value
    variable = VARIABLE.fullmatch(value)
    if variable and variable[1] in row:
        return row[variable[1]]
    return VARIABLE.sub(lambda match: str(row.get(match[1], match[0])), value)


def has_records(entry: dict) -> bool:
    return not is_subclass(entry["class"], SIMULATED)


def essence(entry: dict) -> dict:
    """The fields of a data set's entry that its data depend on: all but those for readers."""
    fields = {key: value for key, value in entry.items() if key not in FOR_READERS}
    if "files" in fields:
        fields["files"] = {name: essence(spec) for name, spec in fields["files"].items()}
    return fields
