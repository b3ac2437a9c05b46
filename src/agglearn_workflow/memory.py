"""How much memory a job takes: a floor for libraries, and a multiple of its data. The multiples were measured, by the
peaks in the logs of jobs ("took … MiB"). What a run has taken. Planning asks, so nothing heavy is imported."""

import contextlib
import math
import resource
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from agglearn import registry
from agglearn.storage import read_json

MB = 10**6
FLOOR = 600  # MB of a job with small data. Most of it is libraries.
PER_SOURCE, PER_RECORDS = 25, 5  # peak over bytes of compressed files, of records
PEAK = Path("/proc/self/clear_refs")  # Linux: the number 5, written here, sets the peak to what is used now
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of `ru_maxrss`


def unpacked(path: Path) -> int:
    """Bytes of a file, or of all files of a folder, when they are read: tables have 8 bytes per value."""
    if path.is_dir():
        return sum(unpacked(p) for p in path.rglob("*") if p.is_file())
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_metadata(path)
        return 8 * table.num_rows * table.num_columns
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as arrays:
            return sum(member.file_size for member in arrays.infolist())
    return path.stat().st_size


def size_of_files(entry: dict, copies: Mapping[str, Path | None] | None = None) -> int | None:
    """Bytes of all files of an entry, as stated, and of local copies as they are. None where one is unknown."""
    sizes = []
    for name, file in entry.get("files", {}).items():
        stated = (r["bytes"] for r in (file, *file.get("routes", [])) if r.get("bytes"))
        path = (copies or {}).get(name)
        sizes.append(path.stat().st_size if path else next(stated, None))
    return None if None in sizes else sum(filter(None, sizes))


def for_parsing(entry: dict) -> int:
    """MB for the records of a data set, from the bytes of its files."""
    return FLOOR + math.ceil((PER_SOURCE * (size_of_files(entry) or 0) + drawn(entry, [{}])) / MB)


def for_fitting(entry: dict, varied: list[dict], records: Path) -> int:
    """MB for observing and fitting a data set, from its records or, where it is simulated, from its parameters."""
    manifest = records / "manifest.json"  # not made yet, perhaps. Snakemake asks again when it is.
    size = PER_RECORDS * read_json(manifest).get("memory", 0) if manifest.is_file() else 0
    return FLOOR + math.ceil(max(size, drawn(entry, varied)) / MB)


def drawn(entry: dict, varied: list[dict]) -> int:
    """Bytes at the peak of drawing a data set: the product of its class's `PEAK`, with the parameters that are set."""
    factors = registry.constant(entry["class"], "PEAK")
    if not factors:
        return 0
    settings = [entry.get("params", {}) | params for params in varied]
    return max(math.prod(factor if p.get(k) is None else p[k] for k, factor in factors.items()) for p in settings)


@contextlib.contextmanager
def measure_cost() -> Iterator[dict[str, float]]:
    """Yield a dict that gets `began` and `ended` (seconds since 1970), `cpu_seconds` and `peak_memory` (bytes, since the process
    began if it cannot be reset)."""
    with contextlib.suppress(OSError):
        PEAK.write_text("5")
    cost, started = {"began": time.time()}, cpu_seconds()
    yield cost
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
    cost |= {"ended": time.time(), "cpu_seconds": cpu_seconds() - started, "peak_memory": peak}


def cpu_seconds() -> float:
    """CPU seconds so far of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)
