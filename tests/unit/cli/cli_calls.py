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
    settings = {"title": "A trial", "source": "maxent", "methods": {"m": {}}, "measures": ["nllh"], "reported": []}
    record = {"experiment": experiment, "dataset": "d", "observation": "tables", "method": "m", "status": "ok", "reason": None,
              "dataset_params": "{}", "observation_params": "{}", "params": "{}"}  # fmt: skip
    made = {
        "commit": "c",
        "began": 1700000000.5,
        "ended": 1700000002.75,
        "config": {"scale": "smoke", "experiment": settings},
    }
    for seed in range(n):
        own = record | {"run": f"{experiment}{seed}", "seed": seed}
        run = folder / f"runs/{own['run']}"
        storage.write_json(run / "run.json", own | made | {"fingerprint": f"f{seed}"})
        row = {
            "measure": "nllh",
            "keys": None,
            "step": None,
            "value": seed / 2,
            "unit": "",
            "tested": "t",
            "overlap": 0.0,
        }
        pd.DataFrame([own | row]).to_parquet(run / "measurements.parquet")
