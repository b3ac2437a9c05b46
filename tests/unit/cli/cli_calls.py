"""Calls of the command line within a test's process."""

from pathlib import Path

import pandas as pd

from agglearn import storage
from agglearn.cli import main


def state(folder: Path) -> dict:
    """Content of everything below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def run(*arguments: str) -> int:
    """Exit status of a command."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code


def write_runs(folder: Path, experiment: str, n: int) -> None:
    """Finished runs of an experiment in a results folder, one per seed."""
    config = {"scale": "smoke", "experiment": {"title": "A trial", "source": "maxent", "methods": {"m": {}}}}
    record = {"experiment": experiment, "dataset": "d", "observation": "tables", "method": "m", "status": "ok", "reason": None,
              "commit": "c", "dataset_params": "{}", "observation_params": "{}", "params": "{}", "began": 1700000000.5,
              "ended": 1700000002.75, "config": config}  # fmt: skip
    for seed in range(n):
        run = folder / f"runs/{experiment}{seed}"
        storage.write_json(run / "run.json", record | {"seed": seed, "fingerprint": f"f{seed}"})
        pd.DataFrame({"measure": ["nllh"], "item": [None], "step": [None], "value": [seed / 2]}).to_parquet(
            run / "measurements.parquet"
        )
