"""What the benchmarks share: timing, tables, and lines beside peers, which `make bench` keeps as JSON for the site.

python benchmarks/_common.py FOLDER     prints the lines that a folder has
"""

import atexit
import datetime
import functools
import json
import os
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pandas as pd

from agglearn.machine import describe
from agglearn.maxent.engines.numba_chains import aligned_zeros

LINES: list[dict] = []
HEADS = {
    "line": "what",
    "seconds": "s",
    "peer": "peer",
    "peer_seconds": "its s",
    "ratio": "ratio",
    "floor_share": "of floor",
    "memory": "GB",
    "peer_memory": "its GB",
    "note": "",
}


def fastest(run, times: int = 3) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def show(title: str, rows: list[dict]) -> None:
    """Print a table."""
    print(
        f"\n{title}\n" + pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format, na_rep=""), flush=True
    )


def compare(line: str, seconds: float, peer: str, peer_seconds: float, floor: float | None = None, **more) -> None:
    """Keep a line: seconds of both in this run, and of `floor`, the least that this machine could take.

    More are `memory`, `peer_memory` (GB, of processes that did nothing else) and `note`.
    """
    entry = {"line": line, "seconds": seconds, "peer": peer, "peer_seconds": peer_seconds}
    LINES.append(entry | {"ratio": peer_seconds / seconds, "floor_share": floor and floor / seconds} | more)


@atexit.register
def write_lines() -> None:
    """Into the folder that `BENCH` names, if a benchmark ended well. A file of lines replaces that of the last run."""
    if not (folder := os.environ.get("BENCH")) or not LINES or hasattr(sys, "last_value"):
        return
    path = Path(folder) / f"{Path(sys.argv[0]).stem}.json"
    new = path.with_suffix(".new")
    found = {"date": datetime.date.today().isoformat(), "machine": describe(), "lines": LINES}
    new.write_text(json.dumps(found, indent=1))
    new.replace(path)


# -- what this machine could do at most, by all threads ----------------------------------------------------------------


@functools.cache
def additions() -> float:
    """Single-precision numbers a second that are added to others in the nearest cache."""
    size = numba.get_num_threads() * 1024
    # Half a page lies between: at a distance of whole pages a read waits for a write.
    numbers = aligned_zeros(2 * size + 512)
    table, total = numbers[:size].reshape(-1, 1024), numbers[size + 512 :].reshape(-1, 1024)
    _add(table, total, 1)
    return len(table) * 1024 * 20_000 / fastest(lambda: _add(table, total, 20_000), 10)


@functools.cache
def exponentials() -> float:
    """Single-precision exponentials of NumPy a second, times the threads."""
    x, out = np.linspace(-10, 0, 4096, dtype=np.float32), np.empty(4096, np.float32)
    return numba.get_num_threads() * 4096 * 200 / fastest(lambda: [np.exp(x, out=out) for _ in range(200)])


@functools.cache
def counts() -> float:
    """Cells a second to which a 1 is added, at random places of a table in the nearest cache."""
    cells = np.random.default_rng(0).integers(0, 1024, 1 << 16).astype(np.int32)
    tables = np.zeros((numba.get_num_threads(), 1024), np.int64)
    _count(cells, tables, 1)
    return len(tables) * len(cells) * 20 / fastest(lambda: _count(cells, tables, 20))


@functools.cache
def products() -> float:
    """Single-precision operations a second in a product of matrices."""
    x = np.ones((1024, 1024), np.float32)
    return 2 * 1024**3 / fastest(lambda: x @ x, 5)


@numba.njit(parallel=True, fastmath=True)
def _add(table, total, times):
    for k in numba.prange(len(table)):
        for _ in range(times):
            for j in range(table.shape[1]):
                total[k, j] += table[k, j]


@numba.njit(parallel=True)
def _count(cells, tables, times):
    for k in numba.prange(len(tables)):
        for _ in range(times):
            for cell in cells:
                tables[k, cell] += 1


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        table = pd.DataFrame(found["lines"]).reindex(columns=list(HEADS)).rename(columns=HEADS)
        text = table.dropna(axis=1, how="all").to_string(index=False, float_format="{:.3g}".format, na_rep="")
        print(f"\n{path.stem}, {found['date']}, {found['machine']}\n{text}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
