"""Compare what can be released of records: which aggregate, at which epsilon, is worth how much to a learner.

example:
  agglearn cost twin.csv --label y --epsilon 0.1,0.3,1,3 --out cost/
  agglearn cost --rows 50000 --features 10 --values 12 --base-rate .1 --auc .8 --epsilon 1

With DATA, four fifths are released with seeded noise, models learn from that, and the other fifth judges them, in several random splits.
DATA are your own records, or public ones that resemble them (a twin). A run on secret records is itself not private.
Without DATA, a law answers that was fitted to other data sets. --auc is what a logistic regression on all records would reach.
Without it the law takes a middle data set, and is far less certain. It does not cover single tables.

`agglearn private` releases tables of single features or of pairs, `LabelSums.private` in Python releases label sums. Where labels alone
are protected, features are public. NLLH is 0 for the base rate and 1 for certainty. `agglearn plan` has the price of computing.

reads   one CSV or Parquet file, as `agglearn aggregate`. Columns to be left out, or of codes, need --schema.
writes  the folder OUT: cost.csv (means, and half of their 95 % intervals), cost.svg, and both as a page, cost.html.
        Without DATA, a table to standard output.
"""

import argparse

from agglearn.cli.common import add_record_options, input_file, output_folder, positive, separator_of
from agglearn.errors import ConfigError
from agglearn.text import count_text

HELP = "what a release costs in accuracy, by epsilon"
COST = ("cost.csv", "cost.html", "cost.svg")
OF_LAW = ("rows", "features", "values", "base_rate", "auc")
OF_RECORDS = ("label", "positive", "schema", "unit", "max_rows", "missing", "separator", "splits", "out")
ERRORS = "NLLH, AUC, and the error that nine of ten predictions for data sets without part in the law keep."
NOT_PRIVATE = (
    "These numbers tell of the records, by seeded noise: they are not private. Do not publish those of secret records."
)


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", nargs="?", help="CSV or Parquet file, one record per row")
    command.add_argument("--epsilon", type=budgets, required=True, metavar="A,B,…", help="privacy losses to compare")
    command.add_argument("--delta", type=positive, help="probability of a larger loss (default: 1/(10 n), n records)")
    add_record_options(command)
    command.add_argument("--schema", metavar="FILE", help="declared label, columns, bins and categories (YAML)")
    command.add_argument("--splits", type=int, metavar="N", help="of the records at random (default: 5)")
    command.add_argument("--rows", type=int, metavar="N", help="without DATA: number of records")
    command.add_argument("--features", type=int, metavar="N", help="without DATA: number of features")
    command.add_argument("--values", type=positive, metavar="N", help="without DATA: values of a feature on average")
    command.add_argument("--base-rate", type=positive, metavar="SHARE", help="without DATA: share of label 1")
    command.add_argument("--auc", type=positive, help="without DATA: AUC of a logistic regression on all records")


def budgets(text: str) -> list[float]:
    return sorted({positive(item) for item in text.split(",")})


def run(args: argparse.Namespace) -> None:
    use, refused = ("with", OF_RECORDS) if args.data is None else ("without", OF_LAW)
    if wrong := [name for name in refused if getattr(args, name) is not None]:
        raise ConfigError(f"--{wrong[0].replace('_', '-')}: goes {use} DATA alone; leave one of them out")
    (predict if args.data is None else measure)(args)


def predict(args: argparse.Namespace) -> None:
    """Print what the law says."""
    from agglearn.cli.cost_page import attackers, listing
    from agglearn.cost.law import predict_cost

    shape = args.rows, args.features, args.values, args.base_rate
    if None in shape:
        raise ConfigError("DATA: name a file, or describe records by --rows, --features, --values and --base-rate")
    costs = predict_cost(*shape, args.epsilon, auc=args.auc, delta=args.delta)
    sentences = ERRORS, *attackers(args.epsilon, args.delta or 1 / (10 * args.rows))
    print(listing(costs).to_string(index=False), *sentences, sep="\n")


def measure(args: argparse.Namespace) -> None:
    """Write what the records say."""
    from agglearn.cli.cost_page import attackers, draw, listing, page
    from agglearn.cli.tabular_input import read_records
    from agglearn.cost.measuring import TESTED, measure_cost, summarise
    from agglearn.encoding import Schema
    from agglearn.encoding.csv_files import about
    from agglearn.optional import require

    require("matplotlib", "workflow")
    splits = 5 if args.splits is None else args.splits
    if args.out is None or splits < 2:
        raise ConfigError("--out: name the folder to write" if args.out is None else "--splits: take 2 or more")
    options = {name: getattr(args, name) for name in ("positive", "unit", "max_rows", "delta")}
    options |= {"schema": Schema.read(args.schema) if args.schema else None, "epsilons": args.epsilon, "splits": splits}
    with output_folder(args.out, args.force, COST) as work, input_file(args.data) as data:
        frame = read_records(data, separator_of(args.separator), args.missing or [])
        with about(data):
            costs = summarise(measure_cost(frame, args.label, **options))
        protected = "unit" if "unit" in costs["release"][0] else "record"
        gains = attackers(args.epsilon, args.delta or 1 / (10 * (1 - TESTED) * len(frame)), protected)
        sentences = [f"NLLH, AUC, with 95 % intervals over {count_text(splits, 'split')}.", *gains, NOT_PRIVATE]
        costs.to_csv(work / COST[0], index=False)
        draw(costs, work / COST[2])
        (work / COST[1]).write_text(page(args.data, costs, sentences), encoding="utf-8")
    print(listing(costs).to_string(index=False), *sentences, f"{args.out}/{COST[1]}: the same as a page", sep="\n")
