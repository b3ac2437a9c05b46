"""`agglearn reproduce`: the workflow in the current folder."""

import argparse
import os
import sys

from agglearn.cli.project import add_project_options, project_config
from agglearn.local_files import project_files

HELP = "run the workflow here: tables and figures beside the papers' numbers"
ABOUT = """Get data, run the methods, and make tables and figures beside the papers' numbers, in the current folder.

examples:
  agglearn reproduce --list                          experiments, by source
  agglearn reproduce maxent_table4                   one table
  agglearn reproduce maxent_table4 --scale smoke     small sizes that show that everything runs
  agglearn reproduce maxent --cores 4 --dry-run      what would run for all tables of a source
  agglearn reproduce maxent_table4 -- --forceall     what follows -- goes to snakemake

reads   the configuration that agglearn ships. A folder config/ here is laid over it: files like config/datasets/mine.yaml or
        config/experiments/mine.yaml add entries or replace those of the same name.
writes  results/ (open results/site/index.html) with results/cache/ for downloads, and .snakemake/.

The exit status is 0 when everything that could run ran."""
STOPPED = "the same command goes on where it stopped"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "targets", nargs="*", metavar="NAME", help="experiments, or a source for all of its experiments (default: all)"
    )
    command.add_argument("--cores", type=count, metavar="N", help="jobs that run at the same time (default: all cores)")
    command.add_argument("--scale", metavar="SCALE", help="smoke, quick, default, or paper for the papers' own sizes")
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
    """A number of cores from an option."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def run(args: argparse.Namespace) -> None:
    """Check the names, then replace this process by Snakemake."""
    from agglearn.errors import ConfigError
    from agglearn.optional import require

    require("pydantic", "workflow")
    require("snakemake", "workflow")
    overrides = {key: value for key, value in (("scale", args.scale), ("set", args.set)) if value}
    config = project_config(args.configfile, overrides, () if args.list else args.targets or ["all"])
    sources = experiments_by_source(config)
    if args.list:
        return print("\n".join(listing(config, sources)))
    names = {*sources, *(name for experiments in sources.values() for name in experiments)}
    for name in args.targets:
        if name not in names:
            from agglearn.settings import meant

            raise ConfigError(
                f"reproduce: there is no experiment or source {name!r}{meant(name, names)}; see `agglearn reproduce --list`"
            )
    sys.stdout.flush()
    call = [sys.executable, "-m", "snakemake", *arguments(args)]
    os.execv(sys.executable, call)  # signals and exit status are then Snakemake's


def arguments(args: argparse.Namespace) -> list[str]:
    """Arguments of Snakemake. Options that take several values stand before others, names come last."""
    settings = [f"scale={args.scale}"] * bool(args.scale) + [f"set={list(args.set)}"] * bool(args.set)
    return [
        "--snakefile", str(project_files() / "Snakefile"),
        *(["--configfile", args.configfile] if args.configfile else []),
        *(["--config", *settings] if settings else []),
        *(["--cores", str(args.cores)] if args.cores else []),
        *(["--dry-run"] if args.dry_run else ["--logger=agglearn"]),
        *args.snakemake,
        "--", *args.targets,
    ]  # fmt: skip


def experiments_by_source(config: dict) -> dict[str, list[str]]:
    """Source → names of its experiments that the configuration runs."""
    names = config["experiments"] if config["run"] == "all" else config["run"]
    sources: dict[str, list[str]] = {}
    for name in names:
        sources.setdefault(config["experiments"][name]["source"], []).append(name)
    return sources


def listing(config: dict, sources: dict[str, list[str]]) -> list[str]:
    """A line per experiment with its title, under its source."""
    width = max(len(name) for names in sources.values() for name in names)
    lines = []
    for source, names in sources.items():
        lines.append(source)
        lines += [f"  {name:{width}}  {config['experiments'][name].get('title', '')}" for name in names]
    return lines
