"""`agglearn doctor`: what is installed, what the machine has, which sources of data answer."""

import argparse

HELP = "show versions, extras, machine and sources of data"
ABOUT = """Show what a report of a problem should contain: versions of Python and of the packages, extras that are installed or
missing, threads, memory, and which sources of data answer.

example:
  agglearn doctor

reads   the installed packages; in a folder with the workflow, the addresses under config/datasets and the folders under
        `mirrors`. It asks each host once for a few seconds and sends nothing about you or your data.
writes  nothing. A host that does not answer is no error: data can come from elsewhere, see `agglearn data`."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("--offline", action="store_true", help="do not ask any host")
    command.add_argument("--timeout", type=float, default=3.0, metavar="S", help="seconds per host (default: 3)")


def run(args: argparse.Namespace) -> None:
    """Print the report."""
    from agglearn.cli import diagnosis

    for title, lines in diagnosis.report(args.offline, args.timeout):
        print(title)
        print("".join(f"  {line}\n" for line in lines), end="", flush=True)
