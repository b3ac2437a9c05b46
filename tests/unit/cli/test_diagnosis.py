"""`agglearn doctor` tells what is installed and what answers, and no missing network makes it fail."""

import http.server
import threading

import pytest
import yaml

from agglearn import __version__
from agglearn.cli import diagnosis, main

INSTALLED = """
numba<0.69,>=0.61
no-such-package>=1
opendp<0.17,>=0.13; extra == "privacy"
not-here-either[fast]<3,>=2; extra == "spark"
numba<1,>=0.70; extra == "spark"
agglearn[privacy,spark]; extra == "all"
"""


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(diagnosis.metadata, "requires", lambda name: INSTALLED.strip().splitlines())
    versions = {"numba": "0.70.1", "opendp": "0.16.0"}

    def version(name):
        if name not in versions:
            raise diagnosis.metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(diagnosis.metadata, "version", version)


def test_packages_extras_and_what_is_outside_the_bounds(installed):
    needed = diagnosis.requirements()
    assert [r.describe() for r in needed if not r.extra] == [
        "numba 0.70.1 (tested with <0.69,>=0.61)",
        "no-such-package missing",
    ]
    assert diagnosis.extras(needed) == [
        "privacy: opendp 0.16.0",
        "spark: not-here-either missing, numba 0.70.1; pip install 'agglearn[spark]'",
    ]


@pytest.mark.parametrize(
    ("version", "inside"),
    [
        ("1.9", False),
        ("2", True),
        ("2.0.0", True),
        ("2.10.3rc1", True),
        ("2.99", True),
        ("3.0", False),
        ("3.0.1", False),
    ],
)
def test_bounds_compare_numbers(version, inside):
    assert diagnosis.within(version, ">=2.0,<3") is inside


class Status(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(int(self.headers["Host"].startswith("localhost") and 503) or 404)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Status)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found.server_port
    found.shutdown()
    found.server_close()


def test_sources_that_answer(server, tmp_path, monkeypatch):
    monkeypatch.setattr(diagnosis, "ask_index", lambda timeout: "answers")
    (tmp_path / "config/datasets").mkdir(parents=True)
    (tmp_path / "config/config.yaml").write_text("mirrors: [here, gone]\n")
    (tmp_path / "here").mkdir()
    routes = [f"http://127.0.0.1:{server}/a.csv", f"http://localhost:{server}/b.csv", "http://127.0.0.1:1/c.csv"]
    entry = {"homepage": "http://never.asked.invalid/", "files": {"x": {"routes": [{"url": r} for r in routes]}}}
    (tmp_path / "config/datasets/one.yaml").write_text(yaml.safe_dump(entry))
    lines = diagnosis.sources(tmp_path, timeout=5)
    assert lines[:3] == ["package index of pip: answers", "mirror here: present", "mirror gone: absent"]
    dead, answers, broken = lines[3:]
    assert dead.startswith("http://127.0.0.1:1: no answer (")
    assert answers == f"http://127.0.0.1:{server}: answers"
    assert broken == f"http://localhost:{server}: no answer (status 503)"


@pytest.mark.parametrize(
    ("limit", "threads", "lines"),
    [
        (None, {}, ["one per core, no environment variable limits them", "16.1 GB"]),
        (2_500_000_000, {"OMP_NUM_THREADS": "3", "NUMBA_NUM_THREADS": "2"},
         ["OMP_NUM_THREADS=3, NUMBA_NUM_THREADS=2", "16.1 GB, limit of the control group 2.5 GB"]),
    ],
)  # fmt: skip
def test_every_line_of_the_report(installed, monkeypatch, limit, threads, lines):
    """15 GiB are 16.1 GB; three of twelve cores."""
    for name in diagnosis.THREADS:
        monkeypatch.delenv(name, raising=False)
    for name, number in threads.items():
        monkeypatch.setenv(name, number)
    monkeypatch.setattr(diagnosis.machine, "cores", lambda: 3)
    monkeypatch.setattr(diagnosis.os, "cpu_count", lambda: 12)
    monkeypatch.setattr(diagnosis.machine, "physical_bytes", lambda: 15 * 2**30)
    monkeypatch.setattr(diagnosis.machine, "cgroup_limit", lambda: limit)
    for name, text in (("python_version", "3.11.7"), ("system", "Linux"), ("release", "6.1"), ("machine", "x86_64")):
        monkeypatch.setattr(diagnosis.platform, name, lambda text=text: text)
    monkeypatch.setattr(diagnosis.sys, "prefix", "/env")
    asked = []
    monkeypatch.setattr(diagnosis, "sources", lambda base, timeout: asked.append(timeout) or ["host: answers"])
    sections = dict(diagnosis.report(False, 1.5))
    assert sections == {
        f"agglearn {__version__}, Python 3.11.7, Linux 6.1, x86_64": ["/env"],
        "packages": ["numba 0.70.1 (tested with <0.69,>=0.61)", "no-such-package missing"],
        "extras": [
            "privacy: opendp 0.16.0",
            "spark: not-here-either missing, numba 0.70.1; pip install 'agglearn[spark]'",
        ],
        "machine": ["cores: 3 of 12", f"threads: {lines[0]}", f"memory: {lines[1]}"],
        "data": ["host: answers"],
    }
    assert asked == [1.5]
    assert list(dict(diagnosis.report(True, 1.5))) == list(sections)[:-1]


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_no_failure(monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    assert diagnosis.ask_index(1) == "no answer"


def test_the_command_prints_and_ends_well(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--offline"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"agglearn {__version__}, Python 3.")
    for part in ("packages", "extras", "machine", "  numba ", "  privacy: opendp ", "  memory: "):
        assert part in out
    assert "data" not in out.split("machine")[1]
