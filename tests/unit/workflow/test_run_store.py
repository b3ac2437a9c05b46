"""Runs of a batch: what is reused, what is computed again, and that no run sees what another one left behind."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from agglearn import storage
from agglearn_workflow import digests
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import write_batch
from agglearn_workflow.plan import Run, canonical
from agglearn_workflow.runs import products
from agglearn_workflow.runs.batches import Store
from agglearn_workflow.runs.execution import Source


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A folder for results; `planted_methods.py` is followed like code under `code:`."""
    monkeypatch.setattr(digests, "ROOTS", [*digests.ROOTS])
    digests.add_root(Path(__file__).parent)
    return tmp_path


def planned(seeds, method="Drawing", measures=("numpy", "python", "runs", "state"), keep_model="none") -> list[Run]:
    classes = {"class": method, "task": "Reading", "type": "Nothing"}
    spec = {key: f"planted_methods.{name}" for key, name in classes.items()}
    spec |= {"measures": list(measures), "keep_model": keep_model, "ignore_noise": False}
    return [Run("trial", "none", "{}", "n", "{}", method, "{}", s, canonical(spec)) for s in seeds]


def observed(slot) -> None:
    """What the stage before leaves of an observation that is nothing."""
    slot.mkdir()
    storage.write_json(slot / "units.json", {"tested": "0123", "overlap": 0.25})


SOURCE = Source("ok", None, "recipe", "content", None, {})


def fit_batch(runs, source, observe, folder, reuse=True, archived=None) -> None:
    """As `batches.fit` does, with `observe` in the place of `observe_runs`."""
    store = Store(folder / "results", {"none": source}, {})
    missing = store.recall(runs, archived or {}) if reuse else runs
    store.compute(missing, folder, observe(missing), 60)
    write_batch({run: store.rows(run) for run in runs}, folder / "batch.parquet")


def compute(folder, runs, source=SOURCE, **more) -> pd.DataFrame:
    """Fit a batch whose runs learn nothing, and return its measurements."""

    def observe(missing):
        keys = {run.slot for run in missing}
        build = lambda out: [observed(out / key) for key in keys] and None  # noqa: E731
        return {"none": products.build_product(folder / "none", build)} if missing else {}

    fit_batch(runs, source, observe, folder, **more)
    return pd.read_parquet(folder / "batch.parquet")


def fitted(folder, runs, **more) -> pd.DataFrame:
    """Measurements of a batch; a row per run."""
    rows = compute(folder, runs, **more)
    assert set(rows.status) == {"ok"}, rows.reason.tolist()
    assert set(rows.tested) == {"0123"}
    assert set(rows.overlap) == {0.25}
    return rows.pivot(index="seed", columns="measure", values="value")


def record(folder, run: Run) -> dict:
    return storage.read_json(folder / "results/runs" / run.key / "run.json")


def states_of(rows: pd.DataFrame) -> list[tuple]:
    return [(r.status, r.reason) for r in rows.drop_duplicates("run").itertuples()]


def written(folder) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in folder.glob("results/runs/*/run.json")}


@pytest.mark.slow
def test_each_run_has_its_own_random_numbers_and_nothing_that_others_leave_behind(code):
    rows = fitted(code, planned(range(8)))
    assert all(rows[name].nunique() == 8 for name in ("numpy", "python", "state"))
    assert set(rows["runs"]) == {1}
    drawn = ["numpy", "python", "runs", "state"]  # the others are times
    assert fitted(code / "other", planned([3])).loc[3, drawn].equals(rows.loc[3, drawn])


def test_a_run_that_failed_is_tried_again_and_good_ones_are_not(code, monkeypatch):
    runs = [*planned([0, 1], "Failing", ["runs"]), *planned([2])]

    failed, ok = ("failed", "ValueError: not yet"), ("ok", None)
    stamps = []
    for mended, states in ((False, [failed, failed, ok]),) * 2 + ((True, [ok] * 3),) * 2:
        if mended:
            monkeypatch.setenv("MENDED", "1")
        assert states_of(compute(code, runs)) == states
        stamps.append(written(code))
    tried_again = [{k for k in after if after[k] != before[k]} for before, after in itertools.pairwise(stamps)]
    assert tried_again == [{r.key for r in runs[:2]}] * 2 + [set()]


def test_a_model_that_cannot_be_saved_costs_no_measurement(code):
    runs = planned([0, 1], "Unsavable", keep_model="first_seed")
    assert fitted(code, runs)["runs"].tolist() == [1, 1]
    folders = [code / "results/runs" / run.key for run in runs]
    assert [record(code, run)["reason"] for run in runs] == [
        "its model could not be saved: TypeError: a lock cannot be saved",
        None,
    ]
    assert "a lock cannot be saved" in (folders[0] / "traceback.txt").read_text()
    assert not [folder for folder in folders if (folder / "model").exists()]


