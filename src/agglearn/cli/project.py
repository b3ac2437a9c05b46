"""The project whose configuration a command reads."""

from pathlib import Path

from agglearn.errors import ConfigError

CONFIG = "config/config.yaml"


def project_options(command) -> None:
    """Options of the commands that read the configuration."""
    command.add_argument(
        "--configfile", metavar="FILE", help="YAML laid over config/config.yaml, as with `snakemake --configfile`"
    )


def project_root() -> Path:
    """The current folder if it is a project, else the checkout that this package runs from.

    Raises
    ------
    ConfigError : neither has a configuration.
    """
    for folder in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (folder / CONFIG).is_file():
            return folder
    raise ConfigError(f"there is no {CONFIG} here; run the command in a checkout of the project")


def project_config(configfile: str | None) -> dict:
    """The effective configuration of the project, with the files of `config/` and what is laid over them."""
    from agglearn.workflow.config import load, read_mapping

    return load(project_root(), read_mapping(Path(configfile)) if configfile else None)
