"""Items of options, and the report on a fit."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from agglearn.cli import report
from agglearn.cli.aggregate import parse_names
from agglearn.maxent import NaiveBayesClassifier
from agglearn.observations import ContingencyTables


def test_items_of_an_option_lie_between_commas_and_spaces():
    assert parse_names(["a, b", '"c, d",e', "f"], []) == ["a", "b", "c, d", "e", "f"]


def irregular() -> pd.DataFrame:
    """Eleven records, seven with label 1: a feature of three values, one of two."""
    return pd.DataFrame({"a": list("uuuuuvvvwww"), "b": list("xxxxyxyxxyx"), "y": [1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0]})


def test_every_number_of_the_report_on_a_fit():
    """Rates above and below those of the tables, which must not cancel; a joint model states its last misfit."""
    frame = irregular()
    tables = ContingencyTables.from_records(frame, "y")
    model = NaiveBayesClassifier(smoothing=1.0).fit(tables)
    off = []
    for name in "ab":
        k = frame[name].nunique()
        for _, part in frame.groupby(name):
            ones, zeros = (part["y"].sum() + 1) / (7 + k), ((1 - part["y"]).sum() + 1) / (4 + k)
            odds = ones / zeros * 7 / 4
            off.append(odds / (1 + odds) * len(part) - part["y"].sum())
    error = sum(map(abs, off)) / 22
    assert abs(sum(off)) / 22 < 0.5 * error
    assert report.reproduction(model, tables) == (
        f"it uses the tables of single features (2; pairs are not used) and misses the label's rate there by {error:.2g} on average"
    )
    joint = SimpleNamespace(misfit_=np.array([[0.5, 0.1], [0.0234, 0.2]]))
    assert report.reproduction(joint, tables) == (
        "its own samples differ from the tables' counts by 2.3 % (sum of |differences| over sum of counts)"
    )


@pytest.mark.parametrize(("below", "few"), [(1, 0), (2, 3), (3, 5), (4, 8), (10, 11)])
def test_small_cells_are_counted_over_all_tables(below, few):
    """Counts 5, 3, 3 of one feature, 8, 3 of the other, and 4, 1, 2, 1, 2, 1 of both."""
    tables = ContingencyTables.from_records(irregular(), "y")
    assert report.smallest_cells(tables, below) == (3 + 2 + 6, 1.0, few)
