"""The files of the project, and the configuration that a command reads."""

import argparse
import warnings
from collections.abc import Collection
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SHIPPED = PACKAGE / "project"  # in a wheel, where `setup.py` puts the files
TEMPLATES = PACKAGE / "templates"  # of pages and tables
SCHEMAS = "workflow/schemas"  # what every copy of the project has
SERVER = "http://127.0.0.1:5000"  # of `make ui`


def project_files() -> Path:
    """Folder with `Snakefile`, `config/`, …: a checkout, or a part of the package. Nothing is written there."""
    checkout = PACKAGE.parents[1]
    return checkout if (checkout / "Snakefile").is_file() else SHIPPED


def add_project_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--configfile", metavar="FILE", help="YAML laid over config/config.yaml, as with Snakemake")


def project_config(configfile: str | None, overrides: dict | None = None, targets: Collection[str] = ("all",)) -> dict:
    """The effective configuration here: of the current folder if it is a copy of the project, else of the files that this package
    belongs to. A wrong entry that no target needs is left out, with a warning."""
    from agglearn.optional import require

    require("pydantic", "workflow")
    from agglearn_workflow.config.loading import load, read_mapping, stack

    laid_over = read_mapping(Path(configfile)) if configfile else {}
    base = Path.cwd() if (Path.cwd() / SCHEMAS).is_dir() else project_files()
    config = load(base, stack(laid_over, overrides or {}), Path.cwd(), targets)
    for line, _ in config.pop("left_out"):
        warnings.warn(f"left out: {line}", stacklevel=2)
    return config
