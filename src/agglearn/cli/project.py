"""The project whose configuration a command reads."""

import argparse
import warnings
from collections.abc import Collection
from pathlib import Path

from agglearn.local_files import project_files

SCHEMAS = "workflow/schemas"  # what every copy of the project has


def add_project_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the commands that read the configuration."""
    command.add_argument("--configfile", metavar="FILE", help="YAML laid over config/config.yaml, as with Snakemake")


def project_base() -> Path:
    """The current folder if it is a copy of the project, else the files of the project that this package belongs to."""
    return Path.cwd() if (Path.cwd() / SCHEMAS).is_dir() else project_files()


def project_config(configfile: str | None, overrides: dict | None = None, targets: Collection[str] = ("all",)) -> dict:
    """The effective configuration in the current folder, with its own `config/`, a file and overrides laid over it.

    An entry that is wrong and that no target needs is left out, with a warning.
    """
    from agglearn.workflow.config import load, read_mapping, stack

    laid_over = read_mapping(Path(configfile)) if configfile else {}
    config = load(project_base(), stack(laid_over, overrides or {}), Path.cwd(), targets)
    for line in config.pop("left_out"):
        warnings.warn(f"left out: {line}", stacklevel=2)
    return config
