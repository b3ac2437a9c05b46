"""Benchmarks treat all methods alike."""

import ast
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from samples import ROOT


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_of_ours_is_there(path):
    """Also inside functions, which no other test calls."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    for module, names in ((n.module, n.names) for n in nodes if n.module.startswith("agglearn")):
        package = importlib.import_module(module)
        for name in (alias.name for alias in names):
            assert hasattr(package, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module}.{name}"


def test_every_solver_is_timed_as_often_as_ours(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    collective = importlib.import_module("collective")
    timed = Counter()

    def infer(*problem, method="dual-newton", tol=1e-6, **options):
        timed[method] += tol > 1e-10  # the reference is not timed
        return SimpleNamespace(objective=1.0)

    monkeypatch.setattr(collective, "infer", infer)
    monkeypatch.setattr(collective, "world", lambda side, theta: ())
    monkeypatch.setattr(collective, "show", lambda title, rows: None)
    collective.beside_others(1.0)
    assert len(timed) == 7
    assert len(set(timed.values())) == 1, timed


def test_lines_of_a_benchmark_that_ended_well_are_kept(tmp_path):
    """A ratio above 1 is of a slower peer, the floor a share of our time. A benchmark that fails keeps nothing."""
    code = "from _common import compare\ncompare('fit', 2.0, 'NumPy', 6.0, 0.5, memory=1.5)\n"
    for name, end in (("done", ""), ("failed", "raise ValueError")):
        (tmp_path / f"{name}.py").write_text(code + end)
        path = os.environ | {"PYTHONPATH": f"{ROOT / 'benchmarks'}:{ROOT / 'src'}", "BENCH": str(tmp_path)}
        subprocess.run([sys.executable, tmp_path / f"{name}.py"], env=path, check=False, stderr=subprocess.DEVNULL)
    [line] = json.loads((tmp_path / "done.json").read_text())["lines"]
    assert (line["ratio"], line["floor_share"], line["memory"]) == (3.0, 0.25, 1.5)
    assert not list(tmp_path.glob("failed*.json"))


def test_make_bench_runs_what_has_peers():
    """The others measure accuracy, coverage or a device, and take their time."""
    plan = subprocess.run(["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = set(plan.partition("for name in ")[2].partition(";")[0].split())
    files = {path.stem: path.read_text() for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert named == {name for name, code in files.items() if "compare(" in code}
