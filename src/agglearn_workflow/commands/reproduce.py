"""Get data, run the methods, and make tables and figures beside the papers' numbers, in the current folder.

examples:
  agglearn reproduce --list                          experiments, by source
  agglearn reproduce maxent_table4                   one table
  agglearn reproduce maxent_table4 --scale smoke     small sizes that show that everything runs
  agglearn reproduce maxent --cores 4 --dry-run      what would run for all tables of a source
  agglearn reproduce maxent_table4 -- --forceall     what follows -- goes to snakemake

reads   the configuration that agglearn ships. A folder config/ here is laid over it: files like config/datasets/mine.yaml or
        config/experiments/mine.yaml add entries or replace those of the same name.
writes  results/ (open results/site/index.html, or results/pages/NAME/index.html) with results/cache/ for downloads, and .snakemake/.

The exit status is 0 when everything that could run ran.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from agglearn import machine
from agglearn_workflow.project import add_project_options, project_config, project_files

HELP = "run the workflow here: tables and figures beside the papers' numbers"
STOPPED = "the same command goes on where it stopped"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "targets", nargs="*", metavar="NAME", help="experiments, or a source for all of its experiments (default: all)"
    )
    command.add_argument("--cores", type=count, metavar="N", help="jobs that run at the same time (default: all cores)")
    command.add_argument("--scale", metavar="SCALE", help="smoke, quick, default, or paper for the largest sizes")
    add_project_options(command)
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="one setting, such as maxent_table4.seeds=[0]; may be repeated",
    )
    command.add_argument("-n", "--dry-run", action="store_true", help="show what would run")
    command.add_argument("--list", action="store_true", help="print the names of the experiments, and run nothing")


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def run(args: argparse.Namespace) -> None:
    """Check the names, then replace this process by Snakemake."""
    from agglearn.optional import require

    require("pydantic", "workflow")
    require("snakemake", "workflow")
    if args.list or args.targets:
        from agglearn_workflow.plan import Plan

        overrides = {key: value for key, value in (("scale", args.scale), ("set", args.set)) if value}
        plan = Plan(project_config(args.configfile, overrides, () if args.list else args.targets))
        if args.list:
            width = max(map(len, plan.experiments))
            for source in plan.sources():
                lines = [f"  {name:{width}}  {plan.experiments[name]['title']}" for name in plan.named(source)]
                print(source, *lines, sep="\n")
            return
        check_targets(args.targets, {*plan.sources(), *plan.experiments})
    elif args.configfile:
        from agglearn_workflow.config.loading import read_mapping

        read_mapping(Path(args.configfile))  # which refuses keys that stand twice
    if any(Path(".snakemake/locks").glob("*")):
        unlock(project_config(args.configfile, targets=())["results"])
    sys.stdout.flush()
    # Signals and exit status are then Snakemake's.
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments(args)])


def check_targets(targets: list[str], names: set[str]) -> None:
    from agglearn.errors import ConfigError
    from agglearn.settings import meant

    for name in targets:
        if name not in names:
            fault = f"there is no experiment or source {name!r}{meant(name, names)}"
            raise ConfigError(f"reproduce: {fault}; see `agglearn reproduce --list`")


def unlock(results: str) -> None:
    """Remove the lock that a killed run of Snakemake has left here. A run that works holds the lock of the results."""
    from agglearn_workflow.runs import results_lock

    results_lock.acquire(f"{results}/.lock").close()
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(project_files() / "Snakefile")]
    subprocess.run([*snakemake, "--cores", "1", "--unlock"], check=False, capture_output=True)


def arguments(args: argparse.Namespace) -> list[str]:
    """Arguments of Snakemake. An option with several values would take the names that follow it, so they come last."""
    settings = [f"scale={args.scale}"] * bool(args.scale) + [f"set={list(args.set)}"] * bool(args.set)
    memory = [] if "--resources" in args.snakemake else ["--resources", f"mem_mb={machine.memory_bytes() // 10**6}"]
    return [
        *args.snakemake,
        *memory,
        *(["--configfile", args.configfile] if args.configfile else []),
        *(["--config", *settings] if settings else []),
        *(["--cores", str(args.cores)] if args.cores else []),
        *(["--dry-run"] if args.dry_run else []),
        "--snakefile", str(project_files() / "Snakefile"),
        *(["--", *args.targets] if args.targets else []),
    ]  # fmt: skip
