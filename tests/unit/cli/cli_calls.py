"""Calls of the command line within a test's process."""

from pathlib import Path

import pandas as pd

from agglearn import storage
from agglearn.cli import main


def state(folder: Path) -> dict:
    """Content of everything below a folder; None is that of a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def run(*arguments: str) -> int:
    """Exit status of a command."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code


def call(line: str) -> int:
    """Exit status of a command, whose words stand between spaces."""
    return run(*line.split())


def told(printed, line: str):
    """What a command prints that must end well, on standard output (`out`) and beside it (`err`)."""
    printed.readouterr()
    assert call(line) == 0
    return printed.readouterr()


def refuse(printed, line: str | list[str], warnings: int = 0) -> tuple[int, str]:
    """Exit status, and the line that a command prints that must fail. It prints nothing else, but for stated warnings before
    the line, and the current folder stays as it was."""
    before = state(Path())
    printed.readouterr()
    status = run(*(line.split() if isinstance(line, str) else line))
    out, errors = printed.readouterr()
    *warned, error = errors.splitlines(keepends=True)
    assert (out, len(warned), error[-1]) == ("", warnings, "\n"), errors
    assert error.startswith("agglearn: ")
    assert state(Path()) == before
    return status, error


def check_refusal(printed, line: str, status: int, *words: str, warnings: int = 0) -> str:
    """Check the exit status of a command that must fail, and that its line, which is returned, has these words."""
    found, error = refuse(printed, line, warnings)
    assert found == status, error
    assert [word for word in words if word not in error] == [], error
    return error


def write_runs(folder: Path, experiment: str, n: int) -> None:
    """Finished runs of an experiment in a results folder, one per seed."""
    settings = {"title": "A trial", "source": "maxent", "methods": {"m": {}}, "measures": ["nllh"], "reported": []}
    record = {"experiment": experiment, "dataset": "d", "observation": "tables", "method": "m", "status": "ok", "reason": None,
              "dataset_params": "{}", "observation_params": "{}", "params": "{}"}  # fmt: skip
    config = {"scale": "smoke", "experiment": settings}
    made = {"commit": "c", "began": 1700000000.5, "ended": 1700000002.75, "config": config}
    row = {"measure": "nllh", "keys": None, "step": None, "unit": "", "tested": "t", "overlap": 0.0}
    for seed in range(n):
        own = record | {"run": f"{experiment}{seed}", "seed": seed}
        run = folder / f"runs/{own['run']}"
        storage.write_json(run / "run.json", own | made | {"fingerprint": f"f{seed}"})
        pd.DataFrame([own | row | {"value": seed / 2}]).to_parquet(run / "measurements.parquet")
