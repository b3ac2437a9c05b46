"""Count records, and those with label 1, for every value of every feature and every pair of values of two
features. `agglearn fit` reads these tables and nothing else.

example:
  agglearn aggregate bank.csv --separator ';' --label y --positive yes --missing unknown --out tables/

reads   one CSV (UTF-8, header line, one record per row) or Parquet file (read piece by piece, so it may be larger
        than memory), - for standard input. Columns of numbers are binned, all others are categories. The label has two values: 0 and 1,
        or any two with --positive.
writes  the folder OUT: tables.parquet (features, codes, count, label_sum), tables.json (bins and categories),
        reading.json (separator and missing marks, so that `predict` reads new files alike). It appears when
        complete, or not at all.

Bins and categories that are learned from the records reveal something about them. A private release (`agglearn private`)
needs declared ones, by --schema FILE, see `agglearn schema --help`. The label, bins, categories and hashed columns are then
those of the schema. Any other value belongs to the level `other` of its feature.

Columns of whole numbers are binned as amounts, and listed at the end. Codes (postcodes, identifiers) need
--categorical zip,store or --categorical 'C*'.

A column with very many values (identifiers) can be hashed: --hash user:1000 counts buckets of values instead of values, and
every new value has a bucket. --hash-above 1000:300 does that for all columns of more than 1,000 categories. The hash is the
same on every machine.

There is one table for each feature and one for every pair: 1,000 features make 500,500 tables. Before a long count begins, its
memory and time are printed.

A person with several records is protected only if --unit names the column that tells whose a record is, and --max-rows how many of
each count (auto: `agglearn private` chooses). A hash chooses them, and a message counts the others. A schema can state both.

An empty field is a missing value. --missing adds further spellings. Missing is counted as a value of its own. Counts are
exact, without noise: small cells can reveal something about single persons.
"""

import argparse
import csv
import fnmatch

from agglearn.cli.common import READING, TABLES, add_record_options, input_file, output_folder, positive, separator_of
from agglearn.errors import ConfigError, DataError
from agglearn.machine import memory_bytes
from agglearn.storage import write_json
from agglearn.text import is_buckets, list_some

HELP = "count records into tables"
LONG = 10  # seconds of a count that is announced


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", help="CSV or Parquet file, one record per row")
    add_record_options(command)
    command.add_argument("--schema", metavar="FILE", help="declared bins, categories and label values (YAML)")
    command.add_argument("--features", action="append", metavar="A,B,…",
                   help="columns to use, patterns like 'C*' among them (default: all but the label)")  # fmt: skip
    command.add_argument(
        "--pairs", default="all", metavar="all|none|A:B,C:D", help="pairs of features to count (default: all)"
    )
    command.add_argument("--binning", choices=["deciles", "width"],
                   help="bins of numeric columns: equal counts (deciles, default) or ten of equal width")  # fmt: skip
    command.add_argument("--categorical", action="append", metavar="A,B,…",
                   help="columns whose numbers are names, not amounts; patterns too")  # fmt: skip
    command.add_argument("--hash", action="append", default=[], metavar="COLUMN:BUCKETS",
                   help="hash the values of a column, or of all that a pattern names, into so many modalities; may be repeated")  # fmt: skip
    command.add_argument("--hash-above", type=parse_hash_above, metavar="VALUES:BUCKETS",
                   help="hash every column of categories that has more than VALUES values into BUCKETS")  # fmt: skip
    command.add_argument("--memory", type=positive, metavar="GB",
                   help="refuse to count tables that need more (default: what this machine has)")  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from agglearn.cli.report import describe
    from agglearn.cli.tabular_input import columns_of, is_parquet, read_records
    from agglearn.encoding import Schema
    from agglearn.encoding.csv_files import about
    from agglearn.observations import ContingencyTables
    from agglearn.observations.counting import Workload
    from agglearn.observations.tables import check_pairs

    def announce(workload: Workload) -> None:
        """Print memory and time of a long count. DataError for more than --memory, or than this machine has."""
        workload.refuse_beyond(memory_bytes() if args.memory is None else int(args.memory * 1e9))
        if workload.records and workload.seconds >= LONG:  # without records it is a lower bound
            print(f"{args.out}: {workload}", flush=True)

    if args.label is None and args.schema is None:
        raise ConfigError("--label: name the column to be predicted, or give --schema")
    schema = Schema.read(args.schema) if args.schema else None
    label, declared = (schema.label, schema.encoder.names) if schema else (args.label, None)
    missing, separator = args.missing or [], separator_of(args.separator)
    options = {name: getattr(args, name) for name in ("binning", "positive", "hash_above", "unit", "max_rows")}
    with output_folder(args.out, args.force, TABLES) as work, input_file(args.data) as data:
        args.data = data
        features = feature_names(args, columns_of(data, separator), separator, label, declared)
        options |= {"schema": schema, "pairs": parse_pairs(args.pairs, features), "before_counting": announce}
        options["categorical"] = parse_names(args.categorical, features)
        options["hashed"] = parse_hashes(args.hash, features)
        check_pairs(options["pairs"], announce, features)  # before many columns are read
        frame = None if is_parquet(data) else read_records(data, separator, missing)
        with about(data):
            if frame is None:
                tables = ContingencyTables.from_parquet(data, args.label, features, missing=missing, **options)
            else:
                tables = ContingencyTables.from_records(frame, args.label, features, **options)
        tables.save(work)
        value = schema.positive if schema else args.positive
        write_json(work / READING, {"missing": missing, "separator": separator, "positive": value})
    describe(tables, args.out)


