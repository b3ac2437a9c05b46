"""Sizes and lists of names as words."""

import numpy as np
import pytest

from agglearn.errors import DataError
from agglearn.text import bytes_text, count_text, list_some, visible


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (5_834_000, "5.83 MB"), (999_600, "1 MB"), (None, "unknown")]
)
def test_sizes(size, words):
    assert bytes_text(size) == words


def test_the_first_names_and_how_many_follow():
    assert list_some("abc", 3) == "a, b, c"
    assert list_some("abcd", 3) == "a, b, c and 1 more"
    assert list_some(["n" * 200, "n" * 201], 3) == f"{'n' * 200}, {'n' * 199}…"


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x07", "\x9b31m", "\u202e", "\r", "\n", "\x00", "\udc9b"])
def test_signs_that_a_terminal_obeys_become_visible(sign):
    text = visible(f"a{sign}b é 語")
    assert text.isprintable()
    assert text == "a" + repr(sign)[1:-1] + "b é 語"
    assert visible(text) == text
    assert list_some([f"a{sign}"]).isprintable()
    assert str(DataError(f"no column a{sign}b")).isprintable()


@pytest.mark.parametrize(("n", "text"), [(0, "0 tables"), (1, "1 table"), (2, "2 tables"), (2000, "2,000 tables")])
def test_a_count_agrees_with_its_noun(n, text):
    assert count_text(n, "table") == text
    assert count_text(np.int64(n), "table") == text
