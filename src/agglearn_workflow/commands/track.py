"""Send the runs of a results folder, for example one copied from another machine, to an MLflow store.

example:
  agglearn track --from results/ --to http://localhost:5000

reads   the runs in the folder DIR, finished or failed.
writes  each run once into the store, in an experiment of MLflow for each experiment of the workflow. Runs that are in the store
        stay. After an interruption the same command goes on.
prints  a line per experiment.
"""

import argparse
import contextlib
import re
import sys
from pathlib import Path

from agglearn.errors import ConfigError, DataError
from agglearn.storage import read_json

HELP = "send the runs of a results folder to MLflow"
STOPPED = "the same command goes on where it stopped"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--from", dest="folder", required=True, metavar="DIR", help="results folder of the workflow")
    command.add_argument("--to", dest="uri", required=True, metavar="URI", help="sqlite:///FILE or http(s)://SERVER")


def run(args: argparse.Namespace) -> None:
    from agglearn.optional import require

    require("mlflow", "workflow")
    if not re.fullmatch(r"sqlite:///.+|https?://[^/]+.*", args.uri):
        raise ConfigError(f"--to: {args.uri!r} is not allowed; give sqlite:///FILE, http://SERVER or https://SERVER")
    folder = Path(args.folder)
    runs = sorted(map(read_json, folder.glob("runs/*/run.json")), key=lambda facts: facts["ended"])
    if not runs:
        raise DataError(f"{folder}: no runs here; give a results folder of the workflow, which has runs/<key>/run.json")
    from agglearn_workflow.tracking.entry import read_contents
    from agglearn_workflow.tracking.push import send

    latest = {facts["experiment"]: facts["config"]["experiment"] for facts in runs}  # as its latest run recorded it
    for name, experiment in sorted(latest.items()):
        keys = [facts["run"] for facts in runs if facts["experiment"] == name]
        try:
            with contextlib.redirect_stdout(sys.stderr):  # of MLflow
                counts = send(args.uri, read_contents(name, experiment, folder, keys))
        except Exception as error:
            raise DataError(f"{args.uri}: {name} was not sent whole: {error}; the same command goes on") from None
        print(f"{name}: {counts['sent']} sent, {counts['kept']} there already", flush=True)
