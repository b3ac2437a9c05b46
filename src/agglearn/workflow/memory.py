"""How much memory a job is likely to take. The workflow asks while it plans, so nothing heavy is imported.

A job's estimate is a floor, for the libraries, and a multiple of what its data take in memory. The multiples were
measured: each job's log ends with the peak of its largest process ("took … MiB").
"""

import math
import zipfile
from pathlib import Path

from agglearn.inspection import classes
from agglearn.storage import read_json

MB = 10**6
FLOOR = 600  # MB of a job with small data. Most of it is libraries.
PER_SOURCE, PER_RECORDS, PER_SLOT = 25, 2, 5  # peak over bytes of compressed files, of records, of one observation


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


def largest_slot(observations: Path) -> int:
    """Bytes of the largest observation with its truth in memory."""
    return max((unpacked(p) for p in observations.iterdir() if p.is_dir()), default=0)


def for_parsing(entry: dict, fetched: Path) -> int:
    """MB for the records of a data set, from the files fetched for it."""
    sizes = sum(file["bytes"] for file in _json(fetched / "files.json").values())
    return FLOOR + math.ceil((PER_SOURCE * sizes + drawn(entry, [{}])) / MB)


def for_observing(entry: dict, varied: list[dict], records: Path | None) -> int:
    """MB for the observations of a data set, from its records or, where it is simulated, from its parameters."""
    size = PER_RECORDS * _json(records / "manifest.json").get("memory", 0) if records else drawn(entry, varied)
    return FLOOR + math.ceil(size / MB)


def for_fitting(manifests: Path, datasets: list[str]) -> int:
    """MB for the runs of a batch, from the manifests of its experiment's observations, by data set."""
    content = _json(manifests)
    return FLOOR + math.ceil(PER_SLOT * max(content.get(d, {}).get("memory", 0) for d in datasets) / MB)


def drawn(entry: dict, varied: list[dict]) -> int:
    """Bytes at the peak of drawing a data set: the product of its class's `PEAK`, with the parameters that are set."""
    factors = classes.constant(entry["class"], "PEAK")
    if not factors:
        return 0
    settings = [entry.get("params", {}) | params for params in varied]
    given = [{k: p[k] for k in factors if p.get(k) is not None} for p in settings]
    return max(math.prod((factors | p).values()) for p in given)


def _json(path: Path) -> dict:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}  # not made yet. Snakemake asks again when it is.
