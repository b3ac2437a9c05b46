"""The code blocks of the README, and how each is run: as a user would, but for what takes long."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from samples import ROOT

README = (ROOT / "README.md").read_text()
LONG = ("make", "snakemake", "pip")  # commands that are tried without being carried out


class Block(NamedTuple):
    """A code block: `sh` or `python`, and its text."""

    language: str
    text: str

    @property
    def is_long(self) -> bool:
        """Whether the block starts a command of LONG."""
        return self.language == "sh" and self.text.startswith(LONG)

    def run(self, folder: Path, environ: dict[str, str]) -> str:
        """Run it in a folder; returns its output. An error of any line is an error."""
        program = (
            ["bash", "-euo", "pipefail", "-c"]
            if self.language == "sh"
            else ["python", "-W", "error::FutureWarning", "-c"]
        )
        finished = subprocess.run([*program, self.text], cwd=folder, env=environ, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout


def blocks() -> list[Block]:
    """All code blocks, in their order."""
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)]


def commands(block: Block) -> list[str]:
    """Commands of a block without comments, continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line.split(" #")[0].strip() for line in lines]


def minute() -> list[Block]:
    """The blocks on data inside scikit-learn: Python, then the command line."""
    return [b for b in blocks() if not b.is_long]


def check_minute(folder: Path, outputs: list[str]) -> None:
    """Whether the blocks of the first minute have printed and written what the README states."""
    assert outputs[0].strip() in minute()[0].text
    assert {p.name for p in folder.iterdir()} == {
        "train.csv", "new.csv", "tables", "model", "predictions.csv", "clusters.csv", "schema.yaml", "declared", "noisy", "private-model",
    }  # fmt: skip
    assert len((folder / "predictions.csv").read_text().split()) == len((folder / "new.csv").read_text().splitlines())
