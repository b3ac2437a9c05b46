"""`agglearn aggregate`: records to tables."""

import argparse
import csv
import fnmatch

from agglearn.cli.common import (
    READING,
    finite,
    number,
    reading_options,
    say_what_to_do,
    separator_of,
    some,
)
from agglearn.cli.inputs import input_file
from agglearn.cli.outputs import TABLES, output_folder
from agglearn.errors import ConfigError, DataError

HELP = "count records into tables"
LONG = 10  # seconds from which on a count is announced
ABOUT = """Count records, and those with label 1, for every value of every feature and every pair of values of two
features. The tables are all that `agglearn fit` sees.

example:
  agglearn aggregate bank.csv --separator ';' --label y --positive yes --missing unknown --out tables/

reads   one CSV (UTF-8, header line, one record per row) or Parquet file (read piece by piece, so it may be larger
        than memory); - for standard input. Columns of numbers are binned; all others are categories. The label has two values: 0 and 1,
        or any two with --positive.
writes  the folder OUT: tables.parquet (features, codes, count, label_sum), tables.json (bins and categories),
        reading.json (separator and missing marks, so that `predict` reads new files alike). It appears when
        complete, or not at all.

Bins and categories that are learned from the records tell of these records: a private release (`agglearn private`) needs them
declared, by --schema FILE, see `agglearn schema --help`. The label, bins, categories and hashed columns are then those of the
schema; whatever else occurs belongs to the level `other` of its feature.

Whole numbers are taken for amounts: the columns that were are named at the end. Codes (postcodes, identifiers) need
--categorical zip,store or --categorical 'C*'.

A column of very many values (identifiers) can be hashed: --hash user:1000 counts buckets of values instead of values, and
no new value will be unseen. --hash-above 1000:300 does that for all columns of more than 1,000 categories. The hash is the same
on every machine.

Features make one table each and one for every pair: 1,000 features make 500,500 tables. Memory and time are told before a
long count begins.

An empty field is a missing value; further spellings by --missing. Missing is counted as a value of its own. Counts are
exact, no noise is added: small cells can tell something about single persons."""


def options(command) -> None:
    """Options of the command, but for --out and --force."""
    command.add_argument("data", help="CSV or Parquet file, one record per row")
    command.add_argument("--label", metavar="COLUMN", help="column to be predicted; needed without --schema")
    command.add_argument("--schema", metavar="FILE", help="declared bins, categories and label values (YAML)")
    command.add_argument("--positive", metavar="VALUE", help="value of the label that counts as 1, where it is not 0/1")
    command.add_argument(
        "--features",
        action="append",
        metavar="A,B,…",
        help="columns to use, patterns like 'C*' among them (default: all but the label)",
    )
    command.add_argument(
        "--pairs", default="all", metavar="all|none|A:B,C:D", help="pairs of features to count (default: all)"
    )
    command.add_argument("--binning", choices=["deciles", "width"],
                   help="bins of numeric columns: equal counts (deciles, default) or ten of equal width")  # fmt: skip
    command.add_argument(
        "--categorical",
        action="append",
        metavar="A,B,…",
        help="columns whose numbers are names, not amounts; patterns too",
    )
    command.add_argument("--hash", action="append", default=[], metavar="COLUMN:BUCKETS",
                   help="hash the values of a column, or of all that a pattern names, into so many modalities; may be repeated")  # fmt: skip
    command.add_argument("--hash-above", type=hash_above, metavar="VALUES:BUCKETS",
                   help="hash every column of categories that has more than VALUES values into BUCKETS")  # fmt: skip
    command.add_argument("--memory", type=finite, metavar="GB",
                   help="refuse to count tables that need more (default: what this machine has)")  # fmt: skip
    reading_options(command, "none", "comma")


def run(o) -> None:
    """Count the records of a file."""
    if o.label is None and o.schema is None:
        raise ConfigError("--label: name the column to be predicted, or give --schema")
    with output_folder(o.out, o.force, TABLES) as work, input_file(o.data) as data:
        o.data = data
        tables = count(o, work)
    describe(tables, o.out)