@pytest.mark.slow
@pytest.mark.parametrize("spoil", ["lost", "empty", "cut", "no rows"])
def test_a_run_without_its_measurements_is_computed_again(code, spoil):
    runs = planned(range(3))
    before, first = fitted(code, runs), written(code)
    path = code / "results/runs" / runs[1].key / "measurements.parquet"
    if spoil == "lost":
        path.unlink()
    elif spoil == "no rows":
        pd.read_parquet(path)[:0].to_parquet(path)
    else:
        path.write_bytes(path.read_bytes()[:200] if spoil == "cut" else b"")
    assert fitted(code, runs)["numpy"].tolist() == before["numpy"].tolist()
    after = written(code)
    assert [key for key in after if after[key] != first[key]] == [runs[1].key]


@pytest.mark.slow
def test_without_reuse_all_runs_are_computed_anew(code, capsys):
    runs = planned(range(3))
    before, first = fitted(code, runs), written(code)
    capsys.readouterr()
    after = fitted(code, runs, reuse=False, archived=archive_of(code, runs))
    assert "archive" not in capsys.readouterr().out
    assert after["numpy"].tolist() == before["numpy"].tolist()
    second = written(code)
    assert [key for key in first if second[key] == first[key]] == []
    fitted(code, runs)
    assert written(code) == second


def test_runs_of_other_data_are_computed_anew(code):
    """Of other records, or of an entry or a class of the data set that has changed since."""
    runs = planned([0])
    fitted(code, runs)
    for change in ({"content": "other"}, {"recipe": "other"}):
        first = written(code)
        fitted(code, runs, source=SOURCE._replace(**change))
        assert set(written(code).values()).isdisjoint(first.values())


def test_without_data_finished_runs_stay_and_others_are_not_there(code):
    """Results of data that are gone since still count while their recipes are today's. What is missing gets the data's status."""
    fitted(code, planned([0]))
    first = written(code)
    gone = Source("unavailable", "no mirror has it", SOURCE.recipe, None, None, {})

    def batch(source) -> list[tuple]:
        manifest = {"status": source.status, "reason": source.reason, "content": {}}
        fit_batch(planned([0, 1]), source, lambda runs: {"none": manifest}, code)
        return states_of(pd.read_parquet(code / "batch.parquet"))

    assert batch(gone) == [("ok", None), ("unavailable", gone.reason)]
    assert first.items() <= written(code).items()
    assert batch(gone._replace(recipe="of another entry")) == [("unavailable", gone.reason)] * 2


def archive_of(folder, runs) -> dict:
    return store.of_results(folder / "results", runs)


def test_a_run_that_holds_is_taken_from_the_archive(code, capsys):
    runs = planned(range(3))
    before = fitted(code, runs)
    kept = archive_of(code, runs)
    assert len(kept) == 3
    other = code / "other"
    after = fitted(other, runs, archived={key: kept[key] for key in list(kept)[:2]})
    assert "1 of 3 runs to compute, 2 taken from the archive, the rest reused" in capsys.readouterr().out
    assert after["numpy"].tolist() == before["numpy"].tolist()
    assert record(code, runs[0]) == record(other, runs[0])
    first = written(other)
    assert fitted(other, runs)["numpy"].tolist() == before["numpy"].tolist()
    assert written(other) == first


def test_an_archived_run_of_other_code_or_another_observation_is_computed(code, capsys):
    runs = planned(range(2))
    fitted(code, runs)
    changed = archive_of(code, runs)
    for run in changed.values():
        run.facts["fingerprint"] = "of another observation"
    fitted(code / "other", runs, archived=changed)
    assert "2 of 2 runs to compute, 0 taken" in capsys.readouterr().out
    assert store.of_results(code / "results", planned(range(2), measures=("numpy",))) == {}


def test_a_run_whose_model_is_kept_is_computed_and_says_so(code, capsys):
    runs = planned(range(2), "Unsavable", keep_model="first_seed")
    fitted(code, runs)
    fitted(code / "other", runs, archived=archive_of(code, runs))
    printed = capsys.readouterr().out
    assert f"run {runs[0].key} is in the archive, and is computed because its model is kept" in printed
    assert "1 of 2 runs to compute, 1 taken from the archive" in printed


def test_failed_runs_are_no_part_of_an_archive(code):
    runs = planned([0], "Failing", ["runs"])
    compute(code, runs)
    assert archive_of(code, runs) == {}


def test_a_run_states_its_cost(code):
    """A method that spins for a known CPU time and holds a known amount of memory."""
    runs = planned([0], "Costly")
    fitted(code, runs)
    facts = record(code, runs[0])
    assert facts["versions"]["numpy"] == np.__version__
    assert 0.2 <= facts["cpu_seconds"] <= facts["ended"] - facts["began"] + 0.1
    cheap = planned([0])
    fitted(code, cheap)
    assert facts["peak_memory"] - record(code, cheap[0])["peak_memory"] > 90e6
