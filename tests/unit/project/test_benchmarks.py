"""Benchmarks treat all methods alike."""

import importlib
from collections import Counter
from types import SimpleNamespace

from samples import ROOT


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
