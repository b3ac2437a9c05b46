"""The memory that a process may use is what its control group leaves it."""

import shutil

import pytest

from agglearn import machine


@pytest.fixture
def groups(tmp_path):
    """Write files of control groups and say in which one the process is; returns the limit that is read."""

    def limit(line: str, **files):
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        (tmp_path / "cgroup").write_text(line + "\n")
        for path, text in files.items():
            place = tmp_path / "root" / path.replace("__", "/").replace("_DOT_", ".")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{text}\n")
        return machine.cgroup_limit(str(tmp_path / "cgroup"), str(tmp_path / "root"))

    return limit


def test_the_own_group_has_a_limit(groups):
    assert groups("0::/user/job", user__job__memory_DOT_max=8 << 30, memory_DOT_max="max") == 8 << 30


def test_a_group_above_is_stricter(groups):
    assert groups("0::/user/job", user__job__memory_DOT_max="max", user__memory_DOT_max=2 << 30) == 2 << 30


def test_a_container_has_its_limit_at_the_mount(groups):
    assert groups("0::/", memory_DOT_max=1 << 30) == 1 << 30


def test_control_groups_of_version_1(groups):
    assert groups("9:cpu,memory:/job", memory__job__memory_DOT_limit_in_bytes=3 << 30) == 3 << 30


def test_no_limit(groups):
    assert groups("0::/user", user__memory_DOT_max="max") is None
    assert groups("9:memory:/", memory__memory_DOT_limit_in_bytes=(1 << 63) - 4096) is None


def test_memory_is_never_more_than_the_machine_has(monkeypatch):
    monkeypatch.setattr(machine, "cgroup_limit", lambda: 1 << 60)
    physical = machine.memory_bytes()
    assert physical == machine.physical_bytes() > 1 << 28
    monkeypatch.setattr(machine, "cgroup_limit", lambda: 1 << 27)
    assert machine.memory_bytes() == 1 << 27
