"""Read contingency tables that a clean room, a database or a publisher made. `agglearn fit` learns from them as from
those of `agglearn aggregate`.

example:
  agglearn schema query schema.yaml --threshold 50 > query.sql     a GROUP BY that makes such tables
  agglearn import cells.csv --threshold 50 --schema schema.yaml --out tables/
  agglearn fit tables/ --out model/

reads   CSV or Parquet files of cells. A column for each feature, `count` (records) and `label_sum` (records with label 1):

          age,job,count,label_sum
          ,,3000,1120                 all records (grouped by nothing)
          "(30, 45]",,810,402         a cell of the table of ages
          ,nurse,995,471
          "(30, 45]",nurse,260,151    a cell of the table of ages and jobs

        An empty field means: not grouped by. One file may hold all tables (GROUPING SETS), or each table has a file. Values
        named `missing` and `other` stand for a missing value and for all that is not listed. The layout of the AdKDD'21
        challenge is read, too (feature_1_id, feature_1_value, count, …).
writes  the folder OUT: the same files as `agglearn aggregate`, and cells.parquet, all cells with their values. It appears when
        complete, or not at all.

Tables may be missing, and need not agree. Tables that do not add up to the row of all records are scaled to it, which a warning
says. Without that row the fullest table has all records. Cells that stand twice are refused, unless --repeated says whether
they add up (parts of the records) or are averaged (the same records, counted twice).

--threshold: cells of fewer records are not in the files, or have an empty count. Their counts are then taken for unknown
numbers below the threshold, not for 0. --noise: the noise that the publisher states, with its scale. Nothing is known of what it
guarantees.

Without --schema the values in the files are the categories, and names such as (30, 45] bins. New records are read with the same
names.
"""

import argparse
import contextlib

from agglearn.cli.common import CELLS, TABLES, add_separator, input_file, not_negative, output_folder, separator_of
from agglearn.errors import ConfigError
from agglearn.text import count_text

HELP = "read tables that somebody else made"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("cells", nargs="+", help="CSV or Parquet files, one cell per row")
    command.add_argument("--noise", metavar="gaussian:20|laplace:5|none", help="noise on every number (default: none)")
    command.add_argument(
        "--threshold", type=not_negative, default=0.0, metavar="N", help="least number of records that a cell shows"
    )
    command.add_argument("--schema", metavar="FILE", help="declared bins, categories and label values (YAML)")
    command.add_argument("--count", default="count", metavar="COLUMN", help="records of a cell (default: count)")
    command.add_argument(
        "--label-sum", default="label_sum", metavar="COLUMN", help="records with label 1 (default: label_sum)"
    )
    command.add_argument("--repeated", default="refuse", metavar="refuse|sum|mean",
                   help="what cells that stand twice mean (default: refuse them)")  # fmt: skip
    add_separator(command)


def run(args: argparse.Namespace) -> None:
    from agglearn.cli.report import describe
    from agglearn.cli.tabular_input import read_records
    from agglearn.encoding import Schema
    from agglearn.observations import ContingencyTables
    from agglearn.observations.tables import hidden_cells

    if len(set(args.cells)) < len(args.cells):
        raise ConfigError("the same file is named twice; name each once")
    schema, separator = Schema.read(args.schema) if args.schema else None, separator_of(args.separator)
    with output_folder(args.out, args.force, TABLES) as work, contextlib.ExitStack() as stack:
        frames = {path: read_records(stack.enter_context(input_file(path)), separator) for path in args.cells}
        tables = ContingencyTables.from_frame(
            frames, count=args.count, label_sum=args.label_sum, schema=schema, noise=args.noise,
            threshold=args.threshold, repeated=args.repeated,
        )  # fmt: skip
        tables.save(work)
        tables.to_frame().to_parquet(work / CELLS, index=False, compression="zstd")
    describe(tables, args.out)
    if absent := len(tables.names) * (len(tables.names) + 1) // 2 - len(tables.tables):
        print(f"{absent:,} of features and pairs have no table")
    if args.threshold:
        print(f"hidden: {count_text(hidden_cells(tables).sum(), 'cell')}")
