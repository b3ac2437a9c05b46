"""What the benchmarks share."""

import time

import pandas as pd


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
