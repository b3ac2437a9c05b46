"""`agglearn compress`: clusters of values from the tables of `agglearn aggregate`."""

import argparse

from agglearn.cli.common import finite, reading_of, say_what_to_do, some, whole_seed
from agglearn.cli.inputs import input_file
from agglearn.cli.outputs import output_file

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


def options(command) -> None:
    """Options of the command, but for --out and --force."""
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


def run(o) -> None:
    """Cluster the values of tables."""
    from agglearn import vocabulary
    from agglearn.observations import ContingencyTables

    how = {"min_count": o.min_count, "shrinkage": "beta_binomial" if o.shrink else None, "random_state": o.seed}
    with output_file(o.out, o.force, *filter(None, [o.apply])) as work:
        tables = ContingencyTables.load(o.tables)
        found = getattr(vocabulary, METHODS[o.method])(o.budget, **how).fit(tables)
        written, unseen = lines(found, tables), {}
        values = int((written["value"] != "").sum())
        if o.apply:
            written, unseen = applied(found, o)
        written.to_csv(work, index=False)
    print(f"{o.out}: {o.method}, {values:,} values of {len(tables.names)} features in {found.n_clusters_:,} clusters")
    estimated = " (estimated, the tables have noise)" if tables.noise else ""
    print(f"information kept: {found.information_:.6g} nats, lost: {100 * found.relative_loss_:.3g} %{estimated}")
    if o.apply:
        counts = [f"{name} {n:,}" for name, n in unseen.items() if n]
        print(
            f"{len(written):,} rows of {o.apply}; values that the tables do not hold: {some(counts) if counts else 'none'}"
        )


def applied(found, o):
    """The rows of a file with clusters in place of values, and per feature how many values the tables do not hold."""
    from agglearn.cli.tabular_input import about, read_records
    from agglearn.encoding import UNSEEN

    how = reading_of(o.tables)
    with input_file(o.apply) as data, about(data), say_what_to_do(data, "compress"):
        frame = read_records(data, how["separator"], how["missing"])
        unseen = (found.encoder_.encode(frame) == UNSEEN).sum(axis=0)
        clusters = dict(zip(found.features_, found.transform(frame).T, strict=True))
        return frame.assign(**clusters), dict(zip(found.features_, unseen, strict=True))


def _budget(text: str):
    """Clusters, or a share of the values below 1, as it is written: 1 is one cluster, 1.0 is neither."""
    value = int(text) if text.isdecimal() else finite(text)
    if isinstance(value, float) and value >= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor a share below 1")
    return value


def lines(found, tables):
    """One row per value, and one per feature for what the tables do not hold."""
    import pandas as pd

    from agglearn.vocabulary.quantizer import single_tables

    parts, single = [], single_tables(tables)
    for feature in tables.encoder.features:
        counts, sums = single[feature.name]
        columns = {"value": feature.labels, "cluster": found.labels_[feature.name], "count": counts, "label_sum": sums}
        part = pd.DataFrame(columns)[counts > 0]
        part.loc[len(counts)] = ["", found.unseen_[feature.name], 0, 0]
        part.insert(0, "feature", feature.name)
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    whole = ["cluster"] if tables.noise else ["cluster", "count", "label_sum"]
    return table.astype(dict.fromkeys(whole, int))
