"""No name, value or label of a file can make a terminal obey: whatever a command prints is printable."""

import pandas as pd
import pytest
from cli_calls import call, told

CLEAR, RED, BACKWARDS, BELL = "\x1b[2J", "\x9b31m", "\u202e", "\x07"
NAMES = {"n": f"a{CLEAR}", "code": f"b{RED}_id", "text": f"c{BACKWARDS}", "late": f"d{BELL}"}
SCHEMA = """reviewed: true
one_row_per_person: true
label: {{column: y, positive: '1', negative: '0'}}
features: {{"{name}": {{values: [p]}}}}
"""


def calls(file: str) -> list[tuple[int, str]]:
    """Exit statuses and commands. No name has a space."""
    aggregate, code, late = f"aggregate {file} --label y", NAMES["code"], NAMES["late"]
    return [
        (0, f"{aggregate} --hash {late}:5 --out tables"),
        (0, f"{aggregate} --categorical {code},{late} --pairs none --out cat"),
        (0, f"aggregate {file} --schema schema.yaml --out declared"),
        (1, f"aggregate {file} --schema wrong.yaml --out x"),
        (0, f"schema draft {file} --label y"),
        (1, f"schema draft {file} --label z{CLEAR}"),
        (0, "fit tables --method best_pair --out model"),
        (0, "predict model new.csv --out p.csv"),
        (1, "predict model narrow.csv --out x.csv"),
        (0, "compress cat --budget 4 --out c.csv"),
        (1, f"aggregate {file} --label z{CLEAR} --out x"),
        (1, "aggregate label.csv --label y --out x"),
        (1, f"{aggregate} --features z{CLEAR} --out x"),
        (2, f"{aggregate} --hash {late} --out x"),
        (1, f"{aggregate} --pairs z{CLEAR}:{NAMES['n']} --out x"),
        (1, f"aggregate none{CLEAR} --label y --out x"),
        (2, f"aggregate {file} --none{CLEAR}"),
    ]


@pytest.mark.parametrize("file", ["data.csv", "data.parquet"])
def test_everything_printed_is_printable(tmp_path, monkeypatch, file, capsys):
    monkeypatch.chdir(tmp_path)
    n = 40
    frame = pd.DataFrame({
        NAMES["n"]: [i / 7 for i in range(n)], NAMES["code"]: range(n), NAMES["text"]: [f"p{CLEAR}", "q"] * (n // 2),
        NAMES["late"]: [f"u{i % 30}{BELL}" for i in range(n)], "y": [0, 1, 1, 0] * (n // 4),
    })  # fmt: skip
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet")
    frame.assign(**{NAMES["text"]: f"new{CLEAR}"}).to_csv("new.csv", index=False)
    frame.drop(columns=NAMES["text"]).to_csv("narrow.csv", index=False)
    frame.assign(y=f"no{CLEAR}").to_csv("label.csv", index=False)
    (tmp_path / "schema.yaml").write_text(SCHEMA.format(name=r"c\u202e"))
    (tmp_path / "wrong.yaml").write_text(SCHEMA.format(name=r"e\e[2J"))
    for status, line in calls(file):
        assert call(line) == status, line
        printed = "".join(capsys.readouterr())
        assert printed.replace("\n", "").isprintable(), line
        assert printed
    out, err = told(capsys, f"aggregate {file} --label y --out again")
    assert r"a\x1b[2J" in out
    assert r"'b\x9b31m_id'" in err
