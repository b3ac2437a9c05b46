"""Populations with a known truth, and records from files."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from agglearn.datasets import LogLinear, Packaged, RecordStore, Tabular
from agglearn.datasets.simulated import weights
from agglearn.encoding import FrameEncoder
from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.seeds import derive_generator

ALARM = 1e-6
SIZES = {"n_features": 3, "n_modalities": 4, "strength": 0.8, "n": 20_000, "weights_seed": 0}


def exact_mass(model: dict) -> np.ndarray:
    """(m, …, m, 2) probabilities of every (x, y), by summing the weights of each state one by one."""
    d, m = model["n_features"], model["n_modalities"]
    named = {k: v for k, v in model.items() if k != "n"}
    mu, theta, intercept = weights(d, m, model["strength"], derive_generator("loglinear", sorted(named.items())))
    mass = np.empty((m,) * d + (2,))
    for x in np.ndindex(*(m,) * d):
        at = [i * m + v for i, v in enumerate(x)]
        on = [(a, b) for a in at for b in at if a <= b]
        for y in (0, 1):
            mass[(*x, y)] = np.exp(sum(mu[p] + y * theta[p] for p in on) + y * intercept)
    return mass / mass.sum()


def misfits(frame: pd.DataFrame, y: np.ndarray, mass: np.ndarray) -> list[float]:
    """p-values of Pearson's test of every single and pair frequency, labels included."""
    values, out = np.column_stack([*(frame[c].str[1:].astype(int) for c in frame), y]), []
    for pair in itertools.combinations_with_replacement(range(mass.ndim), 2):
        axes = sorted(set(pair))
        expected = mass.sum(axis=tuple(set(range(mass.ndim)) - {*axes})) * len(y)
        seen = np.histogramdd(values[:, axes], [np.arange(mass.shape[a] + 1) for a in axes])[0]
        out.append(chi2.sf(((seen - expected) ** 2 / expected).sum(), expected.size - 1))
    return out


def test_loglinear_draws_its_population():
    drawn = LogLinear(**SIZES).draw(seed=1)
    p_values = misfits(drawn.frame, drawn.y, exact_mass(SIZES))
    assert len(p_values) == 10
    assert min(p_values) > ALARM / len(p_values)


@pytest.mark.parametrize("wrong", ["weights", "label", "independent"])
def test_a_wrong_population_is_rejected(wrong):
    drawn = LogLinear(**SIZES).draw(seed=1)
    frame, y, mass = drawn.frame, drawn.y, exact_mass(SIZES)
    if wrong == "weights":
        mass = exact_mass(SIZES | {"weights_seed": 1})
    elif wrong == "label":
        y = 1 - y
    else:  # singles kept, pairs broken
        frame = frame.assign(x1=np.random.default_rng(0).permutation(frame.x1))
    assert min(misfits(frame, y, mass)) < ALARM / 10


def test_loglinear_probabilities_are_the_truth():
    drawn = LogLinear(**SIZES).draw(seed=2)
    mass = exact_mass(SIZES)
    x = tuple(drawn.frame[c].str[1:].astype(int).to_numpy() for c in drawn.frame)
    np.testing.assert_allclose(drawn.probabilities, mass[(*x, 1)] / mass[x].sum(-1))
    assert drawn.parameters["theta"].shape == (12, 12)


def test_loglinear_seeds_and_parameters():
    one, two = (LogLinear(**SIZES).draw(seed=s) for s in (1, 2))
    pd.testing.assert_frame_equal(LogLinear(**SIZES).draw(seed=1).frame, one.frame)
    assert not one.frame.equals(two.frame)
    np.testing.assert_array_equal(one.parameters["theta"], two.parameters["theta"])
    assert len(LogLinear.from_entry({"params": SIZES}, {"n": 7}).draw(seed=1).y) == 7
    with pytest.raises(ConfigError, match="takes no 'rows'"):
        LogLinear.from_entry({}, {"rows": 3})
    with pytest.raises(DataError, match="too many to enumerate"):
        LogLinear(n_features=30, n_modalities=10).draw(0)


def parse(tmp_path, texts: dict[str, str], entry: dict) -> tuple[RecordStore, dict]:
    """Records of files, and what was told of them."""
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "-".join(["out", *texts])
    out.mkdir()
    told = Tabular.from_entry(entry).parse({name: tmp_path / name for name in texts}, out)
    return RecordStore.open(out), told


def test_text_files(tmp_path):
    text = "|comment\n39, ?, >50K.\n, b, <=50K\n"
    form = {"separator": ", ", "columns": ["age", "job", "income"], "comment": "|", "missing": ["?"]}
    entry = {"format": form, "label": {"column": "income", "positive": [">50K", ">50K."]}}
    store, _ = parse(tmp_path, {"a.csv": text}, entry)
    assert store.labels().tolist() == [1, 0]
    frame = store.features()
    assert list(frame) == ["age", "job"]
    assert frame.isna().to_numpy().tolist() == [[False, True], [True, False]]


LABEL, ABOVE = {"label": {"column": "y"}}, {"label": {"column": "y", "above": 1.5}}