def feature_names(
    args: argparse.Namespace, columns: list[str], separator: str, label: str, declared: list[str] | None
) -> list[str]:
    if label not in columns:
        if len(columns) == 1 and (separators := [s for s in ";\t|," if s != separator and s in columns[0]]):
            name = "tab" if separators[0] == "\t" else separators[0]
            advice = f"is the separator right? try --separator '{name}'"
            raise DataError(f"{args.data}: only one column, {columns[0][:40]!r}; {advice}")
        raise DataError(f"{args.data}: no label column {label!r}; the columns are {list_some(columns)}")
    features = declared or [c for c in columns if c not in (label, args.unit)]
    names = parse_names(args.features, features)
    if label in names:
        raise ConfigError(f"--features: {label!r} is the label; leave it out")
    return names or features


def parse_names(values: list[str] | None, columns: list[str]) -> list[str]:
    """Names in the values of an option, separated by commas. A name with a comma is quoted."""
    items = [item for text in values or [] for item in next(csv.reader([text], skipinitialspace=True))]
    return [name for item in items for name in match_columns(item, columns)]


def match_columns(item: str, columns: list[str]) -> list[str]:
    """The column of this name, or all that match a pattern (`C*`, `x?`, `[ab]_id`). The library refuses an unknown name."""
    return [item] if item in columns else fnmatch.filter(columns, item) or [item]


def parse_pairs(text: str, features: list[str]) -> str | list[tuple[str, str]]:
    """`all`, `none`, or pairs of names from `A:B,C:D`, which the library checks. Names may have colons."""
    if text in ("all", "none"):
        return text
    pairs = []
    for item in next(csv.reader([text], skipinitialspace=True)):
        splits = [(item[:i], item[i + 1 :]) for i, sign in enumerate(item) if sign == ":"]
        if not splits:
            raise ConfigError(f"--pairs: {item!r} is no pair; write all, none, or pairs as A:B,C:D")
        pairs.append(next((pair for pair in splits if set(pair) <= set(features)), splits[0]))
    return pairs


def parse_hashes(values: list[str], features: list[str]) -> dict[str, int]:
    """{column: buckets} from `COLUMN:BUCKETS`. Names may have colons, and be patterns."""
    hashes: dict[str, int] = {}
    for text in values:
        item, _, buckets = text.rpartition(":")
        if not (item and is_buckets(buckets)):
            raise ConfigError(f"--hash: {text!r:.40} is not COLUMN:BUCKETS, as {item or text}:1000")
        names = match_columns(item, features)
        if twice := [name for name in names if name in hashes]:
            raise ConfigError(f"--hash: {twice[0]!r} is named twice")
        hashes |= dict.fromkeys(names, int(buckets))
    return hashes


def parse_hash_above(text: str) -> tuple[int, int]:
    """(values, buckets) from `VALUES:BUCKETS`."""
    values, _, buckets = text.partition(":")
    if not (values.isdecimal() and len(values) <= 18 and is_buckets(buckets)):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not VALUES:BUCKETS, as 1000:300")
    return int(values), int(buckets)
