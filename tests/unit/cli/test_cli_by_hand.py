"""Locks and items of options."""

from agglearn.cli.aggregate import split_items
from agglearn.cli.outputs import only_writer


def test_a_lock_that_is_gone_is_no_error(tmp_path):
    with only_writer(tmp_path / "out", "out"):
        (tmp_path / ".out.lock").unlink()
    assert list(tmp_path.iterdir()) == []


def test_items_of_an_option_lie_between_commas_and_spaces():
    assert split_items(["a, b", '"c, d",e', "f"]) == ["a", "b", "c, d", "e", "f"]
