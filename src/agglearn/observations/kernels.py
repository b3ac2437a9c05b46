"""Numba kernels that count records into cells, in place: int64, a count (high half) and a label sum (low half)."""

import numpy as np
from numba import njit  # compiles at the first call: a process that imports this may fork

SHIFT = 32
ONE = 1 << SHIFT
LOW = ONE - 1
MAX_RECORDS = (1 << 31) - 1  # more could overflow one half of a cell

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@njit(cache=True, nogil=True, inline="always")
def mix(cell):
    """Bits of a cell's number, mixed (SplitMix64's finaliser after one step): the same on every machine."""
    z = np.uint64(cell) + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_A
    z = (z ^ (z >> _S27)) * _MIX_B
    return z ^ (z >> _S31)


@njit(cache=True, nogil=True, inline="always")
def bucket(cell, buckets):
    """Bucket of a cell, 0 … buckets − 1. The cell itself where `buckets` is 0."""
    return np.int64(mix(cell) % np.uint64(buckets)) if buckets else cell


@njit(cache=True, nogil=True)
def buckets_of(cells, buckets):
    """(m,) int64 bucket of each flat cell (m,)."""
    numbers = np.empty(cells.size, np.int64)
    for k in range(cells.size):
        numbers[k] = bucket(cells[k], buckets)
    return numbers


@njit(cache=True, nogil=True)
def count_dense(first, second, stride, buckets, labels, cells):
    """Add records to all cells of a table, at codes `first` and `second` (equal for one feature, with `stride` 0)."""
    for r in range(first.size):  # stride: modalities of the second feature, buckets: 0 for no hashing
        if first[r] >= 0 and second[r] >= 0:
            cells[bucket(np.int64(first[r]) * stride + second[r], buckets)] += ONE + labels[r]


@njit(cache=True, nogil=True)
def find_slot(slots, cell):
    """Slot of a cell in an open-addressing table, or the empty slot where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = mix(cell) & mask
    while slots[slot, 0] != 0 and slots[slot, 0] != cell + 1:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def count_sparse(first, second, stride, buckets, labels, slots, used, start):
    """First record not added, from `start` on: n, or less when the table is half full and must grow first."""
    for r in range(start, first.size):  # slots: (capacity, 2), capacity a power of two, used: (1,)
        if first[r] >= 0 and second[r] >= 0:
            cell = bucket(np.int64(first[r]) * stride + second[r], buckets)
            slot = find_slot(slots, cell)
            if slots[slot, 0] == 0:
                if 2 * used[0] >= slots.shape[0]:
                    return r
                slots[slot, 0] = cell + 1  # 0: empty
                used[0] += 1
            slots[slot, 1] += ONE + labels[r]
    return first.size


@njit(cache=True, nogil=True)
def move(slots, larger):
    for k in range(slots.shape[0]):
        if slots[k, 0] != 0:
            slot = find_slot(larger, slots[k, 0] - 1)
            larger[slot, 0], larger[slot, 1] = slots[k, 0], slots[k, 1]
