"""`make ui`: MLflow on the runs of this project, with the links that lead to them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import yaml

from agglearn.tracking.overview import SITE_FOLDER, TRAINING
from agglearn.workflow.lifeline import die_with_parent

GRACE = 5  # seconds that the server has to end by itself
SETTINGS = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # nothing here needs it, and its processes leave the group
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def main(argv: list[str] | None = None) -> None:
    """Print a link per source and serve MLflow until a signal or the caller's death. Arguments: [port]."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    die_with_parent(signal.SIGTERM)
    argv = sys.argv[1:] if argv is None else argv
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    uri = config["tracking"]["uri"]
    if not uri.startswith("sqlite:///"):
        sys.exit(f"agglearn: runs are sent to {uri}; open it in a browser")
    if not Path(uri.removeprefix("sqlite:///")).exists():
        sys.exit("agglearn: no runs yet; make them with `make reproduce`")
    port = port_of(argv[0] if argv else "5000")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            sys.exit(f"agglearn: port {port} is in use; take another one: make ui PORT={port + 1}")
    with contextlib.suppress(KeyboardInterrupt):
        print_links(uri, port)
        serve(uri, port, Path(config["results"]) / "site")


def port_of(text: str) -> int:
    """A port number from the command line. Anything else ends the process with one line."""
    if not (text.isdecimal() and 0 < int(text) < 2**16):
        sys.exit(f"agglearn: port {text!r} is not a number from 1 to 65535; for example: make ui PORT=5001")
    return int(text)


def print_links(uri: str, port: int) -> None:
    """Print for each source where the runs of its experiments will be, in the order of `config/references.yaml`."""
    import mlflow

    mlflow.set_tracking_uri(uri)
    numbers: dict[str, list[str]] = {}
    for e in mlflow.search_experiments():
        if e.name != "Default":
            numbers.setdefault(e.tags.get("source", "others"), []).append(e.experiment_id)
    papers = yaml.safe_load(Path("config/references.yaml").read_text())["papers"]
    for source in sorted(numbers, key=lambda name: ([*papers, name].index(name), name)):
        title = papers.get(source, {}).get("title", source)
        print(f"{title}: http://127.0.0.1:{port}/#{runs_page(sorted(numbers[source]))}")
    print("Ctrl-C ends it.", flush=True)


def runs_page(experiments: list[str]) -> str:
    """Place of MLflow's page with the runs of some experiments, in its view for model training."""
    if len(experiments) == 1:
        return f"/experiments/{experiments[0]}/runs?{TRAINING}"
    return f"/compare-experiments/s?experiments={quote(json.dumps(experiments, separators=(',', ':')))}&{TRAINING}"


def serve(uri: str, port: int, site: Path) -> None:
    """Run MLflow's server, with the site beside its pages, in a process group of its own, and end the whole group with this process.

    The server starts further processes, to which it does not pass signals on.
    """
    address = ["--backend-store-uri", uri, "--host", "127.0.0.1", "--port", str(port), "--app-name", "agglearn"]
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", *address, "--workers", "1"],  # for one person
        env=os.environ | SETTINGS | {SITE_FOLDER: str(site)},
        start_new_session=True,
    )
    try:
        sys.exit(server.wait())
    finally:
        end_group(server)


def end_group(leader: subprocess.Popen) -> None:
    """End all processes of a group: ask, wait `GRACE` seconds for the leader, then kill what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave half of them behind
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(GRACE)
        os.killpg(leader.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
