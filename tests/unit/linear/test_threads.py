"""Kernels whose items are divided among threads."""

import multiprocessing

import numpy as np
import pytest

from agglearn.linear import kernels

ENOUGH = kernels.WORTH_THREADS


def run(work):
    """How often each of ten items was run, and the number of slices."""
    times, slices = np.zeros(10), []

    def kernel(out, first, stop):
        out[first:stop] += 1
        slices.append(first)

    kernels.in_threads(work, len(times), kernel, times)
    return times.tolist(), len(slices)


@pytest.mark.parametrize(
    ("threads", "work", "slices"), [(3, ENOUGH, 3), (3, ENOUGH - 1, 1), (1, ENOUGH, 1), (12, ENOUGH, 10)]
)
def test_every_item_is_run_once(threads, work, slices, monkeypatch):
    monkeypatch.setattr(kernels.numba, "get_num_threads", lambda: threads)
    assert run(work) == ([1.0] * 10, slices)


def test_a_process_forked_after_threads_were_used_has_its_own(monkeypatch):
    monkeypatch.setattr(kernels.numba, "get_num_threads", lambda: 2)
    run(ENOUGH)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(run, (ENOUGH,)).get(timeout=60) == ([1.0] * 10, 2)
