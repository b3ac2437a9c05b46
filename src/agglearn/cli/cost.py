"""`agglearn cost`: what a release costs in accuracy, before it is made."""

import argparse
from typing import TYPE_CHECKING

from agglearn.cli.aggregate import feature_names, parse_names
from agglearn.cli.common import add_reading_options, number, positive, separator_of, whole_seed, with_remedy
from agglearn.cli.inputs import add_unit_options, input_file
from agglearn.cli.outputs import output_folder
from agglearn.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

HELP = "what a release costs in accuracy, by epsilon"
COST = ("cost.csv", "cost.html", "cost.svg")
LAW = ("rows", "values", "base_rate", "auc")  # options that describe records without data
NOT_PRIVATE = (
    "Computed from the records with seeded noise, so these numbers are not private themselves: if the records are secret, keep "
    "them, too, or take a public twin."
)
ABOUT = """Compare what can be released of records: which aggregate, at which epsilon, is worth how much to a learner.

example:
  agglearn cost twin.csv --label y --epsilon 0.1,0.3,1,3 --out cost/
  agglearn cost --rows 50000 --features 10 --values 12 --base-rate .1 --auc .8 --epsilon 1

With DATA, records are split at random, four fifths are released with seeded noise, models learn from the release, and the other fifth
judges them. DATA are your own records, or public ones that resemble them (a twin). The numbers tell of the records: a run on secret
records is itself not private, so that its output must not be published.

Without DATA, a law answers that was fitted to runs on other data sets. It needs the number of records, of features, and of values of
each feature on average, and the share of the positive label. --auc is the AUC that a logistic regression on all records would reach.
Without it the law takes that of a middle data set, and is far less certain.

releases, all by Gaussian noise
  single tables      `agglearn aggregate --pairs none`, then `agglearn private`
  tables of pairs    `agglearn aggregate`, then `agglearn private`, with --adjacency label where labels alone are protected
  label sums         `LabelSums.private` in Python: labels alone are protected, features are public

scores: NLLH is 0 for predictions of the base rate and 1 for certainty, AUC is .5 and 1. `agglearn plan` has the cost of computing.

reads   one CSV or Parquet file, one record per row, as `agglearn aggregate` reads it.
writes  the folder OUT: cost.csv (means with 95 % intervals over the splits), cost.svg, and both as a page, cost.html.
        Without DATA, a table to standard output."""


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", nargs="?", help="CSV or Parquet file, one record per row")
    command.add_argument("--epsilon", type=budgets, required=True, metavar="A,B,…", help="privacy losses to compare")
    command.add_argument(
        "--delta", type=positive, help="probability of a larger loss (default: 1/(10 n) for n records)"
    )
    command.add_argument("--label", metavar="COLUMN", help="column to be predicted")
    command.add_argument("--positive", metavar="VALUE", help="value of the label that counts as 1, where it is not 0/1")
    command.add_argument("--schema", metavar="FILE", help="declared bins, categories and label values (YAML)")
    command.add_argument("--features", action="append", metavar="A,B,…|N",
                   help="columns to use, as in `agglearn aggregate`; without DATA their number")  # fmt: skip
    command.add_argument(
        "--categorical", action="append", metavar="A,B,…", help="columns whose numbers are names, not amounts"
    )
    add_unit_options(command)
    command.add_argument("--splits", type=int, default=5, metavar="N", help="of the records at random (default: 5)")
    command.add_argument("--seed", type=whole_seed, default=0, help="of the splits and of the noise (default: 0)")
    command.add_argument("--rows", type=int, metavar="N", help="without DATA: number of records")
    command.add_argument("--values", type=positive, metavar="N", help="without DATA: values of a feature on average")
    command.add_argument("--base-rate", type=positive, metavar="SHARE", help="without DATA: share of label 1")
    command.add_argument("--auc", type=positive, help="without DATA: AUC of a logistic regression on all records")
    add_reading_options(command, "none", "comma")


def budgets(text: str) -> list[float]:
    return sorted({positive(item) for item in text.split(",")})


