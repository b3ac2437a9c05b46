"""Items of options."""

from agglearn.cli.aggregate import split_items


def test_items_of_an_option_lie_between_commas_and_spaces():
    assert split_items(["a, b", '"c, d",e', "f"]) == ["a", "b", "c, d", "e", "f"]
