"""`make ui`: MLflow on the runs of this project, with the links that lead to them."""

import os
import socket
import sys
from pathlib import Path

import yaml


def main(argv=None) -> None:
    """Print a link per experiment and become the MLflow server. Arguments: [port]."""
    argv = sys.argv[1:] if argv is None else argv
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    uri = config["tracking"]["uri"]
    if not uri.startswith("sqlite:///"):
        sys.exit(f"agglearn: runs are sent to {uri}; open it in a browser")
    if not Path(uri.removeprefix("sqlite:///")).exists():
        sys.exit("agglearn: no runs yet; make them with `make reproduce`")
    port = int(argv[0]) if argv else 5000
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            sys.exit(f"agglearn: port {port} is in use; take another one: make ui ARGS=5001")
    import mlflow

    mlflow.set_tracking_uri(uri)
    found = [e for e in mlflow.search_experiments() if e.name != "Default"]
    for e in sorted(found, key=lambda e: e.name):
        print(f"{e.name}: http://127.0.0.1:{port}/#/experiments/{e.experiment_id}/runs")
    print("Ctrl-C ends it.", flush=True)
    command = ["mlflow", "server", "--backend-store-uri", uri, "--host", "127.0.0.1", "--port", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", *command])


if __name__ == "__main__":
    main()
