"""What MLflow should hold of the small world."""

import collections
import json
from pathlib import Path

import mlflow
import pandas as pd
import pytest
import world as w
from mlflow.entities import Run
from world_project import State, cell_of


def run_name(method, prior, size, end: str) -> str:
    """Name of a run in MLflow: what is varied stands in it."""
    own = [f"prior = {prior:g}"] if method == "rates" else []
    return " · ".join([w.METHOD_NAMES.get(method, method), "People & <co>", f"rows = {size}", *own, end])


def check_run(state: State, client: mlflow.MlflowClient, run: Run) -> None:
    """What one seed's run says of itself: its name, times, tags, parameters, numbers and data."""
    record = state.runs[run.data.tags["agglearn.run"]]
    method, prior, size, seed = cell = cell_of(record)
    status, reason = state.world.status(method, size, seed)
    assert run.info.run_name == run_name(method, prior, size, f"seed {seed}")
    began, ended = run.info.start_time / 1000, run.info.end_time / 1000
    assert ended == pytest.approx(record["ended"], abs=0.002)
    assert 0 <= ended - began < state.outcome.seconds
    shown = {"ok": "FINISHED", "stopped": "FINISHED", "unavailable": "SCHEDULED", "failed": "FAILED"}
    assert run.info.status == shown[status]
    tags = {k: run.data.tags.get(k) for k in ("dataset", "method", "status", "agglearn.fingerprint")}
    assert tags == {
        "dataset": "people",
        "method": method,
        "status": status,
        "agglearn.fingerprint": record["fingerprint"],
    }
    assert run.data.tags.get("mlflow.note.content", "") == reason
    own = {"rates": {"prior": str(prior)}, "base": {"column": ""}, "exacting": {"least": str(w.LEAST)}}.get(method, {})
    assert (
        run.data.params == {"dataset": "people", "method": method, "seed": str(seed), "dataset.rows": str(size)} | own
    )
    check_metrics(client, run, state.world.values[cell], state.results / "runs" / record["run"])
    [data] = [used.dataset for used in run.inputs.dataset_inputs]
    assert (data.name, data.digest) == ("people", record["data"]["digest"])
    assert json.loads(data.profile) == {"title": "People & <co>", "num_rows": len(w.people()), "num_columns": 3}
    assert bool(run.outputs and run.outputs.model_outputs) == (status == "ok")


def check_mean(state: State, run: Run, cell: tuple, records: list[dict]) -> None:
    """The mean of a cell over its seeds, with its interval, and what is printed of it."""
    assert run.info.run_name == run_name(*cell, "mean of 3 seeds")
    assert run.info.start_time == run.info.end_time
    assert "/agglearn/spike.html#world" in run.data.tags["mlflow.note.content"].splitlines()[0]
    statuses = [state.world.status(cell[0], cell[2], seed)[0] for seed in w.SEEDS]
    shown = next(s for s in ("ok", "failed", "unavailable", "stopped") if s in statuses)
    assert (run.data.tags["status"], run.data.metrics.pop("n_seeds")) == (shown, statuses.count("ok"))
    expected = {}
    for measure, estimate in estimates(state, cell, records).items():
        bounds = {} if estimate.half is None else {"low": estimate.low, "high": estimate.high}
        expected |= {f"{measure}_{k}": v for k, v in ({"mean": estimate.mean} | bounds).items()}
    assert run.data.metrics == pytest.approx(expected)
    check_printed(state, run, cell)


def estimates(state: State, cell: tuple, records: list[dict]) -> dict[str, w.Estimate]:
    """Measure without keys → mean and interval over seeds."""
    method, prior, size = cell
    names = ["nllh", "auc", "log_loss", "right"]
    names += [f"{name}_minus_base" for name in names] if method != "base" else []
    values = {name: state.world.seeds(method, prior, size, name) for name in names}
    for record in records:
        rows = pd.read_parquet(state.results / f"runs/{record['run']}/measurements.parquet")
        for row in rows[rows["measure"].isin(["seconds", "elapsed"]) & rows["step"].isna()].itertuples():
            values.setdefault(row.measure, []).append(row.value)
    return {name: w.Estimate.of(each) for name, each in values.items() if each}


def check_printed(state: State, run: Run, cell: tuple) -> None:
    """The tag on printed numbers, and the lines on them in the description."""
    verdicts = []
    for measure in w.MEASURES:
        for keys in map(w.colour_keys, (None, *w.COLOURS)):
            if entry := w.printed_for(*cell, measure, keys):
                verdicts.append(w.compared(w.cell(state.world, *cell, measure, keys).estimate, entry))
                assert (
                    f"; printed {entry['value']:g} ({entry['place']}): {verdicts[-1]}\n"
                    in run.data.tags["mlflow.note.content"] + "\n"
                )
    words = collections.Counter(verdict.partition(" by ")[0] for verdict in verdicts)
    shown = run.data.tags.get("printed", "")
    assert set(shown.split(", ")) == (
        {f"{word} {n}" for word, n in words.items()} if len(words) > 1 else set(words) or {""}
    )


def check_metrics(client: mlflow.MlflowClient, run: Run, measured: dict[tuple, float], folder: Path) -> None:
    """Every number without keys, with its steps; the last is that of the table."""
    expected = {k: v for k, v in measured.items() if k[1] is None}
    if measured:
        rows = pd.read_parquet(folder / "measurements.parquet").query("step != step and keys != keys")
        expected |= {
            (m, None, None): v
            for m, v in zip(rows["measure"], rows["value"], strict=True)
            if m in ("seconds", "elapsed")
        }
    assert set(run.data.metrics) == {measure for measure, *_ in expected}
    for measure in run.data.metrics:
        history = client.get_metric_history(run.info.run_id, measure)
        curve = [(step, v) for (m, _, step), v in expected.items() if m == measure and step is not None]
        final = expected[measure, None, None]
        assert run.data.metrics[measure] == pytest.approx(final)
        assert sorted((m.step, m.value) for m in history) == [
            (step, pytest.approx(v)) for step, v in sorted([*curve, (curve[-1][0] if curve else 0, final)])
        ]
