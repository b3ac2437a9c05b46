"""Lock, pins and conda twin name the same things, and the lock names no place of this or any machine."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()


def test_conda_twin_equals_lock():
    made = runpy.run_path(str(ROOT / "workflow/scripts/environment.py"))["text"]()
    assert (ROOT / "environment.yml").read_text() == made
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.M))
    pins = dict(re.findall(r"^  - ([a-z0-9-]+)=([0-9]\S*)$", made, re.M))
    assert len(pins) > 10
    assert all(locked[name] == version for name, version in pins.items())


def test_every_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.M))
    for pin in project["dependencies"] + project["optional-dependencies"]["dev"]:
        name, version = re.match(r"([A-Za-z0-9-]+)==([0-9.]+)\.\*", pin).groups()
        assert locked[name].startswith(version + "."), pin


def test_every_package_of_the_lock_has_hashes():
    blocks = re.split(r"^(?=[a-z0-9-]+==)", LOCK, flags=re.M)[1:]
    assert len(blocks) > 100
    assert all("--hash=sha256:" in block for block in blocks)


def test_lock_names_no_place():
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "/" not in re.sub(r"#.*", "", LOCK).replace("\\\n", "")