def count(o, work):
    """Tables of the records, written into a folder."""
    import numpy as np

    from agglearn.cli.tabular_input import about, is_parquet, parquet_columns, read_records
    from agglearn.encoding import Schema
    from agglearn.observations import ContingencyTables
    from agglearn.observations.workload import workload_of
    from agglearn.storage import write_json

    schema = Schema.read(o.schema) if o.schema else None
    missing, separator = o.missing or [], separator_of(o.separator)
    frame = None if is_parquet(o.data) else read_records(o.data, separator, missing)
    columns = parquet_columns(o.data) if frame is None else list(frame.columns)
    features = features_wanted(o, columns, separator, schema)
    how = {
        "schema": schema,
        "pairs": pairs_wanted(o.pairs, features),
        "binning": o.binning,
        "categorical": names_wanted("--categorical", o.categorical, features),
        "positive": o.positive,
        "hashed": hashes_wanted(o.hash, features),
        "hash_above": o.hash_above,
        "before_counting": lambda workload: announce(workload, o),
    }
    if isinstance(how["pairs"], str):
        allow(workload_of(np.ones(len(features)), how["pairs"]), o)  # before the values of many columns are looked at
    with about(o.data), say_what_to_do(o.data, "aggregate"):
        if frame is None:
            tables = ContingencyTables.from_parquet(o.data, o.label, features, missing=missing, **how)
        else:
            tables = ContingencyTables.from_records(frame, o.label, features, **how)
        if not tables.total:
            raise DataError("no record has one of the two labels that the schema declares")
    tables.save(work)
    write_json(
        work / READING,
        {"missing": missing, "separator": separator, "positive": schema.positive if schema else o.positive},
    )
    return tables


def announce(workload, o) -> None:
    """Tell what a long count takes, and refuse what takes too much memory."""
    allow(workload, o)
    if workload.seconds >= LONG:
        print(f"{o.out}: {workload}", flush=True)


def allow(workload, o) -> None:
    """DataError for tables that need more memory than --memory, or than this machine has."""
    from agglearn.machine import memory_bytes

    workload.refuse_beyond(memory_bytes() if o.memory is None else int(o.memory * 1e9))


def features_wanted(o, columns: list[str], separator: str, schema=None) -> list[str]:
    """Columns that are features; errors for a label or a feature that is not there."""
    label = schema.label if schema else o.label
    if label not in columns:
        if len(columns) == 1 and (other := [s for s in ";\t|," if s != separator and s in columns[0]]):
            name = "tab" if other[0] == "\t" else other[0]
            raise DataError(
                f"{o.data}: only one column, {columns[0][:40]!r}; is the separator right? try --separator '{name}'"
            )
        raise DataError(f"{o.data}: no label column {label!r}; the columns are {some(columns)}")
    others = schema.encoder.names if schema else [c for c in columns if c != label]
    if not others:
        raise DataError(f"{o.data}: no column besides the label {label!r}; features are needed")
    wanted = names_wanted("--features", o.features, [label, *others] if schema else columns)
    if label in items_of(o.features):
        raise ConfigError(f"--features: {label!r} is the label; leave it out")
    return [name for name in wanted if name != label] or others  # a pattern may name the label as well


def names_wanted(option: str, given: list[str] | None, columns: list[str]) -> list[str]:
    """Names in the values of an option, comma between them (quoted where a name holds one)."""
    names = [name for item in items_of(given) for name in matching(option, item, columns)]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ConfigError(f"{option}: {name!r} is named twice")
    return names


def items_of(given: list[str] | None) -> list[str]:
    """What commas separate in the values of an option."""
    return [item for text in given or [] for item in next(csv.reader([text], skipinitialspace=True))]


def matching(option: str, item: str, columns: list[str]) -> list[str]:
    """The column of this name, or all that a pattern (`C*`, `x?`, `[ab]_id`) names."""
    if item in columns:
        return [item]
    if found := fnmatch.filter(columns, item):
        return found
    raise ConfigError(f"{option}: no column {item!r}; there are {some(columns)}")


