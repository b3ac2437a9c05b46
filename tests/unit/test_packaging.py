"""Lock, pins and conda twin name the same things, and the lock names no place of this or any machine."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
SPARK = (ROOT / "requirements-spark.lock").read_text()
GENERIC = (ROOT / "requirements-generic.lock").read_text()


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


def test_every_package_of_the_locks_has_hashes():
    for lock, least in ((LOCK, 100), (SPARK, 2), (GENERIC, 3)):
        blocks = re.split(r"^(?=[a-z0-9-]+==)", lock, flags=re.M)[1:]
        assert len(blocks) >= least
        assert all("--hash=sha256:" in block for block in blocks)


def test_spark_has_pins_of_its_own_that_agree_with_the_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked, spark = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.M)) for lock in (LOCK, SPARK))
    [pin] = project["optional-dependencies"]["spark"]
    assert spark["pyspark"].startswith(pin.removeprefix("pyspark==").removesuffix("*"))
    assert all(locked[name] == spark[name] for name in spark.keys() & locked.keys())


def test_generic_solvers_have_pins_of_their_own_that_agree_with_the_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked, generic = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.M)) for lock in (LOCK, GENERIC))
    for pin in project["optional-dependencies"]["generic"]:
        name, version = re.match(r"([a-z]+)==([0-9.]+)\.\*", pin).groups()
        assert generic[name].startswith(version + ".")
    assert all(locked[name] == generic[name] for name in generic.keys() & locked.keys())


def test_locks_name_no_place():
    for lock in (LOCK, SPARK, GENERIC):
        assert "://" not in lock
        assert "--index" not in lock
        assert "/" not in re.sub(r"#.*", "", lock).replace("\\\n", "")
