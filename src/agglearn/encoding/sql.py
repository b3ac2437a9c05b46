"""A GROUP BY that counts records by the levels of a declared schema, as `ContingencyTables.from_frame` reads them."""

import itertools
import re

from agglearn.encoding.binned import BinnedEncoder
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.columns import first_repeated
from agglearn.encoding.frame import FeatureEncoder
from agglearn.encoding.levels import MISSING, OTHER
from agglearn.encoding.schema import Schema
from agglearn.errors import ConfigError
from agglearn.optional import require
from agglearn.settings import check_choice

DIALECTS = ("duckdb", "spark", "bigquery", "snowflake")
SPELLINGS = {"True": ["True", "true", "TRUE"], "False": ["False", "false", "FALSE"]}  # of a database's truth values


def write_query(schema: Schema, dialect: str = "duckdb", threshold: int = 0, table: str = "records") -> str:
    """SQL that counts every feature and pair of features in one pass (GROUPING SETS), and all records.

    ConfigError for another dialect, hashed features, levels of the same name, and a unit of which it would count all
    rows. Other dialects than DuckDB's need the extra `sql` (SQLGlot).

    Parameters
    ----------
    schema, dialect, threshold, table : Schema, str, int, str
        `duckdb`, `spark`, `bigquery` or `snowflake`, the least number of records that a cell shows, and the records.
    """
    check_choice("dialect", dialect, DIALECTS)
    if schema.unit is not None:
        raise ConfigError(
            f"unit: a query counts all rows of each {schema.unit}; write a schema without unit, or run `agglearn aggregate`"
        )
    if taken := {"count", "label_sum"} & set(schema.encoder.names):
        raise ConfigError(f"features: {sorted(taken)[0]!r} is the name of a column of the result; rename it")
    names = [_name(name) for name in schema.encoder.names]
    levels = [f"    {_level(feature)} AS {name}" for feature, name in zip(schema.encoder.features, names, strict=True)]
    label = _text(_name(schema.label))
    positive, negative = _spellings(schema.positive), _spellings(schema.negative)
    sets = [(), *((n,) for n in names), *itertools.combinations(names, 2)]
    grouped = ",\n  ".join(f"({', '.join(s)})" for s in sets)
    having = f"\nHAVING COUNT(*) >= {threshold}" if threshold else ""
    query = (
        f'SELECT {", ".join(names)}, COUNT(*) AS "count", SUM(is_positive) AS "label_sum"\nFROM (\n  SELECT\n'
        + ",\n".join(levels)
        + f",\n    CASE WHEN {label} IN ({positive}) THEN 1 ELSE 0 END AS is_positive\n"
        + f"  FROM {table}\n  WHERE {label} IN ({positive}, {negative})\n) AS encoded\nGROUP BY GROUPING SETS (\n  {grouped}\n){having}"
    )
    if dialect == "duckdb":
        return query + "\n"
    return require("sqlglot", "sql").transpile(query, read="duckdb", write=dialect, pretty=True)[0] + "\n"


def _level(feature: FeatureEncoder) -> str:
    """The name of a row's level."""
    column = _name(feature.name)
    if not isinstance(feature, CategoricalEncoder | BinnedEncoder):
        raise ConfigError(f"features.{feature.name}: is hashed, which SQL does not do alike; list values or edges")
    if (twice := first_repeated(feature.labels)) is not None:
        raise ConfigError(f"features.{feature.name}: two levels are named {twice!r}; round its edges")
    missing = _literal(MISSING if feature.has_missing else OTHER)
    if isinstance(feature, CategoricalEncoder):
        cases = [f"WHEN {_text(column)} IN ({_spellings(v)}) THEN {_literal(v)}" for v in feature.values]
        last = _literal(OTHER)
    else:
        number = f"TRY_CAST({column} AS DOUBLE)"
        cases = [f"WHEN {number} IS NULL OR {number} = CAST('NaN' AS DOUBLE) THEN {_literal(OTHER)}"]
        cases += [
            f"WHEN {number} <= {edge!r} THEN {_literal(label)}"
            for label, edge in zip(feature.labels, feature.edges, strict=False)
        ]
        last = _literal(feature.labels[len(feature.edges)])
    return f"CASE WHEN {column} IS NULL THEN {missing} {' '.join(cases)} ELSE {last} END"


def _text(column: str) -> str:
    return f"CAST({column} AS VARCHAR)"


def _spellings(value: str) -> str:
    """A value as SQL texts: whole numbers with a decimal, too, and truth values as databases spell them."""
    spellings = [value, f"{value}.0"] if re.fullmatch(r"-?\d+", value) else [value]
    return ", ".join(map(_literal, SPELLINGS.get(value, spellings)))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
