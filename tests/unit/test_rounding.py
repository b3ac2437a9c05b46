"""Whole numbers with a given sum."""

import numpy as np
import pytest

from agglearn.rounding import round_to_totals


@pytest.mark.parametrize(
    ("exact", "total", "expected"),
    [
        ([1.2, 2.7, 0.1], 4, [1, 3, 0]),
        ([0.5, 0.5, 0.5, 0.5], 2, [1, 1, 0, 0]),
        ([3.0, 4.0], 7, [3, 4]),
        ([0.25] * 40, 10, [1] * 10 + [0] * 30),  # of equal remainders the first, however many there are
    ],
)
def test_largest_remainders(exact, total, expected):
    rounded = round_to_totals(np.array(exact), total)
    assert rounded.dtype == np.int64
    assert rounded.tolist() == expected


def test_rows_have_totals_of_their_own():
    rng = np.random.default_rng(0)
    totals = rng.integers(0, 1000, 50)
    exact = rng.dirichlet(np.ones(7), 50) * totals[:, None]
    rounded = round_to_totals(exact, totals)
    assert (rounded.sum(axis=1) == totals).all()
    assert (abs(rounded - exact) < 1).all()
    assert [round_to_totals(row, total).tolist() for row, total in zip(exact, totals, strict=True)] == rounded.tolist()
