"""Rivals, ends of lines and what is tried again."""

import itertools
import json

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from agglearn.reporting.claims import Rows, _rival_below_base
from agglearn.reporting.lines import LINE_HEIGHT, _label_ends
from agglearn.reporting.run_summary import retry_targets


def test_only_a_better_side_can_have_a_rival_below_the_base_rate():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["base"], "value": [-1.0]}))
    sides = {"value": {"measure": "nllh", "method": "ours"}, "reference": {"measure": "nllh", "method": "base"}}
    assert not _rival_below_base(sides | {"predicate": "less"}, rows)


@pytest.mark.parametrize("heights", [[0.5] * 4, [0.0, 0.01, 0.99, 1.0], [0.2, 0.9, 0.21]])
def test_names_at_the_ends_of_lines_do_not_overlap(heights):
    axes = plt.figure().add_subplot()
    axes.set_ylim(0, 1)
    names = [f"line {k}\nof two" if k % 2 else f"line {k}" for k in range(len(heights))]
    _label_ends(axes, {name: (y, "black") for name, y in zip(names, heights, strict=True)})
    spans = sorted((t.xy[1], LINE_HEIGHT * (1 + t.get_text().count("\n")) / 2) for t in axes.texts)
    assert all(y + half <= z - other + 1e-3 for (y, half), (z, other) in itertools.pairwise(spans))
    assert all(y - half >= -1e-9 and y + half <= 1 + 1e-9 for y, half in spans)
    plt.close("all")


def test_only_data_without_a_product_are_tried_again(tmp_path):
    for name, status in (("a", "ok"), ("b", "unavailable")):
        (tmp_path / "sources" / name).mkdir(parents=True)
        (tmp_path / "sources" / name / "manifest.json").write_text(json.dumps({"status": status}))
    assert retry_targets(tmp_path) == [str(tmp_path / "sources/b")]


def test_a_claim_about_one_side_has_no_rival():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["ours"], "value": [-1.0]}))
    assert not _rival_below_base({"predicate": "at_least", "value": {"measure": "nllh", "method": "ours"}}, rows)
