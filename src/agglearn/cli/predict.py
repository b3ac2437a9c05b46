"""`agglearn predict`: probabilities for new records."""

import sys

from agglearn.cli.common import reading_of, reading_options, say_what_to_do, separator_of, some
from agglearn.cli.inputs import input_file
from agglearn.cli.outputs import STANDARD_OUTPUT, text_output
from agglearn.errors import DataError

HELP = "probabilities for new records"
ABOUT = """Probability of label 1 for every row of a file.

example:
  agglearn predict model/ new.csv --out predictions.csv

reads   the folder MODEL and a CSV or Parquet file that has the model's features as columns: matched by name, in any
        order, other columns are ignored; a label is not needed; - for standard input. The file is read as the one that was aggregated
        (separator, missing marks), unless options say otherwise.
writes  a CSV with the column `probability`, one line per row of the file, in its order; to OUT, or to standard
        output. OUT appears when complete, or not at all.

A value that was never seen in the tables (a new category; a missing value where there was none) adds nothing to a
prediction, which then rests on the other features; how many there were is reported. A missing value that was seen is
a value like any other. Numbers outside the range that was seen belong to the first or last bin."""


def options(command) -> None:
    """Options of the command, but for --out and --force."""
    command.add_argument("model", help="folder written by `agglearn fit`")
    command.add_argument("data", help="CSV or Parquet file, one record per row")
    reading_options(command, *2 * ["as in the file that was aggregated"])


def run(o) -> None:
    """Predict for the rows of a file."""
    with text_output(o.out, o.force, o.data) as write, input_file(o.data) as data:
        p, unseen = predictions(o, data)
        write("probability\n" + "".join(f"{v:.9g}\n" for v in p))
    to_file = o.out not in (None, STANDARD_OUTPUT)
    told = sys.stdout if to_file else sys.stderr
    print(f"{o.out if to_file else 'standard output'}: {len(p):,} rows, mean probability {p.mean():.4g}", file=told)
    counts = [f"{name} {n:,}" for name, n in unseen.items() if n]
    if counts:
        print(f"values never seen in the tables, which add nothing: {some(counts)}", file=told)
    else:
        print("every value was seen in the tables", file=told)


def predictions(o, data):
    """(n,) probabilities of label 1 for a file, and per feature how many of its values were never seen."""
    from agglearn.cli.tabular_input import about, read_records
    from agglearn.encoding import UNSEEN
    from agglearn.estimator import Estimator

    model = Estimator.load(o.model)
    if not (hasattr(model, "predict_proba") and hasattr(model, "encoder_")):
        raise DataError(f"{o.model}: a {type(model).__name__} gives no probabilities; use a model of `agglearn fit`")
    known = reading_of(o.model)
    frame = read_records(
        data,
        known["separator"] if o.separator is None else separator_of(o.separator),
        known["missing"] if o.missing is None else o.missing,
    )
    with about(data), say_what_to_do(data, "predict"):
        unseen = (model.encoder_.encode(frame) == UNSEEN).sum(axis=0)
        return model.predict_proba(frame)[:, 1], dict(zip(model.encoder_.names, unseen, strict=True))
