"""The command line: aggregate records, fit a model to the tables, predict for new records.

Exit status: 0 done; 1 the data are wrong; 2 the command is wrong. Whatever is wrong is one line on standard error.
"""

import argparse
import contextlib
import csv
import os
import sys
import time
from pathlib import Path

from agglearn import __version__
from agglearn.errors import AgglearnError, ConfigError, DataError

METHODS = {
    "maxent": "agglearn.maxent.MaxEntClassifier",
    "naive_bayes": "agglearn.maxent.NaiveBayesClassifier",
    "best_pair": "agglearn.maxent.BestPairClassifier",
}
MARKS = {
    "aggregate": "tables.json",
    "fit": "model.json",
    "private": "tables.json",
}  # what a folder holds that --force may replace
READING = "reading.json"  # beside tables and model: how the records were written
SHOWN = 12  # features named on the terminal

ABOUT = """Learn a classifier from contingency tables instead of records.

  agglearn aggregate data.csv --label y --out tables/     count records per feature and per pair of features
  agglearn private tables/ --epsilon 1 --out noisy/       add noise that protects single records
  agglearn fit tables/ --method maxent --out model/       learn from the counts alone
  agglearn predict model/ new.csv --out predictions.csv   probability of the label for new records
  agglearn compress tables/ --budget 500 --out clusters.csv   few clusters of the values of large features

`agglearn COMMAND --help` explains each."""

AGGREGATE = """Count records, and those with label 1, for every value of every feature and every pair of values of two
features. The tables are all that `agglearn fit` sees.

example:
  agglearn aggregate bank.csv --separator ';' --label y --positive yes --missing unknown --out tables/

reads   one CSV (UTF-8, header line, one record per row) or Parquet file (read piece by piece, so it may be larger
        than memory). Columns of numbers are binned; all others are categories. The label has two values: 0 and 1,
        or any two with --positive.
writes  the folder OUT: tables.parquet (features, codes, count, label_sum), tables.json (bins and categories),
        reading.json (separator and missing marks, so that `predict` reads new files alike). It appears when
        complete, or not at all.

A column of very many values (identifiers) can be hashed: --hash user:1000 counts buckets of values instead of values, and
no new value will be unseen. The hash is the same on every machine.

An empty field is a missing value; further spellings by --missing. Missing is counted as a value of its own. Counts are
exact, no noise is added: small cells can tell something about single persons."""

PRIVATE = """Add noise to the tables of `agglearn aggregate`, so that they promise (epsilon, delta)-differential privacy as a whole.
Noise is drawn once, by OpenDP, from the system's secret randomness: a second run gives other noise, and both together
promise less. Whatever is learned from OUT costs nothing more.

example:
  agglearn private tables/ --epsilon 1 --delta 1e-6 --out noisy/

reads   the folder TABLES.
writes  the folder OUT: the same files, every cell with noise (empty ones too, so that all cells are written), mechanism,
        scale, epsilon, delta and adjacency in tables.json. It appears when complete, or not at all.

Noise protects counts. Bins and lists of categories were made from the records by `agglearn aggregate` and stay as they
are: where these tell something, fix them beforehand. With --adjacency label counts are public and stay exact; label
sums alone have noise."""

FIT = """Learn P(label = 1 | features) from the tables of `agglearn aggregate`; no record is read.

example:
  agglearn fit tables/ --method maxent --set n_chains=20000 --seed 1 --out model/

methods
  maxent       pairwise model of features and label, trained by Gibbs sampling: uses all tables, the most accurate
  naive_bayes  features taken as independent given the label: uses the tables of single features; at once
  best_pair    the two features that together tell most: uses one table of a pair; fast

reads   the folder TABLES.
writes  the folder OUT: model.json and model.npz (parameters and weights, no code in them). It appears when complete,
        or not at all."""

PREDICT = """Probability of label 1 for every row of a file.

example:
  agglearn predict model/ new.csv --out predictions.csv

reads   the folder MODEL and a CSV or Parquet file that has the model's features as columns: matched by name, in any
        order, other columns are ignored; a label is not needed. The file is read as the one that was aggregated
        (separator, missing marks), unless options say otherwise.
writes  a CSV with the column `probability`, one line per row of the file, in its order; to OUT, or to standard
        output. OUT appears when complete, or not at all.

A value that was never seen in the tables (a new category; a missing value where there was none) adds nothing to a
prediction, which then rests on the other features; how many there were is reported. A missing value that was seen is
a value like any other. Numbers outside the range that was seen belong to the first or last bin."""


class Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def __init__(self, *args, **more):
        super().__init__(*args, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **more)

    def error(self, message):
        print(f"agglearn: {_line(message)}; see `{self.prog} --help`", file=sys.stderr)
        sys.exit(2)


def parser() -> Parser:
    """The commands and their options."""
    top = Parser(prog="agglearn", description=ABOUT)
    top.add_argument("--version", action="version", version=f"agglearn {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    a = commands.add_parser("aggregate", description=AGGREGATE, help="count records into tables")
    a.add_argument("data", help="CSV or Parquet file, one record per row")
    a.add_argument("--label", required=True, metavar="COLUMN", help="column to be predicted")
    a.add_argument("--positive", metavar="VALUE", help="value of the label that counts as 1, where it is not 0/1")
    a.add_argument("--features", action="append", metavar="A,B,…", help="columns to use (default: all but the label)")
    a.add_argument(
        "--pairs", default="all", metavar="all|none|A:B,C:D", help="pairs of features to count (default: all)"
    )
    a.add_argument("--binning", default="deciles", choices=["deciles", "width"],
                   help="bins of numeric columns: equal counts (deciles, default) or ten of equal width")  # fmt: skip
    a.add_argument(
        "--categorical", action="append", metavar="A,B,…", help="columns whose numbers are names, not amounts"
    )
    a.add_argument("--hash", action="append", default=[], metavar="COLUMN:BUCKETS",
                   help="hash the values of a column into so many modalities; may be repeated")  # fmt: skip
    _reading_options(a, "none", "comma")
    a.set_defaults(run=aggregate)

    n = commands.add_parser("private", description=PRIVATE, help="add noise for privacy to tables")
    n.add_argument("tables", help="folder written by `agglearn aggregate`")
    n.add_argument("--epsilon", type=float, required=True, help="of the promise, for all tables together; above 0")
    n.add_argument("--delta", type=float, help="of the promise, between 0 and 1; Gaussian noise needs it, Laplace none")
    n.add_argument(
        "--mechanism", default="gaussian", help="gaussian (default), laplace, discrete_gaussian, discrete_laplace"
    )
    n.add_argument("--split", default="uniform", help="of the budget over tables: uniform (default) or by cells")
    n.add_argument("--adjacency", default="record", help="what is protected: one record (default) or one label")
    n.add_argument("--post", default="none", help="afterwards: none (default), clip, or project (tables made to agree)")
    n.set_defaults(run=private)

    f = commands.add_parser("fit", description=FIT, help="learn a model from tables")
    f.add_argument("tables", help="folder written by `agglearn aggregate`")
    f.add_argument("--method", default="maxent", choices=list(METHODS), help="default: maxent")
    f.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="parameter of the method, as in its class's constructor; may be repeated")  # fmt: skip
    f.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0); same seed, same model")
    f.set_defaults(run=fit)

    p = commands.add_parser("predict", description=PREDICT, help="probabilities for new records")
    p.add_argument("model", help="folder written by `agglearn fit`")
    p.add_argument("data", help="CSV or Parquet file, one record per row")
    _reading_options(p, *2 * ["as in the file that was aggregated"])
    p.set_defaults(run=predict)

    from agglearn.compressing import COMPRESS, compress, options  # small: no numbers are read yet

    c = commands.add_parser("compress", description=COMPRESS, help="cluster the values of large features")
    options(c)
    c.set_defaults(run=compress)

    for command, needed, what in (
        (a, True, "folder to write"),
        (n, True, "folder to write"),
        (f, True, "folder to write"),
        (p, False, "file to write"),
        (c, True, "file to write"),
    ):
        command.add_argument("--out", required=needed, metavar="OUT", help=what)
        command.add_argument("--force", action="store_true", help="replace OUT where it exists")
    return top


