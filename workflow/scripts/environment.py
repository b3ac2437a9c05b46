"""Write environment.yml, the conda twin of the lock: the direct dependencies of pyproject.toml at the lock's versions."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ("workflow", "networks", "privacy", "generic", "dev")


def pins() -> dict[str, str]:
    """Version of every direct dependency, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(w for extra in LOCKED for w in extras[extra])]
    names = sorted(re.match(r"[A-Za-z0-9-]+", w).group() for w in wanted)
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.M))
    return {n: locked[n] for n in names}


def text() -> str:
    lines = [f"  - {name}={version}" for name, version in pins().items()]
    head = "# Made by `make lock`. Same direct dependencies and versions as requirements.lock.\nname: agglearn\n"
    channels = "channels: [conda-forge, bioconda, nodefaults]\n"
    return head + channels + "dependencies:\n  - python>=3.11\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(text())
