"""The archive: results of finished runs, kept in the repository, from which tables and pages can be shown without computing.

examples:
  agglearn archive                            what the archive has of each experiment
  agglearn archive add                        add what results/ has finished (`make archive` computes and adds)
  agglearn archive merge ../theirs/archive    add the runs of another archive
  agglearn archive check --sample 10          compute ten cheap runs again and compare

reads   the configuration at scale paper, the folder `archive:`, and results/.
writes  `add` and `merge` write into the archive. Of a run that is there already, the one of today's code counts, then the newer one.

`check` draws among runs whose data are here (simulated, in a package, or in results/records/) and whose code is today's. The exit status
is 1 when a run differs by more than the tolerance. Times and sizes in memory are not compared.
"""

import argparse
from pathlib import Path

from agglearn.errors import ConfigError
from agglearn.text import bytes_text, count_text
from agglearn_workflow.project import add_project_options, project_config

HELP = "results of finished runs that the repository keeps: list, add, merge, check"
STOPPED = "the archive is as it was, or has all of an experiment"


def add_options(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="what the archive has of each experiment (the default)")
    actions.add_parser("add", help="add the finished runs of results/")
    merging = actions.add_parser("merge", help="add the runs of another archive")
    merging.add_argument("folder", metavar="FOLDER", help="the other archive")
    checking = actions.add_parser("check", help="compute a random sample of runs again and compare")
    checking.add_argument("--sample", type=int, default=10, metavar="N", help="number of runs (default: 10)")
    checking.add_argument("--seconds", type=float, default=60.0, metavar="S", help="dearest run (default: 60)")
    checking.add_argument("--seed", type=int, metavar="N", help="of the draw (default: another each time)")
    for parser in (command, *actions.choices.values()):
        parser.add_argument("--scale", default="paper", metavar="SCALE", help="whose runs are planned (default: paper)")
        add_project_options(parser)


def run(args: argparse.Namespace) -> None:
    config = project_config(args.configfile, {"scale": args.scale})
    from agglearn_workflow.archive import prices, store
    from agglearn_workflow.commands.recomputing import check
    from agglearn_workflow.plan import Plan

    plan, folder = Plan(config), Path(config["archive"])
    if args.action == "check":
        return check(plan, folder, args.sample, args.seconds, args.seed)
    if args.action in ("list", None):
        return print("\n".join(listing(prices.summarise(plan, folder), folder)))
    names = store.experiments(args.folder) if args.action == "merge" else list(plan.experiments)
    if args.action == "merge" and not names:
        raise ConfigError(f"archive merge: {args.folder!r} holds no archive")
    for name in names:
        runs = plan.runs(name) if name in plan.experiments else []
        results = store.read(args.folder, name) if args.action == "merge" else store.of_results(config["results"], runs)
        if added := store.add(folder, name, results, {run.key: run.recipe for run in runs}):
            print(f"{name}: {count_text(added, 'run')} added")


def listing(facts: dict[str, dict], folder: Path) -> list[str]:
    """A table with a line for each experiment, and a line for the archive."""
    import pandas as pd

    *of_experiments, (_, total) = facts.items()
    head = ["kept", "runs", "first day", "last day", "CPU min", "outdated"]
    rows = [
        [f["archived"], f["planned"], f["days"][0], f["days"][-1], f"{f['cpu_seconds'] / 60:.1f}", f["outdated"]]
        if f["archived"]
        else [0, f["planned"], "", "", "", ""]
        for _, f in of_experiments
    ]
    sizes = [path.stat().st_size for path in folder.glob("*/*.parquet")]
    return [
        *pd.DataFrame(rows, [name for name, _ in of_experiments], head).to_string().splitlines(),
        f"whole: {total['complete']} of {count_text(len(of_experiments), 'experiment')}; {count_text(len(sizes), 'file')}, {bytes_text(sum(sizes))}",
        "outdated: computed with other code, settings or packages than today's",
    ]
