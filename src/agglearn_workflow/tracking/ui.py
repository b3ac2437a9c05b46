"""`make ui`: MLflow on the runs of this project, with the links that lead to them and the site beside them."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import yaml

from agglearn_workflow.runs.isolation import die_with_parent
from agglearn_workflow.tracking.receipts import SITE, SQLITE

SITE_FOLDER = "AGGLEARN_SITE"  # variable of the environment that names the site's folder to the server
SETTINGS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # nothing here needs it


def main() -> None:
    """Print a link per experiment and serve MLflow until a signal or the caller's death. Argument: [port]."""
    die_with_parent(signal.SIGTERM)
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    uri = config["tracking"]["uri"]
    if not uri.startswith(SQLITE):
        sys.exit(f"agglearn: runs are sent to {uri}; open it in a browser")
    if not Path(uri.removeprefix(SQLITE)).exists():
        sys.exit("agglearn: no runs yet; make them with `make reproduce`")
    port = port_of(sys.argv[1] if len(sys.argv) > 1 else "5000")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            sys.exit(f"agglearn: port {port} is in use; take another one: make ui PORT={port + 1}")
    print_links(uri, port)
    serve(uri, port, f"{config['results']}/site")


def port_of(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 2**16):
        sys.exit(f"agglearn: port {text!r} is not a number from 1 to 65535; for example: make ui PORT=5001")
    return int(text)


def print_links(uri: str, port: int) -> None:
    import mlflow

    mlflow.set_tracking_uri(uri)
    papers = yaml.safe_load(Path("config/references.yaml").read_text())["papers"]
    sources: dict[str, list] = {}
    for e in mlflow.search_experiments(filter_string="name != 'Default'", order_by=["name ASC"]):
        sources.setdefault(e.tags.get("source", "others"), []).append(e)
    for source in sorted(sources, key=lambda name: ([*papers, name].index(name), name)):
        print(papers.get(source, {}).get("title", source))
        for e in sources[source]:
            print(f"  {e.name}: http://127.0.0.1:{port}/#/experiments/{e.experiment_id}/runs")
    print("Ctrl-C ends it.", flush=True)


def create_app() -> Any:
    """MLflow's server with the site beside it. `mlflow server --app-name agglearn` finds it among entry points."""
    from flask import send_from_directory
    from mlflow.server import app

    folder = Path(os.environ.get(SITE_FOLDER, "results/site")).resolve()
    app.add_url_rule(f"{SITE}/<path:name>", "agglearn", lambda name: send_from_directory(folder, name))
    return app


def serve(uri: str, port: int, site: str) -> None:
    """Become MLflow's server. It ends with the caller, and what it has started ends with it."""
    # For one person. The app extends MLflow's, which is one of Flask: gunicorn serves those.
    served = [f"--backend-store-uri={uri}", "--host=127.0.0.1", f"--port={port}", "--workers=1"]
    app = ["--app-name=agglearn", "--gunicorn-opts=--log-level=warning"]
    environment = os.environ | SETTINGS | {SITE_FOLDER: site}
    os.execve(sys.executable, [sys.executable, "-m", "mlflow", "server", *served, *app], environment)


if __name__ == "__main__":
    main()
