"""Print the requirements of one extra of pyproject.toml: `python workflow/scripts/extra.py peers`."""

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]

if __name__ == "__main__":
    print(*PROJECT["optional-dependencies"][sys.argv[1]])