def test_logarithms_of_columns(tmp_path):
    """Of base 2, rounded down, what is added stands in the entry; what has no logarithm is missing."""
    text = "a,b,c,y\n0,1,-4,0\n,2,-3,1\n9,3,,0\n9,3,0,1\n9,3,5,0\n"
    store, _ = parse(tmp_path, {"a.csv": text}, {**LABEL, "features": {"log": ["a"], "log2": {"c": 3}}})
    np.testing.assert_allclose(store.features()["a"], np.log([1, np.nan, 10, 10, 10]))
    assert store.features()["b"].tolist() == [1, 2, 3, 3, 3]
    np.testing.assert_array_equal(store.column("c"), [np.nan, np.nan, np.nan, 1, 3])


@pytest.mark.parametrize(
    ("text", "entry", "said"),
    [
        ("", LABEL, "empty"), ("a,y\n", LABEL, "no rows"), ("a,z\n1,0\n2,1\n", LABEL, "no label column 'y'"),
        ("a,y\n1,0\n2,1\n3,2\n", LABEL, "must have two values, it has 3"), ("a,y\n1,no\n2,yes\n", LABEL, "positive"),
        ("a,y\n1,0\n2\n,1,2,3\n", LABEL, "cannot be read"),
        ("a,y\n1,0\nx,1\n", {**LABEL, "features": {"numeric": ["a"]}}, "column 'a' is numeric but row 2 holds 'x'"),
        ("a,y\n1,0\n2,1\n", {**LABEL, "features": {"drop": ["b"]}}, r"features\.drop: no column 'b'"),
        ("a,y\n1,0\n-2,1\n", {**LABEL, "features": {"log": ["a"]}}, r"features\.log: column 'a' has -2"),
        ("a,y\n1,0\n2,1\n", {**LABEL, "split": {"train": "b.csv", "test": "a.csv"}}, "no file 'b.csv'"),
        ("a,y\n1,0\n2,1\n", {}, "no label"),
        ("a,y\n1,1\n2,2\n3,\n", ABOVE, r"label 'y' is missing in 1 row.*missing: drop"),
        ("a,y\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n", {"label": {"column": "y", "positive": [1, 2, 3]}}, r"besides.*\[4, 5, 6\]"),
        ("a,y\n1,1\n2,2\n3,3\n", {"label": {"column": "y", "positive": [1]}}, r"must have two values.*\[2, 3\]"),
        ("a,y\n1,1\n2,2\n", {"label": {"column": "y", "positive": [1, 2]}}, "must have two values"),
        ("a,y\n1,0\n2,1\n", {"label": {"column": "y", "missing": "keep"}}, "label.missing: 'keep'"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(tmp_path, text, entry, said):
    with pytest.raises(DataError, match=said):
        parse(tmp_path, {"a.csv": text}, entry)


def test_records_without_a_label_are_dropped_where_asked(tmp_path, caplog, capsys):
    caplog.set_level("INFO", logger="agglearn.datasets")
    entry = {"split": {"train": "a.csv", "test": "b.csv"}, "label": {"column": "y", "above": 1.5, "missing": "drop"}}
    texts = {"a.csv": "a,y\n1,1\n2,2\n3,\n4,2\n", "b.csv": "a,y\n5,\n6,1\n7,3\n"}
    store, told = parse(tmp_path, texts, entry)
    assert (told["rows"], told["dropped"]) == (5, 2)
    assert "label 'y' is missing in 2 of 7 rows" in caplog.text
    assert capsys.readouterr().out == ""
    assert store.labels().tolist() == [0, 1, 1, 0, 1]
    assert [float(a) for a in store.features().a] == [1, 2, 4, 6, 7]
    assert store.header["parts"] == {"train": [0, 3], "test": [3, 5]}


def test_a_column_with_empty_fields_in_one_of_two_files(tmp_path):
    first, second = "1,01,0\n2,02,1\n", "3,x,0\n,04,1\n"
    parts = ({"a.csv": f"a,b,y\n{first}", "b.csv": f"a,b,y\n{second}"}, {"c.csv": f"a,b,y\n{first}{second}"})
    two, one = (parse(tmp_path, texts, LABEL)[0].features() for texts in parts)
    pd.testing.assert_frame_equal(two, one)
    assert two.b.tolist() == ["01", "02", "x", "04"]
    assert FrameEncoder.fit(two).features[0].edges
    columns = {"numbers": [1, 2], "texts": ["x", "z"], "empty": [None, None]}
    files = {f"{name}.parquet": tmp_path / f"{name}.parquet" for name in columns}
    for path, values in zip(files.values(), columns.values(), strict=True):
        pd.DataFrame({"a": values, "y": [0, 1]}).to_parquet(path)
    numbers, texts, empty = files.items()
    Tabular.from_entry(LABEL).parse(dict([numbers, empty]), tmp_path)
    assert RecordStore.open(tmp_path).features().a.notna().tolist() == [True, True, False, False]
    with pytest.raises(DataError, match="column 'a' holds text in one file and numbers in another"):
        Tabular.from_entry(LABEL).parse(dict([numbers, texts]), tmp_path)


def test_packaged(tmp_path):
    entry = {"params": {"loader": "no_such_package.load"}, "label": {"column": "y"}}
    with pytest.raises(NotAvailable, match="no_such_package is not installed"):
        Packaged.from_entry(entry).parse({}, tmp_path)
    entry = {"params": {"loader": "sklearn.datasets.load_breast_cancer"}, "label": {"column": "target", "positive": 1}}
    said = Packaged.from_entry(entry).parse({}, tmp_path)
    assert (said["rows"], said["columns"]) == (569, 30)
    assert RecordStore.open(tmp_path).labels().sum() == 357
