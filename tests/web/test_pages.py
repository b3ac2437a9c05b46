"""MLflow's pages as a browser shows them. A screenshot is kept in results/screenshots/."""

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mlflow
from browser import Visitor
from hosts import free_port


def test_mlflow_pages(project):
    port, path = free_port(), f"{Path(sys.executable).parent}:/usr/bin:/bin"
    command = [sys.executable, "-m", "agglearn_workflow.tracking.ui", str(port)]
    environment = {"PYTHONPATH": str(project.folder / "src"), "PATH": path, "HOME": "/tmp"}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd=project.folder, env=environment, **silent)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        client = mlflow.MlflowClient(f"sqlite:///{project.results}/mlflow.db")
        number = client.get_experiment_by_name("maxent_table4").experiment_id
        url, visitor = f"http://127.0.0.1:{port}/#/experiments/{number}/runs", Visitor(project.folder)
        visitor.shot(url, "mlflow.png", 1300, 2000)
        assert "Best two features · Adult · mean of" in visitor.dom(url, budget=15_000)
    finally:
        server.terminate()
        server.wait(20)
