"""`agglearn compress`: clusters of values from the tables of `agglearn aggregate`."""

from agglearn.cli.common import finite, whole_seed
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

reads   the folder TABLES of `agglearn aggregate`; only tables of single features are used.
writes  a CSV with the columns `feature`, `value`, `cluster`, `count`, `label_sum`, one line per value, and one per feature
        with an empty value: the cluster for values that the tables do not hold. It appears when complete, or not at all.

Clusters are numbered by rising label rate (frequency: by value). Rates of rare values are mostly chance: --min-count makes
one value of them, --shrink draws rates towards what is usual for the feature before clustering."""


def options(command) -> None:
    """Options of the command, but for --out and --force."""
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument("--budget", required=True, type=finite, metavar="N",
                         help="clusters, all features together; below 1: share of the values")  # fmt: skip
    command.add_argument("--method", default="optimum", choices=list(METHODS), help="default: optimum")
    command.add_argument(
        "--min-count", type=finite, default=0, metavar="N", help="values of fewer records are one (default: 0)"
    )
    command.add_argument("--shrink", action="store_true", help="shrink label rates (beta-binomial) before clustering")
    command.add_argument("--seed", type=whole_seed, default=0, help="of the random numbers (default: 0)")


def run(o) -> None:
    """Cluster the values of tables."""
    from agglearn import vocabulary
    from agglearn.observations import ContingencyTables

    budget = int(o.budget) if o.budget == int(o.budget) else o.budget
    how = {"min_count": o.min_count, "shrinkage": "beta_binomial" if o.shrink else None, "random_state": o.seed}
    with output_file(o.out, o.force) as work:
        tables = ContingencyTables.load(o.tables)
        found = getattr(vocabulary, METHODS[o.method])(budget, **how).fit(tables)
        lines(found, tables).to_csv(work, index=False)
    values = sum(len(t.cells) for k, t in tables.tables.items() if len(k) == 1)
    print(f"{o.out}: {o.method}, {values:,} values of {len(tables.names)} features in {found.n_clusters_:,} clusters")
    print(f"information kept: {found.information_:.6g} nats, lost: {100 * found.relative_loss_:.3g} %")


def lines(found, tables):
    """One row per value, and one per feature for what the tables do not hold."""
    import pandas as pd

    parts = []
    for i, feature in enumerate(tables.encoder.features):
        counts, sums = tables.dense(i)
        columns = {"value": feature.labels, "cluster": found.labels_[feature.name], "count": counts, "label_sum": sums}
        part = pd.DataFrame(columns)[counts > 0]
        part.loc[len(counts)] = ["", found.unseen_[feature.name], 0, 0]
        part.insert(0, "feature", feature.name)
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    whole = ["cluster"] if tables.noise else ["cluster", "count", "label_sum"]
    return table.astype(dict.fromkeys(whole, int))