def pairs_wanted(text: str, features: list[str]):
    """`all`, `none`, or pairs of names from `A:B,C:D`; names may hold colons."""
    if text in ("all", "none"):
        return text
    pairs = []
    for item in next(csv.reader([text], skipinitialspace=True)):
        splits = [(item[:i], item[i + 1 :]) for i, sign in enumerate(item) if sign == ":"]
        if not splits:
            raise ConfigError(f"--pairs: {item!r} is no pair; write all, none, or pairs as A:B,C:D")
        found = [s for s in splits if set(s) <= set(features)]
        if not found:
            a, b = splits[0]
            raise ConfigError(f"--pairs: no feature {b if a in features else a!r}; there are {some(features)}")
        if found[0][0] == found[0][1]:
            raise ConfigError(f"--pairs: {found[0][0]!r} is paired with itself")
        pairs.append(found[0])
    return pairs


def hashes_wanted(given: list[str], features: list[str]) -> dict[str, int]:
    """{column: buckets} from `COLUMN:BUCKETS`; names may hold colons, and be patterns."""
    found = {}
    for text in given:
        item, _, buckets = text.rpartition(":")
        names = [item] if item in features else fnmatch.filter(features, item)
        if not names:
            raise ConfigError(f"--hash: no feature {item or text!r}; write COLUMN:BUCKETS; there are {some(features)}")
        if not is_buckets(buckets):
            raise ConfigError(f"--hash {item}: {buckets!r} is not a number of buckets")
        if twice := [name for name in names if name in found]:
            raise ConfigError(f"--hash: {twice[0]!r} is named twice")
        found |= dict.fromkeys(names, int(buckets))
    return found


def hash_above(text: str) -> tuple[int, int]:
    """(values, buckets) from `VALUES:BUCKETS`."""
    values, _, buckets = text.partition(":")
    if not (values.isdecimal() and is_buckets(buckets)):
        raise argparse.ArgumentTypeError(f"{text!r} is not VALUES:BUCKETS, as 1000:300")
    return int(values), int(buckets)


def is_buckets(text: str) -> bool:
    """Whether a text is a number of buckets."""
    return text.isdecimal() and 1 <= int(text) < 1 << 31


def describe(tables, out) -> None:
    """What was counted, for the terminal."""
    from agglearn.cli.report import smallest_cells
    from agglearn.encoding import BinnedEncoder, HashedEncoder

    def shown(f):
        kinds = {BinnedEncoder: "bins", HashedEncoder: "buckets"}
        kind = kinds.get(type(f), "categories")
        last = [*["missing"] * f.has_missing, *["other"] * f.has_other]
        return f"{f.name} ({' and '.join([f'{f.size - len(last)} {kind}', *last])})"

    def names(kind):
        return [f.name for f in tables.encoder.features if isinstance(f, kind)]

    rate = tables.positives / tables.total
    cells, smallest, small = smallest_cells(tables)
    named = [shown(f) for f in tables.encoder.features]
    print(f"{out}: {tables.total:,} records, {tables.positives:,} with label 1 ({100 * rate:.3g} %)")
    print(f"{number(len(named), 'feature')}, by a {tables.encoder.schema} schema: {some(named)}")
    if tables.encoder.schema == "learned":
        print(f"taken for numbers, in bins: {', '.join(names(BinnedEncoder)) or 'none'}")
    if hashed := names(HashedEncoder):
        print(f"hashed: {', '.join(hashed)}")
    if other := [
        f"{f.name} {n:,.0f}"
        for i, f in enumerate(tables.encoder.features)
        if f.has_other and (n := tables.dense(i)[0][-1])
    ]:
        print(f"records that the schema has no level of their own for: {some(other)}")
    print(f"{number(len(tables.tables), 'table')}, {number(cells, 'cell')} with records")
    print(
        f"the smallest cell holds {smallest:g}; {small:,} cells hold fewer than 10 records. Counts are exact, without noise"
    )
