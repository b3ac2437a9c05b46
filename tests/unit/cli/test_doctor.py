"""`agglearn doctor` tells what is installed and what answers, and no missing network makes it fail."""

import http.server
import threading
from types import SimpleNamespace

import pytest
import yaml

from agglearn import __version__, machine
from agglearn_workflow.commands import doctor

INSTALLED = """
numba<0.69,>=0.61
no-such-package>=1
opendp<0.17,>=0.13; extra == "privacy"
not-here-either[fast]<3,>=2; extra == "spark"
numba<1,>=0.70; extra == "spark"
agglearn[privacy,spark]; extra == "all"
"""


class Status(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(int(self.headers["Host"].startswith("localhost") and 503) or 404)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Status) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found.server_port
        found.shutdown()


def test_sources_that_answer(server, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "ask_index", lambda timeout: "answers")
    (tmp_path / "config/datasets").mkdir(parents=True)
    (tmp_path / "config/config.yaml").write_text("mirrors: [here, gone]\n")
    (tmp_path / "here").mkdir()
    routes = [f"http://127.0.0.1:{server}/a.csv", f"http://localhost:{server}/b.csv", "http://127.0.0.1:1/c.csv"]
    entry = {"homepage": "http://never.asked.invalid/", "files": {"x": {"routes": [{"url": r} for r in routes]}}}
    (tmp_path / "config/datasets/one.yaml").write_text(yaml.safe_dump(entry))
    lines = doctor.sources(tmp_path, timeout=5)
    assert lines[:3] == ["package index of pip: answers", "mirror here: present", "mirror gone: absent"]
    assert lines[3].startswith("http://127.0.0.1:1: no answer (")
    assert lines[4:] == [f"http://127.0.0.1:{server}: answers", f"http://localhost:{server}: no answer (status 503)"]


@pytest.mark.parametrize(("limit", "threads", "lines"), [
    (None, {}, ["one per core, no environment variable limits them", "16.1 GB"]),
    (2_500_000_000, {"OMP_NUM_THREADS": "3", "NUMBA_NUM_THREADS": "2"},
     ["OMP_NUM_THREADS=3, NUMBA_NUM_THREADS=2", "16.1 GB, limit of the control group 2.5 GB"]),
])  # fmt: skip
def test_every_line_of_the_report(monkeypatch, capsys, limit, threads, lines):
    """15 GiB are 16.1 GB; three of twelve cores."""
    versions = {"numba": "0.70.1", "opendp": "0.16.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise doctor.metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(doctor.metadata, "requires", {"agglearn": INSTALLED.strip().splitlines()}.get)
    monkeypatch.setattr(doctor.metadata, "version", version)
    for name in doctor.THREADS:
        monkeypatch.delenv(name, raising=False)
    for name, number in threads.items():
        monkeypatch.setenv(name, number)
    monkeypatch.setattr(machine, "cores", lambda: 3)
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 12)
    monkeypatch.setattr(machine, "physical_bytes", lambda: 15 * 2**30)
    monkeypatch.setattr(machine, "cgroup_limit", lambda: limit)
    for name, text in {"python_version": "3.11.7", "system": "Linux", "release": "6.1", "machine": "x86_64"}.items():
        monkeypatch.setattr(doctor.platform, name, lambda text=text: text)
    monkeypatch.setattr(doctor.sys, "prefix", "/env")
    asked = []
    monkeypatch.setattr(doctor, "sources", lambda base, timeout: asked.append(timeout) or ["host: answers"])
    report = [
        f"agglearn {__version__}, Python 3.11.7, Linux 6.1, x86_64",
        "  /env",
        "packages",
        "  numba 0.70.1 (<0.69,>=0.61)",
        "  no-such-package missing (>=1)",
        "extras",
        "  privacy: opendp 0.16.0 (<0.17,>=0.13)",
        "  spark (pip install 'agglearn[spark]'): not-here-either missing (<3,>=2), numba 0.70.1 (<1,>=0.70)",
        "machine",
        "  cores: 3 of 12",
        f"  threads: {lines[0]}",
        f"  memory: {lines[1]}",
    ]
    doctor.run(SimpleNamespace(offline=False, timeout=1.5))
    assert capsys.readouterr().out.splitlines() == [*report, "data", "  host: answers"]
    assert asked == [1.5]
    doctor.run(SimpleNamespace(offline=True, timeout=1.5))
    assert capsys.readouterr().out.splitlines() == report


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_no_failure(monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    assert doctor.ask_index(1) == "no answer"
