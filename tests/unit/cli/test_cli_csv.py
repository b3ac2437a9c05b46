"""A CSV that a command writes: programs read every text back, and a spreadsheet runs none as a formula."""

import io
import re

import pandas as pd
from cli_calls import call
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agglearn.text import write_csv

FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-1+2", "\uff1d1", "=cmd|' /C calc'!A0", "-"]
PLAIN = ["a=1", "-5", "+4.5e-3", "-.5", "0", "", " ", "é", "007", "a'b"]


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text, newline=""), dtype=str, keep_default_na=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("=+-@'\t\n\r a1.e,;\"é\uff1d", max_size=6), min_size=1, max_size=5))
@example(FORMULAS)
@example(PLAIN)
@example([f"'{text}" for text in FORMULAS + PLAIN])
def test_texts_come_back_and_none_is_a_formula(texts):
    out = io.StringIO()
    write_csv(pd.DataFrame({"id": range(len(texts)), "text": texts}), out)
    written = read(out.getvalue())["text"]
    assert [t[1:] if t.startswith("'") else t for t in written] == texts
    for cell in written:
        assert not re.match(r"[=+\-@\t\r\n\uff1d]", cell) or float(cell) == float(cell)


def test_other_texts_numbers_and_missing_values_stay():
    frame = pd.DataFrame({"text": [*PLAIN, None], "number": [-1.5] * (len(PLAIN) + 1)})
    frame["kind"] = pd.Categorical(["=x"] * len(frame))
    out = io.StringIO()
    write_csv(frame, out)
    written = read(out.getvalue())
    assert written["text"].tolist() == [*PLAIN, ""]
    assert set(written["number"]) == {"-1.5"}
    assert set(written["kind"]) == {"'=x"}
    assert frame["kind"][0] == "=x"  # what is written is a copy


def test_compress_writes_no_formulas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = (["=HYPERLINK(1)", "-2+3", "-7", "clerk", "'quoted"] * 40)[:199]
    frame = pd.DataFrame({"@id": [f"+{k}x" for k in range(199)], "=job": job, "y": [0, 1, 1, 0, 1, 0] * 33 + [1]})
    frame.to_csv("d.csv", index=False)
    assert call("aggregate d.csv --label y --features =job --categorical =job --pairs none --out t") == 0
    assert call("compress t --budget 2 --out c.csv") == 0
    written = pd.read_csv("c.csv", dtype=str, keep_default_na=False)
    assert set(written["feature"]) == {"'=job"}
    assert set(written["value"]) == {"'=HYPERLINK(1)", "'-2+3", "-7", "clerk", "''quoted", ""}
    assert call("compress t --budget 2 --apply d.csv --out rows.csv") == 0
    written = pd.read_csv("rows.csv", dtype=str)
    assert list(written) == ["'@id", "'=job", "y"]
    assert written["'@id"].tolist() == [f"'+{k}x" for k in range(199)]
    assert set(written["'=job"]) <= {"0", "1"}
