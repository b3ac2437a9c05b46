"""A server of the test's own, and a project folder that fetches from it."""

import os

import pytest
from fetched_places import Place
from hosts import running

from agglearn.datasets import downloading


@pytest.fixture
def host(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(downloading, "WAITS", (0.01, 0.02))
    monkeypatch.setattr(downloading, "LONGEST_WAIT", 0.03)
    with running() as host:
        yield host


@pytest.fixture
def place(tmp_path, host):
    return Place(tmp_path, host)
