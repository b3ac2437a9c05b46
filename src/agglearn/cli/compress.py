"""Few clusters of values that keep as much information about the label as possible.

example:
  agglearn aggregate clicks.csv --label click --categorical page,user --pairs none --out tables/
  agglearn compress tables/ --budgets 10,100,1000 --out curve.csv
  agglearn compress tables/ --budget 100 --out clusters.csv
  agglearn compress tables/ --budget 100 --apply new.csv --out new_clusters.csv

reads   the folder TABLES of `agglearn aggregate`, or of `agglearn private`. Only tables of single features are used. Noise is
        taken out first, as far as it is known: counts are then estimates, which add up to the records.
writes  a CSV with the columns `feature`, `value`, `cluster`, `count`, `label_sum`, one line per value, and one per feature
        with an empty value: the cluster for values that the tables do not hold. With --apply instead the rows of FILE, with
        clusters in place of the values of these features. With --budgets a line for each number of clusters, with the
        information. It appears when complete, or not at all.

Clusters are numbered by rising label rate (frequency: by value). Rates of rare values are mostly chance. So values of fewer
than ten records become one value (--min-count), and rates are drawn towards what is usual for the feature before clustering
(--no-shrink).

What is printed is held-out information: by how many nats a logistic regression on the clusters of a feature predicts the
label of a record better than the base rate, added up over features. The counts are split five times: 80 % make clusters and
regression, and the others are predicted. Information on the records that made the clusters is printed beside it. It
is too large. Where the tables have noise, both are estimates. Tables count records, which have no weights.

In every CSV a text that a spreadsheet would run as a formula (it begins with =, +, -, @, a tab or a line break, and is no number)
has an apostrophe in front, and so has one that begins with an apostrophe. A program removes the first apostrophe.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from agglearn.cli.common import input_file, not_negative, output_file, positive, whole_seed
from agglearn.errors import ConfigError
from agglearn.text import count_text, list_some, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from agglearn.observations import ContingencyTables
    from agglearn.vocabulary.quantizer import Quantizer

HELP = "cluster the values of large features"
METHODS = {
    "optimum": "OptimalQuantizer",
    "submodular": "SubmodularQuantizer",
    "distributed": "DistributedSubmodularQuantizer",
    "agglomerative": "AgglomerativeQuantizer",
    "divisive": "DivisiveQuantizer",
    "bucketing": "BucketingQuantizer",
    "frequency": "FrequencyQuantizer",
}


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    size = command.add_mutually_exclusive_group(required=True)
    size.add_argument("--budget", type=_budget, metavar="N",
                      help="clusters, all features together; below 1: share of the values")  # fmt: skip
    size.add_argument("--budgets", type=_budgets, metavar="N,N,…",
                      help="several budgets: the information of each, in place of clusters")  # fmt: skip
    command.add_argument("--method", default="optimum", choices=list(METHODS), help="default: optimum")
    command.add_argument(
        "--min-count", type=not_negative, default=10, metavar="N", help="values of fewer records are one (default: 10)"
    )
    command.add_argument(
        "--shrink",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="shrink label rates (beta-binomial) before clustering (default: yes)",
    )
    command.add_argument(
        "--apply", metavar="FILE", help="CSV or Parquet file whose values are to become clusters; - for stdin"
    )
    command.add_argument("--seed", type=whole_seed, default=0, help="of the random numbers (default: 0)")


def run(args: argparse.Namespace) -> None:
    from agglearn.observations import ContingencyTables

    if args.budgets and args.apply:
        raise ConfigError("--apply: needs the clusters of one --budget, not --budgets")
    with output_file(args.out, args.force, *filter(None, [args.apply])) as work:
        tables = ContingencyTables.load(args.tables)
        lines = _write_curve(args, tables, work) if args.budgets else _write_clusters(args, tables, work)
    print(*lines, sep="\n")


def _write_clusters(args: argparse.Namespace, tables: "ContingencyTables", path: Path) -> list[str]:
    """Write the clusters, or a file with clusters in place of values. Return what to print."""
    quantizer, information = _fit(args, tables, args.budget)
    written, unseen = cluster_table(quantizer, tables), list[str]()
    values = int((written["value"] != "").sum())
    if args.apply:
        written, unseen = apply_clusters(quantizer, args)
    write_csv(written, path)
    clusters = f"{count_text(values, 'value')} of {count_text(len(tables.names), 'feature')} in {count_text(quantizer.n_clusters_, 'cluster')}"
    lines = [f"{args.out}: {args.method}, {clusters}", _sentence(information, tables)]
    if args.apply:
        absent = f"values that the tables do not hold: {list_some(unseen) or 'none'}"
        lines.append(f"{count_text(len(written), 'row')} of {args.apply}; {absent}")
    return lines


def _write_curve(args: argparse.Namespace, tables: "ContingencyTables", path: Path) -> list[str]:
    import pandas as pd

    rows = []
    for budget in args.budgets:
        quantizer, information = _fit(args, tables, budget)
        rows.append({"budget": budget, "clusters": quantizer.n_clusters_, **information})
    write_csv(pd.DataFrame(rows), path)
    return [f"{count_text(row['clusters'], 'cluster')}: {_sentence(row, tables)}" for row in rows] + [
        f"{args.out}: {args.method}"
    ]


def _fit(args: argparse.Namespace, tables: "ContingencyTables", budget: float) -> tuple["Quantizer", dict[str, float]]:
    from agglearn import vocabulary

    quantizer = getattr(vocabulary, METHODS[args.method])(
        budget,
        min_count=args.min_count,
        shrinkage="beta_binomial" if args.shrink else None,
        random_state=args.seed,
    ).fit(tables)
    held_out = vocabulary.held_out_information(quantizer, tables, args.seed)
    return quantizer, {"held_out_information": held_out, "training_information": quantizer.information_}


def _sentence(information: dict[str, float], tables: "ContingencyTables") -> str:
    held_out, training = information["held_out_information"], information["training_information"]
    gain = "unknown, a label has fewer than ten records" if math.isnan(held_out) else f"{held_out:.4g} nats"
    estimated = " (estimated, the tables have noise)" if tables.noise else ""
    worse = "; worse than the base rate, try a larger --min-count or fewer clusters" if held_out < 0 < training else ""
    return f"held-out information: {gain}{worse}; on the records that made the clusters: {training:.4g}{estimated}"


def apply_clusters(quantizer: "Quantizer", args: argparse.Namespace) -> tuple["pd.DataFrame", list[str]]:
    """(rows of a file with clusters in place of values, how many values of each feature have none of their own)."""
    from agglearn.cli.tabular_input import read_codes

    assert quantizer.encoder_ is not None
    with input_file(args.apply) as data:
        frame, _, unseen = read_codes(args.tables, data, quantizer.encoder_)
    clusters = dict(zip(quantizer.features_, quantizer.transform(frame).T, strict=True))
    return frame.assign(**clusters), unseen


def _budget(text: str) -> int | float:
    """A number of clusters, or a share of the values below 1. So 1 is one cluster, and 1.0 is an error."""
    value = int(text) if text.isdecimal() and int(text) else positive(text)
    if isinstance(value, float) and value >= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor a share below 1")
    return value


def _budgets(text: str) -> list[int | float]:
    return [_budget(number.strip()) for number in text.split(",")]


def cluster_table(quantizer: "Quantizer", tables: "ContingencyTables") -> "pd.DataFrame":
    """One row per value, and one per feature for values that the tables do not hold."""
    import pandas as pd

    from agglearn.vocabulary.quantizer import single_tables

    frames, single = [], single_tables(tables)
    for feature in tables.encoder.features:
        counts, sums = single[feature.name]
        columns = {"value": feature.labels, "cluster": quantizer.labels_[feature.name]}
        frame = pd.DataFrame({**columns, "count": counts, "label_sum": sums})[counts > 0]
        frame.loc[len(counts)] = ["", quantizer.unseen_[feature.name], 0, 0]
        frame.insert(0, "feature", feature.name)
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True)
    integers = ["cluster"] if tables.noise else ["cluster", "count", "label_sum"]
    return table.astype(dict.fromkeys(integers, int))
