"""`agglearn cite`: references of what a results folder used."""

from pathlib import Path

from agglearn.cli.project import project_config, project_options

HELP = "references of what a results folder used"
ABOUT = """References of the papers, data sets and software behind the results of the workflow.

example:
  agglearn cite results/

reads   the measurements and runs in the folder RESULTS (default: `results:` of the configuration), and the references in
        config/references.yaml and config/datasets/. Runs without a result do not count.
writes  one line per reference to standard output. Versions are those that the runs recorded."""


def options(command) -> None:
    """Options of the command."""
    command.add_argument("results", nargs="?", metavar="RESULTS", help="results folder of the workflow")
    project_options(command)


def run(o) -> None:
    """Print the references."""
    from agglearn.optional import require

    require("jsonschema", "workflow")
    from agglearn.reporting.references import references

    config = project_config(o.configfile)
    print("\n".join(references(config, Path(o.results or config["results"]))))
