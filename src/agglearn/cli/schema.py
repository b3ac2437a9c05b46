"""Write a draft of a schema: bins, categories and label values that a person declares. `agglearn private` calls a release
private only if its tables were aggregated by a declared schema, since bins and categories that are learned from records
reveal something about them.

`schema query` writes the GROUP BY that a database or a clean room runs to count by a schema, for `agglearn import`.

example:
  agglearn schema draft data.csv --label y --positive yes > schema.yaml
  (read and edit schema.yaml, then set reviewed: true)
  agglearn aggregate data.csv --schema schema.yaml --out tables/
  agglearn schema query schema.yaml --dialect bigquery --table shop.visits --threshold 50 > query.sql

reads   one CSV or Parquet file, all of it.
writes  YAML to OUT, or to standard output. It lists a value only if at least 20 records have it, rounds the edges of bins, hashes
        what looks like an identifier, and has `reviewed: false`. The draft itself is made from records: a person has to remove
        what must not be public.

query   reads a schema and writes SQL: all features and pairs in one pass (GROUPING SETS). For spark, bigquery and snowflake
        SQLGlot (extra `sql`) translates it. Tests of this package run it in DuckDB and Spark, and only parse the other two.
        Hashed columns are refused: SQL has not the same hash. So is a unit: the query would count all of its rows.
        With --threshold, cells of fewer records are left out.

A schema has four parts:
  reviewed: true
  unit: user_id                 whose each record is, or one_row_per_person: true, where nobody has two
  max_rows: 3                   at most so many records of one user_id count, or auto: `agglearn private` chooses
  label: {column: y, positive: 'yes', negative: 'no'}
  features:
    age: {edges: [20, 30, 40], missing: false}
    job: {values: [cook, nurse], missing: true}
    email: {buckets: 100, missing: true}

A value that is not listed, text where numbers belong, and a missing value where `missing` is not true belong to a level of their
own, `other`. Records with a label that is neither positive nor negative are left out.
"""

import argparse
import sys

from agglearn.cli.aggregate import parse_names
from agglearn.cli.common import add_record_options, input_file, separator_of, text_output, whole_seed
from agglearn.errors import ConfigError

HELP = "draft a schema, or write the query that counts by it"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "action", choices=["draft", "query"], help="draft: a schema to be reviewed; query: SQL of a schema"
    )
    command.add_argument("data", help="draft: CSV or Parquet file, one record per row; query: the schema")
    add_record_options(command)
    command.add_argument(
        "--categorical", action="append", metavar="A,B,…", help="columns whose numbers are names, not amounts"
    )
    command.add_argument("--dialect", metavar="duckdb|spark|bigquery|snowflake", help="of the query (default: duckdb)")
    command.add_argument("--threshold", type=whole_seed, metavar="N", help="query: least number of records of a cell")
    command.add_argument("--table", metavar="NAME", help="query: table of the records (default: records)")


def run(args: argparse.Namespace) -> None:
    from agglearn.cli.tabular_input import read_records
    from agglearn.encoding import Schema
    from agglearn.encoding.csv_files import about
    from agglearn.encoding.drafting import draft
    from agglearn.encoding.schema import state_unit
    from agglearn.encoding.sql import write_query

    refused = {
        "draft": ("dialect", "threshold", "table"),
        "query": ("label", "positive", "categorical", "missing", "separator"),
    }
    if unused := [name for name in refused[args.action] if getattr(args, name) is not None]:
        raise ConfigError(f"--{unused[0]}: is no option of `schema {args.action}`; leave it out")
    if args.action == "query":
        schema, table = Schema.read(args.data), args.table or "records"
        query = write_query(schema, args.dialect or "duckdb", args.threshold or 0, table)
        with text_output(args.out, args.force, args.data) as write:
            write(query)
        return
    if args.positive is not None and args.label is None:
        raise ConfigError("--positive: needs --label")
    with text_output(args.out, args.force, args.data) as write, input_file(args.data) as data:
        frame = read_records(data, separator_of(args.separator), args.missing or [])
        categorical = parse_names(args.categorical, list(frame.columns))
        with about(data):
            whose = state_unit(args.unit, args.max_rows or (args.unit and "auto"), args.label, ())
            write(draft(frame, args.label, args.positive, categorical, *whose))
    print("a draft is made from records: read it, edit it, then set reviewed: true", file=sys.stderr)
