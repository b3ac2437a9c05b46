"""The site and MLflow's pages as a browser shows them. Screenshots are kept in results/screenshots/."""

import copy
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import mlflow
import pytest
from project import CHAIN, SPIKE_DATA, Project, adult_like, bank_like

SHOTS = Path(__file__).resolve().parents[2] / "results/screenshots"
BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=15000",
]  # fmt: skip


def page(url: str, shot: str) -> str:
    """The page's DOM after its scripts have run; a screenshot beside it."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        base = [BROWSER, *QUIET, f"--user-data-dir={profile}", "--window-size=1300,2000"]
        subprocess.run([*base, f"--screenshot={SHOTS / shot}", url], capture_output=True, timeout=120)
        return subprocess.run([*base, "--dump-dom", url], capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    if BROWSER is None:
        pytest.fail("no Chromium; `make web` installs it")
    made = Project(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("cache"), shipped=["maxent_table4"])
    made.write_data("adult", "adult", "adult.data", adult_like(500, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(250, 2, test=True))
    made.write_data("bank", "bank_marketing", "bank-additional-full.csv", bank_like(600, 3))
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN})
    made.overlay["run"] = ["maxent_table4", "spike_chain"]
    assert made.run().status == 0
    return made


def test_site(project):
    index = page(f"file://{project.results}/site/index.html", "index.png")
    assert "Maximum entropy from contingency tables" in index
    assert "maxent.html#maxent_table4" in index  # a link to its table
    source = page(f"file://{project.results}/site/maxent.html", "maxent.png")
    assert "Best two features" in source
    assert "0.416" in source  # printed number beside ours
    data = page(f"file://{project.results}/site/data.html", "data.png")
    assert "doi:10.24432/C5XW20" in data
    assert (SHOTS / "maxent.png").stat().st_size > 20_000


def test_mlflow_pages(project):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "agglearn_workflow.tracking.ui", str(port)]
    env = {
        "PYTHONPATH": str(project.folder / "src"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": "/tmp",
    }
    server = subprocess.Popen(
        command, cwd=project.folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        client = mlflow.MlflowClient(f"sqlite:///{project.results}/mlflow.db")
        eid = client.get_experiment_by_name("maxent_table4").experiment_id
        dom = page(f"http://127.0.0.1:{port}/#/experiments/{eid}/runs", "mlflow.png")
        assert "Best two features · Adult · mean of" in dom
    finally:
        server.terminate()
        server.wait(20)
