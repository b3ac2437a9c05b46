"""Kernels whose items are divided among threads."""

import multiprocessing
import threading

import numpy as np
import pytest

from agglearn.linear.kernels import WORTH_THREADS as ENOUGH
from agglearn.linear.kernels import in_threads


def times_run(work, slices):
    """How often each of ten items was run, and the number of slices, as many of which run at once."""
    times, starts, at_once = np.zeros(10), [], threading.Barrier(slices)

    def kernel(out, first, stop):
        starts.append(first)
        at_once.wait(timeout=60)
        out[first:stop] += 1

    in_threads(work, len(times), kernel, times)
    return times.tolist(), len(starts)


@pytest.mark.parametrize(("threads", "work", "slices"), [(3, ENOUGH, 3), (3, ENOUGH - 1, 1), (12, ENOUGH, 10)])
def test_every_item_is_run_once(threads, work, slices, monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: threads)
    assert times_run(work, slices) == ([1.0] * 10, slices)


def test_a_process_forked_after_threads_were_used_has_its_own(monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)
    times_run(ENOUGH, 2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(times_run, (ENOUGH, 2)).get(timeout=60) == ([1.0] * 10, 2)
