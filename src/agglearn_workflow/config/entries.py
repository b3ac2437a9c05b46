"""Entries of data sets: one file each, with patterns that stand for many files. Planning reads them, so nothing heavy is imported."""

import re
from typing import Any

from agglearn.errors import ConfigError
from agglearn_workflow.classes import is_subclass

SIMULATED = "agglearn.datasets.base.Simulated"
VARIABLE = re.compile(r"\{(\w+)\}")


def expand_entry(entry: Any) -> Any:
    """An entry in which every file and every input of a build stands by itself.

    `p{state}.csv: {each: {state: [al, ak]}, …}` becomes `pal.csv` and `pak.csv`, with `{state}` replaced in every text below
    it. A text that is nothing but `{name}` becomes the value itself, whatever its type. What is not formed like this stays
    as it is, and the schema refuses it.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("files"), dict):
        return entry
    return entry | {"files": {name: _with_inputs(file) for name, file in _each(entry["files"]).items()}}


def _with_inputs(file: Any) -> Any:
    if not isinstance(file, dict) or not isinstance(file.get("routes"), list):
        return file
    return file | {"routes": [_expand_route(r) for r in file["routes"]]}


def _expand_route(route: Any) -> Any:
    if not isinstance(route, dict) or not isinstance(route.get("inputs"), dict):
        return route
    return route | {"inputs": _each(route["inputs"])}


def _each(files: dict) -> dict:
    out = {}
    for name, file in files.items():
        rows = _rows(file.get("each")) if isinstance(file, dict) else None
        body = {k: v for k, v in file.items() if k != "each"} if rows else file
        _check_variables(name, body, rows or [])
        for row in rows or [{}]:
            whole = _fill(name, row)
            if whole in out:
                raise ConfigError(f"the file {whole!r} is named twice; its name needs a {{variable}} of `each`")
            out[whole] = _fill(body, row)
    return out


def _check_variables(name: str, body: object, rows: list[dict]) -> None:
    """Every row has the same variables, and each of them stands in the file's name or below it."""
    used = set(VARIABLE.findall(f"{name} {body}"))
    for i, row in enumerate(rows):
        if unused := [v for v in row if v not in used]:
            raise ConfigError(
                f"files.{name}.each: the variable {unused[0]!r} is used nowhere; used are {', '.join(sorted(used)) or 'none'}"
            )
        if differing := set(rows[0]) ^ set(row):
            raise ConfigError(
                f"files.{name}.each.{i}: the variable {min(differing)!r} is not in all rows; every row needs the same"
            )


def _rows(each: object) -> list[dict] | None:
    """The values of every file, by variable. It is None where `each` is not there or is formed otherwise."""
    if isinstance(each, dict) and len(each) == 1:
        [(variable, values)] = each.items()
        each = [{variable: v} for v in values] if isinstance(values, list) else None
    return each if isinstance(each, list) and all(isinstance(row, dict) for row in each) else None


def _fill(value: Any, row: dict) -> Any:
    """`value` with the variables of a row replaced. Other braces stay."""
    if isinstance(value, dict):
        return {_fill(k, row): _fill(v, row) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill(v, row) for v in value]
    if not isinstance(value, str):
        return value
    whole = VARIABLE.fullmatch(value)
    if whole and whole[1] in row:
        return row[whole[1]]
    return VARIABLE.sub(lambda match: str(row.get(match[1], match[0])), value)


def has_records(entry: dict) -> bool:
    """Whether a data set has records. A simulated one has none, as it is drawn where it is observed."""
    return not is_subclass(entry["class"], SIMULATED)
