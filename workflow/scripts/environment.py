"""Write environment.yml, the conda twin of the lock: the direct dependencies of pyproject.toml at the lock's versions."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_CHANNELS = {"opendp"}  # its maintainers publish on the Python index only
HEAD = """# Made by `make lock`. Same direct dependencies and versions as requirements.lock. The channels could not be reached where
# this file was made, so no solver has tried it. Where a channel lacks a version, use `make` or `pip install` instead.
name: agglearn
channels: [conda-forge, bioconda, nodefaults]
dependencies:
  - python>=3.11
"""


def extras() -> list[str]:
    """Extras that the lock holds, as the Makefile has them."""
    return re.search(r"^EXTRAS = (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()


def pins() -> dict[str, str]:
    """Version of every direct dependency, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = [*project["dependencies"], *(b for extra in extras() for b in project["optional-dependencies"][extra])]
    names = sorted(re.match(r"[A-Za-z0-9-]+", b).group() for b in bounds)
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.M))
    return {n: locked[n] for n in names}


def text() -> str:
    """Content of environment.yml."""
    conda = [f"  - {name}={version}\n" for name, version in pins().items() if name not in NOT_IN_CHANNELS]
    pip = [f"      - {name}=={version}\n" for name, version in pins().items() if name in NOT_IN_CHANNELS]
    return HEAD + "".join(conda) + "  - pip\n  - pip:\n" + "".join(pip)


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(text())
