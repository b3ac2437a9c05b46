"""Sizes and lists of names as words."""

import pytest

from agglearn.text import bytes_text, list_some


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (5_834_000, "5.83 MB"), (999_600, "1 MB"), (None, "unknown")]
)
def test_sizes(size, words):
    assert bytes_text(size) == words


def test_the_first_names_and_how_many_follow():
    assert list_some("abc", 3) == "a, b, c"
    assert list_some("abcd", 3) == "a, b, c and 1 more"
