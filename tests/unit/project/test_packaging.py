"""Lock, pins and conda twin name the same things, and the lock names no place of this or any machine."""

import re
import runpy
import tomllib

from packaging.requirements import Requirement
from samples import ROOT

import agglearn

LOCK = (ROOT / "requirements.lock").read_text()
SPARK = (ROOT / "requirements-spark.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TWIN = runpy.run_path(str(ROOT / "workflow/scripts/environment.py"))


def test_conda_twin_equals_lock():
    made = TWIN["text"]()
    assert (ROOT / "environment.yml").read_text() == made
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.M))
    pins = dict(re.findall(r"^ +- ([a-z0-9-]+)==?([0-9]\S*)$", made, re.M))
    assert pins == TWIN["pins"]()
    assert all(locked[name] == version for name, version in pins.items())
    assert set(TWIN["extras"]()) >= {"workflow", "networks", "privacy", "generic"}


def test_all_names_every_extra_that_the_package_uses():
    [everything] = PROJECT["optional-dependencies"]["all"]
    extras = set(re.search(r"\[(.*)\]", everything).group(1).split(","))
    assert extras == PROJECT["optional-dependencies"].keys() - {"all", "peers", "slurm", "docs", "dev", "mutation"}


def test_the_lock_satisfies_every_bound():
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.M))
    extras = PROJECT["optional-dependencies"]
    for bound in [*PROJECT["dependencies"], *(r for extra in TWIN["extras"]() for r in extras[extra])]:
        requirement = Requirement(bound)
        assert requirement.specifier.contains(locked[requirement.name]), bound
        assert {s.operator for s in requirement.specifier} == {">=", "<"}, bound


def test_every_package_of_the_locks_has_hashes():
    for lock, least in ((LOCK, 100), (SPARK, 2)):
        blocks = re.split(r"^(?=[a-z0-9-]+==)", lock, flags=re.M)[1:]
        assert len(blocks) >= least
        assert all("--hash=sha256:" in block for block in blocks)


def test_spark_has_pins_of_its_own_that_agree_with_the_lock():
    locked, spark = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.M)) for lock in (LOCK, SPARK))
    [bound] = PROJECT["optional-dependencies"]["spark"]
    assert Requirement(bound).specifier.contains(spark["pyspark"])
    assert all(locked[name] == spark[name] for name in spark.keys() & locked.keys())


def test_locks_name_no_place():
    for lock in (LOCK, SPARK):
        assert "://" not in lock
        assert "--index" not in lock
        assert "/" not in re.sub(r"#.*", "", lock).replace("\\\n", "")


def test_the_version_stands_in_one_place():
    assert agglearn.__version__ == PROJECT["version"]
    assert PROJECT["version"] not in (ROOT / "src/agglearn/__init__.py").read_text()