def _reading_options(command, missing: str, separator: str) -> None:
    command.add_argument(
        "--missing",
        action="append",
        metavar="MARK",
        help=f"spelling of a missing value besides the empty field; may be repeated (default: {missing})",
    )
    command.add_argument(
        "--separator", metavar="S", help=f"between the fields of a CSV; tab for tabs (default: {separator})"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # whoever reads our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AgglearnError as error:
        return _fail(error, 2 if isinstance(error, ConfigError) else 1)
    except OSError as error:
        return _fail(f"{error.filename or options.command}: {error.strerror or error}", 1)
    except MemoryError:
        return _fail(f"{options.command}: not enough memory; use fewer features or fewer pairs", 1)
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written", 130)


def _fail(error, status: int) -> int:
    print(f"agglearn: {_line(error)}", file=sys.stderr)
    return status


def _line(text) -> str:
    return " ".join(str(text).split())


# -- aggregate --------------------------------------------------------------------------------------------------------


def aggregate(o) -> None:
    """`agglearn aggregate`."""
    out = folder_to_write(o.out, o.force, MARKS["aggregate"])
    from agglearn.observations import ContingencyTables
    from agglearn.products import atomic_dir, write_json
    from agglearn.reading import about, is_parquet, parquet_columns, read_records

    missing, separator = o.missing or [], separator_of(o.separator)
    frame = None if is_parquet(o.data) else read_records(o.data, separator, missing)
    columns = parquet_columns(o.data) if frame is None else list(frame.columns)
    features = features_wanted(o, columns, separator)
    how = {
        "pairs": pairs_wanted(o.pairs, features),
        "binning": o.binning,
        "categorical": names_wanted("--categorical", o.categorical, features),
        "positive": o.positive,
        "hashed": hashes_wanted(o.hash, features),
    }
    with about(o.data), say_what_to_do(o.data, "aggregate"):
        if frame is None:
            tables = ContingencyTables.from_parquet(o.data, o.label, features, missing=missing, **how)
        else:
            tables = ContingencyTables.from_records(frame, o.label, features, **how)
    with atomic_dir(out) as work:
        tables.save(work)
        write_json(work / READING, {"missing": missing, "separator": separator, "positive": o.positive})
    describe(tables, o.out)


def features_wanted(o, columns: list[str], separator: str) -> list[str]:
    """Columns that are features; errors for a label or a feature that is not there."""
    if o.label not in columns:
        if len(columns) == 1 and (other := [s for s in ";\t|," if s != separator and s in columns[0]]):
            name = "tab" if other[0] == "\t" else other[0]
            raise DataError(
                f"{o.data}: only one column, {columns[0][:40]!r}; is the separator right? try --separator '{name}'"
            )
        raise DataError(f"{o.data}: no label column {o.label!r}; the columns are {some(columns)}")
    others = [c for c in columns if c != o.label]
    if not others:
        raise DataError(f"{o.data}: no column besides the label {o.label!r}; features are needed")
    wanted = names_wanted("--features", o.features, columns)
    if o.label in wanted:
        raise ConfigError(f"--features: {o.label!r} is the label; leave it out")
    return wanted or others


def names_wanted(option: str, given: list[str] | None, columns: list[str]) -> list[str]:
    """Names in the values of an option, comma between them (quoted where a name holds one)."""
    names = [n for text in given or [] for n in next(csv.reader([text], skipinitialspace=True))]
    for i, name in enumerate(names):
        if name not in columns:
            raise ConfigError(f"{option}: no column {name!r}; there are {some(columns)}")
        if name in names[:i]:
            raise ConfigError(f"{option}: {name!r} is named twice")
    return names


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
    """{column: buckets} from `COLUMN:BUCKETS`; names may hold colons."""
    found = {}
    for text in given:
        name, _, buckets = text.rpartition(":")
        if name not in features:
            raise ConfigError(f"--hash: no feature {name or text!r}; write COLUMN:BUCKETS; there are {some(features)}")
        if not buckets.isdecimal() or not 1 <= int(buckets) < 1 << 31:
            raise ConfigError(f"--hash {name}: {buckets!r} is not a number of buckets")
        if name in found:
            raise ConfigError(f"--hash: {name!r} is named twice")
        found[name] = int(buckets)
    return found


def separator_of(given: str | None) -> str:
    """The separator; ConfigError for what none can be."""
    if given is None:
        return ","
    if given not in ("tab", "\\t") and len(given.strip(" ") or given) != 1:
        raise ConfigError(f"--separator: {given!r} is not one character; write for example ';' or tab")
    return given


@contextlib.contextmanager
def say_what_to_do(data, command: str):
    """Errors of the library in the words of the command line."""
    from agglearn.encoding.encoder import NotANumber

    try:
        yield
    except NotANumber as error:
        mark = f"declare the text as missing (--missing {str(error.value)!r})"
        if command == "aggregate":
            todo = f"{mark}, or the column as categorical (--categorical {error.column!r})"
        else:
            todo = f"mend the rows, or {mark}"
        raise DataError(f"{error.found}; {todo}") from None


def describe(tables, out) -> None:
    """What was counted, for the terminal."""
    from agglearn.encoding import BinnedEncoder, HashedEncoder
    from agglearn.evaluation.reproduction import smallest_cells

    def shown(f):
        kinds = {BinnedEncoder: "bins", HashedEncoder: "buckets"}
        kind = kinds.get(type(f), "categories")
        return f"{f.name} ({f.size - f.has_missing} {kind}{' and missing' if f.has_missing else ''})"

    rate = tables.positives / tables.total
    cells, smallest, small = smallest_cells(tables)
    named = [shown(f) for f in tables.encoder.features]
    print(f"{out}: {tables.total:,} records, {tables.positives:,} with label 1 ({100 * rate:.3g} %)")
    print(f"{number(len(named), 'feature')}: {some(named)}")
    print(f"{number(len(tables.tables), 'table')}, {number(cells, 'cell')} with records")
    print(
        f"the smallest cell holds {smallest:g}; {small:,} cells hold fewer than 10 records. Counts are exact, without noise"
    )


# -- private ----------------------------------------------------------------------------------------------------------


def private(o) -> None:
    """`agglearn private`."""
    out = folder_to_write(o.out, o.force, MARKS["private"])
    from agglearn.observations import ContingencyTables
    from agglearn.products import atomic_dir

    if Path(o.tables).resolve() == out:
        raise ConfigError(f"{o.out}: is the folder to be read; choose another --out")
    tables = ContingencyTables.load(o.tables)
    how = {"mechanism": o.mechanism, "split": o.split, "adjacency": o.adjacency, "postprocessing": o.post}
    noisy = tables.private(o.epsilon, o.delta, **how)
    with atomic_dir(out) as work:
        noisy.save(work)
        if (Path(o.tables) / READING).is_file():
            (work / READING).write_bytes((Path(o.tables) / READING).read_bytes())
    spec = noisy.noise
    delta = f", delta {spec.delta:g}" if spec.delta else ""
    scale = f"scale {spec.scale:.4g}" if spec.scales is None else f"scales up to {spec.scale:.4g}"
    print(f"{o.out}: {number(len(noisy.tables), 'table')} with {spec.mechanism.replace('_', ' ')} noise, {scale}")
    print(f"epsilon {spec.epsilon:g}{delta} for one {spec.adjacency}, all tables together; drawn by OpenDP")
    print("bins and categories come from the records as `aggregate` found them; the noise does not protect them")


# -- fit --------------------------------------------------------------------------------------------------------------


def fit(o) -> None:
    """`agglearn fit`."""
    out = folder_to_write(o.out, o.force, MARKS["fit"])
    from agglearn.evaluation.reproduction import reproduction
    from agglearn.observations import ContingencyTables
    from agglearn.products import atomic_dir
    from agglearn.running import resolve

    kind = resolve(METHODS[o.method])
    model = kind(**parameters(kind, o.method, o.set, o.seed))
    tables = ContingencyTables.load(o.tables)
    if hasattr(model, "warm_up"):
        model.warm_up()
    begin = time.perf_counter()
    model.fit(tables)
    seconds = time.perf_counter() - begin
    with atomic_dir(out) as work:
        model.save(work)
        if (Path(o.tables) / READING).is_file():
            (work / READING).write_bytes((Path(o.tables) / READING).read_bytes())
    what = f"{number(len(tables.names), 'feature')} and {number(len(tables.tables), 'table')}"
    print(f"{o.out}: {o.method} on {what} of {tables.total:,.0f} records, {seconds:.1f} s")
    print(reproduction(model, tables))


def parameters(kind, method: str, given: list[str], seed: int) -> dict:
    """Constructor arguments from NAME=VALUE, checked against its signature."""
    import difflib
    import inspect

    known = {n: p.default for n, p in inspect.signature(kind.__init__).parameters.items() if n != "self"}
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set: {text!r} is not NAME=VALUE")
        if name == "random_state":
            raise ConfigError("--set: random_state is given by --seed")
        if name not in known:
            close = difflib.get_close_matches(name, list(known), 1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            takes = ", ".join(n for n in known if n != "random_state")
            raise ConfigError(f"--set: {method} takes no {name!r}{meant}; it takes {takes}")
        if name in found:
            raise ConfigError(f"--set: {name!r} is given twice")
        found[name] = typed(name, value, known[name])
    return found | ({"random_state": seed} if "random_state" in known else {})


def typed(name: str, text: str, default):
    """The value of a parameter, of its default's type; a parameter without default value takes a number or none."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"--set {name}: {text!r} is not true or false")
        return text.lower() == "true"
    if default is None and text.lower() == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise ConfigError(f"--set {name}: {text!r} is not a number{' or none' if default is None else ''}")
    if isinstance(default, int):
        if number != int(number):
            raise ConfigError(f"--set {name}: {text!r} is not a whole number")
        return int(number)
    return number


# -- predict ----------------------------------------------------------------------------------------------------------


def predict(o) -> None:
    """`agglearn predict`."""
    out = file_to_write(o.out, o.force, o.data) if o.out else None
    from agglearn.encoding import UNSEEN
    from agglearn.estimator import Estimator
    from agglearn.products import atomic_file
    from agglearn.reading import about, read_records

    model = Estimator.load(o.model)
    if not (hasattr(model, "predict_proba") and hasattr(model, "encoder_")):
        raise DataError(f"{o.model}: a {type(model).__name__} gives no probabilities; use a model of `agglearn fit`")
    known = reading_of(o.model)
    frame = read_records(
        o.data,
        known["separator"] if o.separator is None else separator_of(o.separator),
        known["missing"] if o.missing is None else o.missing,
    )
    with about(o.data), say_what_to_do(o.data, "predict"):
        unseen = (model.encoder_.encode(frame) == UNSEEN).sum(axis=0)
        p = model.predict_proba(frame)[:, 1]
    text = "probability\n" + "".join(f"{v:.9g}\n" for v in p)
    if out:
        with atomic_file(out) as work:
            work.write_text(text)
    else:
        sys.stdout.write(text)
    said = sys.stdout if out else sys.stderr
    print(f"{o.out or 'standard output'}: {len(p):,} rows, mean probability {p.mean():.4g}", file=said)
    found = [f"{name} {n:,}" for name, n in zip(model.encoder_.names, unseen, strict=True) if n]
    what = (
        f"values never seen in the tables, which add nothing: {some(found)}"
        if found
        else "every value was seen in the tables"
    )
    print(what, file=said)


def reading_of(folder) -> dict:
    """How the aggregated records were written; the defaults for tables that were not made here."""
    from agglearn.observations.base import reading
    from agglearn.products import read_json

    known = {"missing": [], "separator": ","}
    if (Path(folder) / READING).is_file():
        with reading(folder, "a model"):
            found = read_json(Path(folder) / READING)
            known = {"missing": [str(m) for m in found["missing"]], "separator": separator_of(found["separator"])}
    return known


# -- outputs ----------------------------------------------------------------------------------------------------------


def folder_to_write(out: str, force: bool, mark: str) -> Path:
    """The folder of `--out`; ConfigError for one that must not be replaced."""
    path = Path(out).resolve()
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
        if not (path / mark).is_file():
            raise ConfigError(f"{out}: holds something else ({mark} is not in it); choose another --out")
    elif path.exists() and not path.is_dir():
        raise ConfigError(f"{out}: is a file; --out names a folder")
    return path


def file_to_write(out: str, force: bool, data: str) -> Path:
    """The file of `--out`; ConfigError for one that must not be replaced."""
    path = Path(out).resolve()
    if path.is_dir():
        raise ConfigError(f"{out}: is a folder; --out names a file")
    if path.exists() and path == Path(data).resolve():
        raise ConfigError(f"{out}: is the file to be read; choose another --out")
    if path.exists() and not force:
        raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
    return path


def number(n: int, what: str) -> str:
    """`1 table`, `2 tables`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def some(names, most: int = SHOWN) -> str:
    """The first names and how many more there are."""
    names = [str(n) for n in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
