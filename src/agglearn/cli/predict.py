"""Probability of label 1 for every row of a file.

example:
  agglearn predict model/ new.csv --out predictions.csv

reads   the folder MODEL and a CSV or Parquet file that has the model's features as columns, or - for standard
        input. Columns are matched by name, others are ignored, and no label is needed. The file is read like the aggregated
        one (separator, missing marks), unless options give others.
writes  a CSV with the column `probability`, one line per row of the file, in its order, to OUT or to standard
        output. OUT appears when complete, or not at all.

A value that is not in the tables (a new category, a missing value where there was none) adds nothing to a
prediction, which then rests on the other features. The number of such values is printed. A missing value that is in the
tables is a value like any other. Numbers outside the range of the tables belong to the first or last bin.
"""

import argparse
import sys

from agglearn.cli.common import STANDARD, add_reading_options, input_file, text_output
from agglearn.errors import DataError
from agglearn.text import count_text, list_some

HELP = "probabilities for new records"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", help="folder written by `agglearn fit`")
    command.add_argument("data", help="CSV or Parquet file, one record per row")
    add_reading_options(command)


def run(args: argparse.Namespace) -> None:
    from agglearn.cli.tabular_input import read_codes
    from agglearn.estimator import Estimator, predict_codes

    with text_output(args.out, args.force, args.data) as write, input_file(args.data) as data:
        model = Estimator.load(args.model)
        if not (hasattr(model, "predict_proba") and hasattr(model, "encoder_")):
            raise DataError(f"{args.model}: a {type(model).__name__} gives no probabilities; use one of `agglearn fit`")
        _, codes, unseen = read_codes(args.model, data, model.encoder_, args.separator, args.missing)
        p = predict_codes(model, codes)
        write("probability\n" + "".join(f"{v:.9g}\n" for v in p))
    to_output = args.out in (None, STANDARD)
    out, terminal = ("standard output", sys.stderr) if to_output else (args.out, sys.stdout)
    print(f"{out}: {count_text(len(p), 'row')}, mean probability {p.mean():.4g}", file=terminal)
    never = f"values never seen in the tables, which add nothing: {list_some(unseen)}"
    print(never if unseen else "every value was seen in the tables", file=terminal)
