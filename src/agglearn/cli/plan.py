"""`agglearn plan`: what the experiments cost, from the runs that were measured."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agglearn.cli.project import add_project_options, project_config
from agglearn.errors import ConfigError

if TYPE_CHECKING:
    from agglearn.workflow.prices import Price

HELP = "prices of the experiments: runs, CPU minutes, memory, disk"
ABOUT = """Print what each experiment costs at a scale, the cheapest first, and what the record lacks of it.

examples:
  agglearn plan                               every experiment at scale paper
  agglearn plan maxent_table4 --scale paper   one experiment
  agglearn plan --hours 8                     what eight CPU hours buy

reads   the configuration, the costs of the runs in results/ and in the record, and in the folders given by --runs.
writes  a table to standard output. CPU minutes are those of fitting and measuring. Fetching and observing are not in them.

The time of a run is a power law of its sizes, fitted to measured runs of the same method. Where one size was measured, time is
linear in the size. The error is a factor: of each method each measured size is predicted from its others.
Memory is that of the largest run, where it was measured. Disk is an upper limit: observations are deleted after the fits."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="experiments or sources (default: all)")
    command.add_argument(
        "--scale", default="paper", metavar="SCALE", help="smoke, quick, default or paper (the default)"
    )
    command.add_argument("--hours", type=float, metavar="N", help="CPU hours to spend")
    command.add_argument(
        "--runs", action="append", default=[], metavar="FOLDER", help="another results folder with measured runs"
    )
    add_project_options(command)


def run(args: argparse.Namespace) -> None:
    """Print the table."""
    from agglearn.optional import require

    require("jsonschema", "workflow")
    from agglearn.workflow import prices
    from agglearn.workflow.config import check_name
    from agglearn.workflow.plan import Plan

    for folder in args.runs:
        if not (Path(folder) / "runs").is_dir():
            raise ConfigError(f"plan: --runs: {folder!r} is no results folder; it has no runs/")
    config = project_config(args.configfile, {"scale": args.scale})
    plan = Plan(config)
    for name in args.experiments:
        check_name(name, [*plan.experiments, *plan.sources()], "plan", "EXPERIMENT")
    chosen = [n for target in args.experiments for n in plan.named(target)]
    plan = Plan(config | {"run": list(dict.fromkeys(chosen))}) if chosen else plan
    measured = prices.timings([config["results"], *args.runs], config["record"])
    model_errors = [e for errors in prices.PriceModel(measured).errors().values() for e in errors]
    priced = prices.price_plan(plan, measured, config["record"], config["results"])
    claims = {name: sum(c["experiment"] == name for c in config["claims"].values()) for name in plan.experiments}
    print("\n".join(listing(priced, claims)))
    print(f"\nmeasured runs: {len(measured)}; usual error of a predicted time: {_factor(prices.factor(model_errors))}")
    if args.hours is not None:
        print("\n".join(bought(prices.affordable(priced, args.hours), claims, args.hours)))


def listing(priced: Sequence["Price"], claims: dict[str, int]) -> list[str]:
    """A line for each experiment, and one for all."""
    from agglearn.text import bytes_text

    head = ("experiment", "runs", "CPU min", "not recorded", "CPU min", "memory", "disk", "error", "claims", "")
    rows = [head]
    for p in priced:
        is_priced = p.unknown < p.runs
        notes = [f"{p.unknown} runs without any measurement"] if p.unknown else []
        notes += [f"{p.over} runs reach the time limit"] if p.over else []
        rows.append(
            (
                p.experiment,
                str(p.runs),
                _minutes(p.seconds) if is_priced else "?",
                str(p.missing),
                _minutes(p.missing_seconds) if is_priced else "?",
                bytes_text(round(p.memory)) if p.memory else "?",
                bytes_text(round(p.disk)),
                _factor(p.error),
                str(claims[p.experiment]),
                ", ".join(notes),
            )
        )
    rows.append(
        (
            "all", str(sum(p.runs for p in priced)), _minutes(sum(p.seconds for p in priced)),
            str(sum(p.missing for p in priced)), _minutes(sum(p.missing_seconds for p in priced)),
            bytes_text(round(max((p.memory or 0.0 for p in priced), default=0.0))),
            bytes_text(round(max((p.disk for p in priced), default=0.0))),
            "", str(sum(claims.values())), "",
        )
    )  # fmt: skip
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1]]).rstrip() for row in rows
    ]


def bought(chosen: Sequence["Price"], claims: dict[str, int], hours: float) -> list[str]:
    """Lines on what some CPU hours buy."""
    spent = sum(p.missing_seconds for p in chosen)
    n = sum(claims[p.experiment] for p in chosen)
    return [
        f"{hours:g} CPU hours buy {len(chosen)} experiments with {n} claims in {_minutes(spent)} CPU minutes: "
        f"{', '.join(p.experiment for p in chosen) or 'none'}"
    ]


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f}"


def _factor(value: float | None) -> str:
    return "?" if value is None else f"×/÷ {value:.2g}"
