"""Places and sizes in drawings, by hand."""

import pandas as pd
import pytest

from agglearn_workflow.claims.statements import _axis
from agglearn_workflow.figures.charts import Chart
from agglearn_workflow.figures.drawing import sentence


def number(value: float, low: float, high: float) -> dict:
    return {"value": value, "low": low, "high": high, "from": None, "to": None}


@pytest.mark.parametrize(("value", "spread"), [(3.0, 3.0), (0.0, 1.0), (-2.0, 2.0)])
def test_an_axis_shows_intervals_as_far_as_the_estimates_spread(value, spread):
    place, first, last = _axis([number(value, -100.0, 100.0)], float)
    ends = place(value - spread), place(value + spread)
    pad = 0.06 * 2 * spread
    assert ends == pytest.approx((place(value - spread - pad) + (last - first) * 0.06 / 1.12, ends[1]))
    assert place(value - spread - pad) == pytest.approx(first)
    assert place(value + spread + pad) == pytest.approx(last)


def test_an_axis_has_the_unit_that_all_rows_have():
    rows = pd.DataFrame({"unit": ["s", "s", None, ""]})
    chart = Chart(rows, rows, {}, {"y": "fit_seconds", "x": "n", "x_label": "stated"}, {})
    assert chart.label("y", rows) == "fit time (s)"
    assert chart.label("y", pd.DataFrame({"unit": ["s", "B"]})) == chart.label("y") == "fit time"
    assert chart.label("y", pd.DataFrame({"unit": ["", None]})) == "fit time"
    assert chart.label("x", rows) == "stated"


def test_a_sentence_has_room_for_its_lines():
    drawing = sentence("word " * 60)
    assert len(drawing[0]) == 4
    assert (drawing.get("height"), drawing.get("viewBox")) == ("80pt", "0 0 500 80")  # 16 for each, and 16
