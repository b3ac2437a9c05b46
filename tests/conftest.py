"""What several tests start from."""

import gc
import os
import sys
import urllib.request

# Several workers share the cores, and threads that wait for a core take as much of it as those that compute. Tests of
# threads start processes of their own. This comes before any import of a numerical library.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import pandas as pd
import pytest
from samples import ROOT, Project, people

sys.path.insert(0, str(ROOT / "src"))


gc.disable()  # while tests are collected: nearly all that is made then stays


def pytest_collection_finish():
    """What was collected stays to the end; no later search for garbage looks at it."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """With several workers files with slow tests come first, so that no long file is left at the end."""
    if not hasattr(config, "workerinput"):
        return
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def no_lasting_proxies():
    """urllib keeps the proxies of its first request for the life of a process, also those that a test has set."""
    urllib.request.install_opener(None)


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def toy() -> pd.DataFrame:
    """Table 1 of Gilotte et al. 2022."""
    columns = {"Feature 1": list("12121"), "Feature 2": list("BABBA"), "Feature 3": list("abbab")}
    return pd.DataFrame(columns | {"label": [1, 1, 0, 1, 0]}).astype({"Feature 1": "category"})


@pytest.fixture
def records() -> pd.DataFrame:
    return people()
