"""Thinned tables, halves that are added up and encodings of noisy tables, against the definition of each step: draws are planted."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.observations import ContingencyTables, Halves, LabelSums, NoiseSpec, Table
from agglearn.observations.consistency import clip_tables, possible_totals, thin_tables

FRAME = pd.DataFrame({"a": list("uvuvvuv"), "b": list("xyzzyxz"), "y": [1, 0, 1, 1, 0, 1, 0]})
EXACT = ContingencyTables.from_records(FRAME, "y")
NOISE = NoiseSpec("gaussian", 3.0, 1.0, 1e-5, scales={"a": 3.0, "b": 1.0, "a × b": 2.0, "totals": 2.5})
# counts and label sums of two values: more ones than zeros, more zeros, and no record at all
COUNTS, SUMS = np.array([12.0, 20.0, -4.0]), np.array([9.0, 4.0, -2.0])
ONE = FrameEncoder((CategoricalEncoder("a", ("u", "v", "w")),))


def one_table(noise: NoiseSpec | None, counts=COUNTS, sums=SUMS) -> ContingencyTables:
    return ContingencyTables(ONE, "y", 28.0, 11.0, {(0,): Table((3,), np.arange(3), counts, sums)}, noise)


class Unit:
    """Normal numbers: the draw of one number is all ones, and the others are zeros."""

    def __init__(self, which: int) -> None:
        self.which, self.calls = which, -1

    def normal(self, size):
        self.calls += 1
        return np.full(size, float(self.calls == self.which))


@pytest.mark.parametrize(("adjacency", "variance_of_counts"), [("record", 9.0), ("label", 0.0)])
def test_each_half_has_the_noise_and_the_counting_error_of_its_cells(adjacency, variance_of_counts):
    """What is drawn moves counts and label sums by half of: own noise of each; √ones, both; √zeros, counts alone."""
    noisy, moved = one_table(replace(NOISE, adjacency=adjacency, scale=5.0)), []  # the table has a scale of its own, 3
    for which in range(4):
        first, second = thin_tables(noisy, Unit(which))
        (d, c), (e, f) = first.dense(0), second.dense(0)
        np.testing.assert_allclose(d + e, COUNTS)
        np.testing.assert_allclose(c + f, SUMS)
        moved.append((tuple((2 * d - COUNTS).round(9)), tuple((2 * c - SUMS).round(9))))
    ones, zeros = np.sqrt([9, 4, 0]), np.sqrt([3, 16, 0])
    own = np.full(3, math.sqrt(variance_of_counts))
    expected = [(own, 0 * own), (0 * own, np.full(3, 3.0)), (ones, ones), (zeros, 0 * zeros)]
    assert sorted(moved) == sorted((tuple(x.round(9)), tuple(y.round(9))) for x, y in expected)


def test_scales_of_thinned_and_of_added_tables():
    noisy = replace(EXACT, noise=NOISE)
    thinned = thin_tables(noisy, np.random.default_rng(0))
    added = Halves(noisy, replace(noisy, total=9)).combined  # of 7 records, and of 9
    for factor, found in ((1 / math.sqrt(2), thinned[0]), (1 / math.sqrt(2), thinned[1]), (math.sqrt(2), added)):
        assert found.noise.scale == pytest.approx(factor * 3)
        assert found.noise.scales == pytest.approx({k: factor * s for k, s in NOISE.scales.items()})
        assert (found.noise.epsilon, found.noise.delta, found.noise.mechanism) == (1.0, 1e-5, "gaussian")
        assert (found.total, found.positives) == ((16, 8) if found is added else (3.5, 2))


def test_halves_of_unequal_sizes_add_up_to_the_whole():
    encoder, x = EXACT.encoder, FRAME.drop(columns="y")
    y, first = FRAME["y"].to_numpy(), np.arange(7) < 3
    parts = [ContingencyTables.from_codes(encoder, encoder.encode(x[p]), y[p], "y") for p in (first, ~first)]
    assert Halves(*parts).combined.digest == EXACT.digest
    sums = [LabelSums.from_records((FRAME[["y"]] * 2.5)[p], y[p]) for p in (first, ~first)]
    assert Halves(*sums).combined.sums.tolist() == [2.5 * 4, 4]


def test_clipped_tables_by_hand():
    """A label sum is cut to the clipped count, not to the noisy one."""
    table = Table((4,), np.arange(4), np.array([-3.0, 2.5, 4.0, 6.0]), np.array([1.0, 3.0, -2.0, 5.0]))
    encoder = FrameEncoder((CategoricalEncoder("a", tuple("uvwx")),))
    noisy = ContingencyTables(encoder, "y", 9.5, 4.0, {(0,): table}, NOISE)
    clipped = clip_tables(noisy)
    assert [v.tolist() for v in clipped.dense(0)] == [[0, 2.5, 4, 6], [0, 2.5, 0, 5]]
    assert (clipped.total, clipped.positives, clipped.noise.postprocessing) == (9.5, 4.0, "clipped")


@pytest.mark.parametrize(
    ("noisy", "possible"),
    [((9.5, 4.0), (9.5, 4)), ((1.5, 7), (2, 1)), ((-3, -3), (2, 1)), ((9, 8.5), (9, 8)), ((9, 0.2), (9, 1))],
)
def test_possible_totals_by_hand(noisy, possible):
    assert possible_totals(*noisy) == possible
