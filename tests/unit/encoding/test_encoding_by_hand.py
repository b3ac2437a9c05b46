"""Columns, labels and encoders at their limits."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.encoding.columns import is_continuous
from agglearn.encoding.dense import DenseEncoder
from agglearn.encoding.labels import binary_label
from agglearn.encoding.target import TargetEncoder
from agglearn.errors import DataError


def test_a_numeric_column_of_one_value_becomes_zeros():
    frame = pd.DataFrame({"a": [2.0, 2.0, 2.0], "b": [1.0, 2.0, 3.0]})
    encoder = DenseEncoder(frame, [])
    np.testing.assert_allclose(encoder.sparse(frame).toarray(), [[0, -(1.5**0.5)], [0, 0], [0, 1.5**0.5]], atol=1e-6)


def test_noisy_counts_below_one_are_taken_for_one():
    encoder = TargetEncoder.from_counts(
        "a", ("u", "v", "w"), np.array([0.0, -3.0, 16.0]), np.array([0, 2, 8]), 0.5, 50, 2.0
    )
    assert encoder.labels[1:] == ("1+ records, rate 0.333", "1+ records, rate 0.667", "16+ records, rate 0.5")


@pytest.mark.parametrize(("n", "end"), [(3, "a, b, c$"), (5, "a, b, c, d, e$"), (6, "a, b, c, d, e, …$")])
def test_up_to_five_values_of_a_label_are_shown(n, end):
    with pytest.raises(DataError, match=end):
        binary_label(pd.Series(list("abcdef"[:n]), name="y"))


def test_nine_numbers_and_one_word_look_like_a_mistake():
    with pytest.raises(DataError, match="word"):
        is_continuous(pd.Series([*map(str, range(9)), "word"], name="a"))
    assert not is_continuous(pd.Series([*map(str, range(8)), "some", "words"], name="a"))


def test_pairs_that_never_occurred_fill_no_coordinate():
    frame = pd.DataFrame({"a": list("uuv"), "b": list("xyx")})
    encoder = FrameEncoder.fit(frame)
    mapped = FeatureMap.fit("quadratic", encoder, frame)
    names = mapped.names
    x = mapped.matrix(pd.DataFrame({"a": list("vuw"), "b": list("yxx")})).toarray()
    filled = [[names[j] for j in np.flatnonzero(row)] for row in x]
    assert filled == [
        ["a = v", "b = y", "intercept"],
        ["a = u", "b = x", "a = u & b = x", "intercept"],
        ["b = x", "intercept"],
    ]
