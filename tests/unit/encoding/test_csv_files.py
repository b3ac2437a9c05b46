"""One reader of CSV files: a user's own file and a data set's file are read alike."""

import gzip

import pandas as pd
import pytest

from agglearn.cli.tabular_input import read_records
from agglearn.datasets import Streamed, Tabular
from agglearn.datasets.base import RecordStore
from agglearn.encoding.columns import as_text
from agglearn.errors import DataError

NAMES = ["a", "b", "y"]


def parse(cls, path, tmp_path, **form):
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    entry = {"title": "t", "label": {"column": "y"}, "format": form}
    cls.from_entry(entry).parse({path.name: path}, out)
    store = RecordStore.open(out)
    return store.features().apply(as_text), store.labels().tolist()


@pytest.mark.parametrize(
    ("header", "text", "separator"),
    [
        ("a,b,y\n", "1,x,0\n?,,1\n3,z,0\n", ","),
        ("\ufeffa, b, y\n", "1, x, 0\n?, , 1\n3, z, 0\n", ", "),
        ("a\tb\ty\n", "1\tx\t0\n?\t\t1\n3\tz\t0\n", "tab"),
    ],
)
def test_every_reader_has_the_same_separators_and_missing_marks(tmp_path, header, text, separator):
    (tmp_path / "named.csv").write_text(header + text)
    (tmp_path / "bare.csv").write_text(text.replace(", ", ","))
    own = read_records(tmp_path / "named.csv", separator, ["?"])
    assert own.y.tolist() == ["0", "1", "0"]
    expected = pd.DataFrame({"a": ["1", None, "3"], "b": ["x", None, "z"]})
    pd.testing.assert_frame_equal(own[["a", "b"]].astype(object).where(own.notna(), None), expected)
    form = {"separator": separator, "missing": ["?"]}
    features, y = parse(Tabular, tmp_path / "named.csv", tmp_path, **form)
    pd.testing.assert_frame_equal(features, expected)
    assert y == [0, 1, 0]
    form["separator"] = separator.strip(" ")
    features, y = parse(Streamed, tmp_path / "bare.csv", tmp_path, columns=NAMES, **form)
    pd.testing.assert_frame_equal(features, expected)
    assert y == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.csv", b"", "the file is empty; give a CSV with a header line"),
        ("f.csv", b"a,b,y\n", "the file has a header but no rows"),
        ("f.csv", b"a,b,b\n1,2,0\n", "two columns are named 'b'; rename one in the header"),
        ("f.csv", b"a,,y\n1,2,0\n", "column 2 has no name; name it in the header"),
        ("f.csv", b"a,b,y\n1,2,0,5\n1,2,0,5\n", "the rows have more fields than the header; mend the file"),
        ("f.csv", "a,b,y\né,2,0\n".encode("latin-1"), "not UTF-8 text"),
        ("f.csv.gz", gzip.compress(b"a,b,y\n1,2,0\n" * 99, mtime=0)[:-20], "is cut off or damaged"),
    ],
)
def test_every_reader_has_the_same_errors(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as own:
        read_records(tmp_path / name)
    with pytest.raises(DataError, match=message) as dataset:
        parse(Tabular, tmp_path / name, tmp_path)
    assert str(own.value) == str(dataset.value)


def test_a_line_of_another_form_in_a_large_file(tmp_path):
    (tmp_path / "f.txt").write_text("1,x,0\n2,y\n")
    with pytest.raises(DataError, match=r"f\.txt: cannot be read as text separated by ',' .*got 2"):
        parse(Streamed, tmp_path / "f.txt", tmp_path, columns=NAMES)


def test_large_codes_stay_exact_where_a_value_is_missing(tmp_path):
    code = 2**60 + 1
    (tmp_path / "f.csv").write_text(f"a,b,y\n{code},1,0\n,2,1\n")
    features, _ = parse(Tabular, tmp_path / "f.csv", tmp_path)
    assert features.a.tolist() == [str(code), None]
    assert features.b.tolist() == ["1", "2"]
