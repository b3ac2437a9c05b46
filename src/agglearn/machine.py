"""What this process may use of the machine: cores and memory, limits of control groups included."""

import os
import platform
import re
from pathlib import Path

CGROUP_FILES = ("memory.max", "memory.limit_in_bytes")  # control groups of version 2, of version 1
UNLIMITED = 1 << 60  # version 1 writes a number of this size where there is no limit


def describe() -> str:
    model = ""
    if (info := Path("/proc/cpuinfo")).exists():
        match = re.search(r"model name\s*: (.*)", info.read_text())
        model = match.group(1) if match else ""
    return ", ".join([model or platform.machine(), f"{cores()} cores", platform.system()])


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def physical_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_bytes() -> int:
    """Memory of the machine, or the limit of this process's control group where that is lower."""
    return min(physical_bytes(), cgroup_limit() or physical_bytes())


def cgroup_limit(proc: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> int | None:
    """Lowest memory limit in bytes of this process's control group and of those above it, or None."""
    files = [folder / name for folder in _folders(Path(proc), Path(root)) for name in CGROUP_FILES]
    texts = [file.read_text().strip() for file in files if file.is_file()]
    return min((int(t) for t in texts if t.isdigit() and int(t) < UNLIMITED), default=None)


def _folders(proc: Path, root: Path) -> set[Path]:
    folders = {root, root / "memory"}  # in a container the mount itself is the process's group
    for line in proc.read_text().splitlines() if proc.is_file() else []:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            mount = root if controllers == "" else root / "memory"
            group = mount / path.strip("/")
            folders |= {group, *(p for p in group.parents if p.is_relative_to(mount))}
    return folders