def run(args: argparse.Namespace) -> None:
    given = [f"--{name.replace('_', '-')}" for name in LAW if getattr(args, name) is not None]
    if args.data is None:
        predict(args)
    elif given:
        raise ConfigError(f"{given[0]}: describes records without DATA; leave out one of them")
    else:
        measure(args)


def predict(args: argparse.Namespace) -> None:
    """Print what the law says."""
    from agglearn.cli.cost_page import attackers, listing
    from agglearn.cost.law import predict_cost

    if args.out is not None or args.label is not None:
        raise ConfigError(f"--{'out' if args.out else 'label'}: goes with DATA alone; name the file, or leave it out")
    features = ",".join(args.features or [])
    if None in (args.rows, args.values, args.base_rate) or not features:
        raise ConfigError("DATA: name a file, or describe records by --rows, --features, --values and --base-rate")
    if not features.isdecimal():
        raise ConfigError(f"--features: {features!r:.40} is not a number of features; columns need DATA")
    shape = args.rows, int(features), args.values, args.base_rate
    predicted = predict_cost(*shape, args.epsilon, auc=args.auc, delta=args.delta)
    cells = [
        f"{row.nllh:.3f} ± {row.nllh_error:.3f}, {row.auc:.3f} ± {row.auc_error:.3f}" for row in predicted.itertuples()
    ]
    print(listing(predicted.assign(cell=cells)).to_string(index=False))
    print("NLLH, AUC, and the error that nine of ten predictions for a data set without part in the law keep.")
    print(*attackers(args.epsilon, args.delta or 1 / (10 * args.rows)), sep="\n")


def measure(args: argparse.Namespace) -> None:
    """Write what the records say."""
    from agglearn.cli.cost_page import attackers, draw, listing, page, summarise
    from agglearn.optional import require

    require("matplotlib", "workflow")
    if args.out is None:
        raise ConfigError("--out: name the folder to write")
    if args.splits < 2:
        raise ConfigError(f"--splits: {args.splits} gives no interval; take 2 or more")
    with output_folder(args.out, args.force, COST) as work, input_file(args.data) as data:
        args.data = data
        scores, records = scores_of(args)
        summary = summarise(scores)
        said = [
            f"NLLH, AUC, with 95 % intervals over {number(args.splits, 'split')} of {number(len(scores), 'fit')}",
            *attackers(args.epsilon, args.delta or 1 / (10 * records), scores["protected"][0]),
            NOT_PRIVATE,
        ]
        summary.drop(columns="cell").to_csv(work / COST[0], index=False)
        draw(summary, work / COST[2])
        (work / COST[1]).write_text(page(args.data, listing(summary), said), encoding="utf-8")
    print(listing(summary).to_string(index=False), *said, f"{args.out}/{COST[1]}: the same as a page", sep="\n")


def scores_of(args: argparse.Namespace) -> tuple["pd.DataFrame", int]:
    """(scores, records that are released) of all splits."""
    from agglearn.cli.tabular_input import csv_columns, is_parquet, parquet_columns, read_records
    from agglearn.cost.measuring import TESTED, measure_cost
    from agglearn.encoding import Schema
    from agglearn.encoding.csv_files import about
    from agglearn.privacy.calibration import check_promise
    from agglearn.privacy.limits import check_delta

    schema, separator = Schema.read(args.schema) if args.schema else None, separator_of(args.separator)
    if args.label is None and schema is None:
        raise ConfigError("--label: name the column to be predicted, or give --schema")
    columns = parquet_columns(args.data) if is_parquet(args.data) else csv_columns(args.data, separator)
    features = feature_names(args, columns, separator, schema)
    frame = read_records(args.data, separator, args.missing or [])
    records = round((1 - TESTED) * len(frame))
    check_delta(args.delta, records)
    for epsilon in args.epsilon:
        check_promise(epsilon, args.delta or 1 / (10 * records), "gaussian")
    options = {
        "schema": schema,
        "positive": args.positive,
        "categorical": parse_names("--categorical", args.categorical, features),
        "unit": args.unit,
        "max_rows": args.max_rows,
    }
    options |= {"epsilons": args.epsilon, "delta": args.delta, "splits": args.splits, "random_state": args.seed}
    with about(args.data), with_remedy("aggregate"):
        return measure_cost(frame, args.label, features, **options), records
