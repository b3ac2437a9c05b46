"""Pruning deletes what no plan names, and only when told to; cleaning leaves downloads."""

import pytest
import yaml
from samples import ROOT

from agglearn import kernel_cache
from agglearn_workflow import pruning
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan

OLD = "agglearn-0123456789abcdef"  # compiled kernels of another state of the code


@pytest.fixture(scope="module")
def keys():
    """A key of each scale."""
    config = load(ROOT)
    plans = (Plan(config | {"run": "all", "scale": scale}) for scale in ("smoke", "default", "paper"))
    return [plan.runs("maxent_table4")[0].key for plan in plans]


@pytest.fixture
def project(tmp_path, monkeypatch, keys):
    """A results folder with what plans name, what they do not, and what is somebody's own; arguments that lead to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "results/kernels"))
    for name in (
        *(f"runs/{key}/run.json" for key in (*keys, "0123456789abcdef")),
        "observations/maxent_table4/adult/manifest.json", "observations/maxent_table4.json",
        "observations/gone.json", "smoke/observations/gone/adult/x.npy",
        f"kernels/{OLD}/maxent_0/kernels.sweep-1.py311.nbi", "cache/adult/adult.data", "tables/maxent_table4.csv", "notes.txt", "README.md",
    ):  # fmt: skip
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"run": ["maxent_xor"]}))
    return tmp_path / "results", ["--configfile", str(tmp_path / "mine.yaml")]


def files(folder) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


@pytest.mark.slow
def test_nothing_goes_without_a_second_word(project, capsys):
    results, arguments = project
    before = files(results)
    pruning.main(["prune", *arguments])
    assert files(results) == before
    said = capsys.readouterr().out
    for line in ("runs: 1,", "observations: 2,", "folders of compiled kernels: 1,", "make prune ARGS=--yes"):
        assert line in said


@pytest.mark.slow
def test_what_no_plan_names_goes(project, keys):
    results, arguments = project
    today = kernel_cache.today()
    (results / "kernels" / today).mkdir()
    (results / "kernels" / today / "kernel.nbi").write_text("code")
    before = files(results)
    pruning.main(["prune", "--yes", *arguments])
    assert before - files(results) == {
        "runs/0123456789abcdef/run.json", "observations/gone.json", "smoke/observations/gone/adult/x.npy",
        f"kernels/{OLD}/maxent_0/kernels.sweep-1.py311.nbi",
    }  # fmt: skip


@pytest.mark.slow
def test_cleaning_leaves_downloads_and_what_is_not_ours(project, capsys):
    results, arguments = project
    pruning.main(["clean", *arguments])
    assert {name for name in files(results) if "kernels" not in name} == {
        "cache/adult/adult.data",
        "notes.txt",
        "README.md",
    }
    assert "runs" in capsys.readouterr().out


def test_nothing_to_delete(project, monkeypatch, capsys):
    monkeypatch.setattr(pruning, "surplus", lambda config: {"runs": []})
    pruning.main(["prune", *project[1]])
    assert capsys.readouterr().out.endswith("agglearn: nothing to delete\n")
