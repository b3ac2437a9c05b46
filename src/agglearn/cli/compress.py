"""`agglearn compress`: clusters of values from the tables of `agglearn aggregate`."""

import argparse
from typing import TYPE_CHECKING

from agglearn.cli.common import finite, reading_of, whole_seed, with_remedy
from agglearn.cli.inputs import input_file
from agglearn.cli.outputs import output_file
from agglearn.text import list_some

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

ABOUT = """Few clusters of values that keep as much information about the label as possible.

example:
  agglearn aggregate clicks.csv --label click --categorical page,user --pairs none --out tables/
  agglearn compress tables/ --budget 500 --min-count 20 --shrink --out clusters.csv
  agglearn compress tables/ --budget 500 --min-count 20 --shrink --apply new.csv --out new_clusters.csv

reads   the folder TABLES of `agglearn aggregate`, or of `agglearn private`; only tables of single features are used. Noise is
        taken out first, as far as it is known: counts are then estimates, which add up to the records.
writes  a CSV with the columns `feature`, `value`, `cluster`, `count`, `label_sum`, one line per value, and one per feature
        with an empty value: the cluster for values that the tables do not hold. With --apply instead the rows of FILE, with
        clusters in place of the values of these features. It appears when complete, or not at all.

Clusters are numbered by rising label rate (frequency: by value). Rates of rare values are mostly chance: --min-count makes
one value of them, --shrink draws rates towards what is usual for the feature before clustering."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command, without --out and --force."""
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument("--budget", required=True, type=_budget, metavar="N",
                         help="clusters, all features together; below 1: share of the values")  # fmt: skip
    command.add_argument("--method", default="optimum", choices=list(METHODS), help="default: optimum")
    command.add_argument(
        "--min-count", type=finite, default=0, metavar="N", help="values of fewer records are one (default: 0)"
    )
    command.add_argument("--shrink", action="store_true", help="shrink label rates (beta-binomial) before clustering")
    command.add_argument(
        "--apply", metavar="FILE", help="CSV or Parquet file whose values are to become clusters; - for stdin"
    )
    command.add_argument("--seed", type=whole_seed, default=0, help="of the random numbers (default: 0)")


def run(args: argparse.Namespace) -> None:
    """Cluster the values of tables."""
    from agglearn import vocabulary
    from agglearn.observations import ContingencyTables

    options = {
        "min_count": args.min_count,
        "shrinkage": "beta_binomial" if args.shrink else None,
        "random_state": args.seed,
    }
    with output_file(args.out, args.force, *filter(None, [args.apply])) as work:
        tables = ContingencyTables.load(args.tables)
        quantizer = getattr(vocabulary, METHODS[args.method])(args.budget, **options).fit(tables)
        written = cluster_table(quantizer, tables)
        unseen: dict[str, int] = {}
        values = int((written["value"] != "").sum())
        if args.apply:
            written, unseen = apply_clusters(quantizer, args)
        written.to_csv(work, index=False)
    print(
        f"{args.out}: {args.method}, {values:,} values of {len(tables.names)} features in {quantizer.n_clusters_:,} clusters"
    )
    estimated = " (estimated, the tables have noise)" if tables.noise else ""
    print(
        f"information kept: {quantizer.information_:.6g} nats, lost: {100 * quantizer.relative_loss_:.3g} %{estimated}"
    )
    if args.apply:
        counts = [f"{name} {n:,}" for name, n in unseen.items() if n]
        print(
            f"{len(written):,} rows of {args.apply}; values that the tables do not hold: {list_some(counts) if counts else 'none'}"
        )


def apply_clusters(quantizer: "Quantizer", args: argparse.Namespace) -> tuple["pd.DataFrame", dict[str, int]]:
    """(rows of a file with clusters in place of values, number of values without a cluster of their own per feature)."""
    from agglearn.cli.tabular_input import read_records
    from agglearn.encoding import UNSEEN
    from agglearn.encoding.csv_files import about

    reading = reading_of(args.tables)
    with input_file(args.apply) as data, about(data), with_remedy("compress"):
        frame = read_records(data, reading["separator"], reading["missing"])
        assert quantizer.encoder_ is not None
        unseen = (quantizer.encoder_.encode(frame) == UNSEEN).sum(axis=0)
        clusters = dict(zip(quantizer.features_, quantizer.transform(frame).T, strict=True))
        return frame.assign(**clusters), dict(zip(quantizer.features_, unseen, strict=True))


def _budget(text: str) -> int | float:
    """A number of clusters, or a share of the values below 1. So 1 is one cluster, and 1.0 is an error."""
    value = int(text) if text.isdecimal() else finite(text)
    if isinstance(value, float) and value >= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor a share below 1")
    return value


def cluster_table(quantizer: "Quantizer", tables: "ContingencyTables") -> "pd.DataFrame":
    """One row per value, and one per feature for values that the tables do not hold."""
    import pandas as pd

    from agglearn.vocabulary.quantizer import single_tables

    frames, single = [], single_tables(tables)
    for feature in tables.encoder.features:
        counts, sums = single[feature.name]
        columns = {
            "value": feature.labels,
            "cluster": quantizer.labels_[feature.name],
            "count": counts,
            "label_sum": sums,
        }
        frame = pd.DataFrame(columns)[counts > 0]
        frame.loc[len(counts)] = ["", quantizer.unseen_[feature.name], 0, 0]
        frame.insert(0, "feature", feature.name)
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True)
    whole = ["cluster"] if tables.noise else ["cluster", "count", "label_sum"]
    return table.astype(dict.fromkeys(whole, int))
