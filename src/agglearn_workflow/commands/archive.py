"""`agglearn archive`: what the archive holds, and what is added to it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agglearn.errors import ConfigError, DataError
from agglearn_workflow.project import add_project_options, project_config

if TYPE_CHECKING:
    from agglearn_workflow.plan import Plan

HELP = "results of finished runs that the repository keeps: list, add, merge, check"
ABOUT = """The archive: results of finished runs, kept in the repository, from which tables and pages can be shown without computing.

examples:
  agglearn archive                            what the archive has of each experiment
  agglearn archive add                        add what results/ has finished (`make archive` computes and adds)
  agglearn archive merge ../theirs/archive    add the runs of another archive
  agglearn archive check --sample 10          compute ten cheap runs again and compare

reads   the configuration at scale paper, the folder `archive:`, and results/.
writes  `add` and `merge` write into the archive. Of a run that is there already, the one of today's code counts, then the newer one.

`check` draws among runs whose data are here (simulated, in a package, or in results/records/) and whose code is today's. The exit status
is 1 when a run differs by more than the tolerance. Times and sizes in memory are not compared."""
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
    checking.add_argument(
        "--seed", type=int, default=None, metavar="N", help="of the draw (default: another each time)"
    )
    for parser in (command, *actions.choices.values()):
        parser.add_argument("--scale", default="paper", metavar="SCALE", help="whose runs are planned (default: paper)")
        add_project_options(parser)


def run(args: argparse.Namespace) -> None:
    from agglearn.optional import require

    require("pydantic", "workflow")
    from agglearn_workflow.archive import store
    from agglearn_workflow.plan import Plan

    config = project_config(args.configfile, {"scale": args.scale})
    plan, folder = Plan(config), Path(config["archive"])
    if args.action == "check":
        return check(plan, folder, args)
    if args.action is None or args.action == "list":
        return print("\n".join(listing(plan, folder)))
    if args.action == "merge":
        names = store.experiments(args.folder)
        if not names:
            raise ConfigError(f"archive merge: {args.folder!r} holds no archive")
    else:
        names = list(plan.experiments)
    for name in names:
        runs = plan.runs(name) if name in plan.experiments else []
        recipes = {run.key: run.recipe for run in runs}
        results = store.read(args.folder, name) if args.action == "merge" else store.of_results(config["results"], runs)
        if added := store.add(folder, name, results, recipes):
            print(f"{name}: {added} runs added")


def listing(plan: "Plan", folder: Path) -> list[str]:
    from agglearn.text import bytes_text
    from agglearn_workflow.archive import store

    facts = store.summarise(plan, folder, list(plan.experiments))
    width = max(len(name) for name in facts)
    lines = []
    for name, f in facts.items():
        text = f"{f['archived']} of {f['planned']} runs"
        if f["archived"]:
            text += f", {' to '.join(f['days'])}, {f['cpu_seconds'] / 60:.1f} CPU minutes"
        if f["outdated"]:
            text += f", {f['outdated']} with other code or settings than today's"
        lines.append(f"{name:{width}}  {text}")
    files = list(folder.glob("*/*.parquet"))
    n_complete = sum(f["archived"] == f["planned"] for f in facts.values())
    size = bytes_text(sum(path.stat().st_size for path in files))
    return [*lines, f"{n_complete} of {len(facts)} experiments are whole; {len(files)} files, {size}"]


def check(plan: "Plan", folder: Path, args: argparse.Namespace) -> None:
    """Compute a sample of runs again, with a line for each, and raise DataError where some differ."""
    from agglearn_workflow.commands.recomputing import compare, draw_sample, recompute

    sample = draw_sample(plan, folder, args.sample, args.seconds, args.seed)
    if not sample:
        raise DataError(f"{folder}: no run of today's code whose data are here takes at most {args.seconds:g} s")
    wrong = 0
    for run, archived in sample:
        differences = compare(archived, *recompute(run, plan))
        wrong += bool(differences)
        print(
            f"{run.experiment}: {run.dataset}, {run.method} {run.params}, seed {run.seed}: {'differs' if differences else 'same'}"
        )
        for line in differences:
            print(f"  {line}")
    if wrong:
        raise DataError(f"{wrong} of {len(sample)} runs differ from the archive")
    print(f"{len(sample)} runs are as archived")
