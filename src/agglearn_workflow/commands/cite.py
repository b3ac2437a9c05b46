"""References of the papers, data sets and software behind the results of the workflow.

example:
  agglearn cite results/

reads   the measurements and runs in the folder RESULTS (default: `results:` of the configuration), and the references in
        config/references.yaml and config/datasets/. Runs without a result do not count.
writes  one line per reference to standard output. Versions are those that the runs recorded.
"""

import argparse
from pathlib import Path

from agglearn_workflow.project import add_project_options, project_config

HELP = "references of what a results folder used"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("results", nargs="?", metavar="RESULTS", help="results folder of the workflow")
    add_project_options(command)


def run(args: argparse.Namespace) -> None:
    config = project_config(args.configfile)
    from agglearn_workflow.site.inventory import references

    print("\n".join(references(config, Path(args.results or config["results"]))))
