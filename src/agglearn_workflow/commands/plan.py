"""Print the runs of each experiment at a scale, those of them that the archive lacks, and their price. The cheapest stand first.

examples:
  agglearn plan                               every experiment at scale paper
  agglearn plan maxent_table4                 one experiment
  agglearn plan --hours 8                     what eight CPU hours buy

reads   the configuration and the archive.
writes  a table to standard output. CPU minutes are those of fitting and measuring. Memory is that of the largest run.

The price of a run is the median of archived runs of its experiment: of those that differ in the seed alone, else of those with its
method and data set, else of those with its method. It is not scaled: at another scale than paper, which is the archive's, it is rough.
A run of which the archive has none of these has no price. `≥` stands before a sum that leaves out such runs.

These are prices of computing. `agglearn cost` has that of privacy: what a release of records loses in accuracy.
"""

import argparse

from agglearn.cli.common import positive
from agglearn_workflow.project import add_project_options, project_config

HELP = "prices of the experiments: runs, CPU minutes, memory"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="experiments or sources (default: all)")
    command.add_argument(
        "--scale", default="paper", metavar="SCALE", help="smoke, quick, default or paper (the default)"
    )
    command.add_argument("--hours", type=positive, metavar="N", help="only the cheapest that fit into N CPU hours")
    add_project_options(command)


def run(args: argparse.Namespace) -> None:
    config = project_config(args.configfile, {"scale": args.scale})
    from agglearn_workflow.archive import prices
    from agglearn_workflow.config.forms import check_name
    from agglearn_workflow.plan import Plan

    plan = Plan(config)
    for name in args.experiments:
        check_name(name, [*plan.experiments, *plan.sources()], "plan", "EXPERIMENT")
    chosen = {name for target in args.experiments for name in plan.named(target)}
    plan = Plan(config | {"run": [*chosen]}) if chosen else plan
    table = prices.price_plan(plan, config["archive"])
    if args.hours is not None:
        table = prices.affordable(table, args.hours)
    claims = [sum(c["experiment"] == name for c in config["claims"].values()) for name in table.index]
    print(prices.listing(table.assign(claims=claims)))
