"""Model folders from strangers: nothing of theirs runs, and what does not fit is refused by name."""

import io
import json
import math
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io

from agglearn.cli import main
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.labelsums import BoostedTreesSkyline
from agglearn.maxent import ExactMaxEntClassifier, LogisticSkyline, MaxEntClassifier, NaiveBayesClassifier
from agglearn.observations import ContingencyTables, Records
from agglearn_workflow.tracking.models import Predictor


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    return pd.DataFrame({"a": rng.choice(list("xyz"), 200), "b": rng.normal(size=200), "y": rng.integers(0, 2, 200)})


@pytest.fixture
def folder(frame, tmp_path):
    """An honest model folder, to be made hostile."""
    NaiveBayesClassifier().fit(ContingencyTables.from_records(frame, "y")).save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder: Path, change) -> None:
    """Rewrite model.json after `change(description)`."""
    description = json.loads((folder / "model.json").read_text())
    change(description)
    (folder / "model.json").write_text(json.dumps(description))


def replace_array(folder: Path, name: str, value: np.ndarray) -> None:
    with np.load(folder / "model.npz") as arrays:
        changed = {**arrays, name: value}
    np.savez_compressed(folder / "model.npz", **changed)


def assert_refused(folder: Path, said: str) -> None:
    with pytest.raises(DataError, match=said) as refusal:
        Estimator.load(folder)
    assert "\n" not in str(refusal.value)


def command(path: Path) -> dict:
    """A nested estimator that would run a command."""
    return {"__object__": {"class": "os.system", "params": {"command": f"touch {path}"}, "state": {}}}


@pytest.mark.parametrize("spoil", ["cut", "other type", "left", "feature_idx", "bitset_idx"])
def test_trees_of_strangers(frame, tmp_path, spoil):
    model = BoostedTreesSkyline(3, random_state=0).fit(Records.from_records(frame, "y"))
    model.save(tmp_path)
    content = model.trees_[:-9] if spoil == "cut" else skops.io.dumps(UnknownKind()) if spoil == "other type" else None
    if content is None:
        nodes = model._trees._predictors[0][0].nodes
        nodes["is_categorical"][0], nodes[spoil][0] = spoil == "bitset_idx", 10_000
        content = skops.io.dumps(model._trees)
    replace_array(tmp_path, "trees_", np.frombuffer(bytes(content), np.uint8))
    assert_refused(tmp_path, "trees_")


class UnknownKind:
    """Of no type that skops trusts."""


@pytest.mark.parametrize("where", ["state", "params", "top"])
def test_no_command_runs(folder, frame, tmp_path, where, capsys):
    planted = tmp_path / "planted"

    def change(description):
        if where == "top":
            description |= command(planted)["__object__"]
        else:
            description[where]["x_" if where == "state" else "smoothing"] = command(planted)

    edit(folder, change)
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main(["predict", str(folder), str(tmp_path / "d.csv")]) == 1
    assert "refused to import 'os.system'" in capsys.readouterr().err
    assert_refused(folder, r"refused to import 'os\.system'")
    with pytest.raises(DataError, match=r"refused to import 'os\.system'"):
        Predictor(folder)
    assert not planted.exists()


@pytest.mark.parametrize(
    "name",
    [
        "subprocess.Popen", "builtins.eval", "agglearn.saving.Iterable", "agglearn.errors.DataError", "agglearn.cli.main",
        "agglearn.__main__.main", "agglearnx.Thing", "agglearn.estimator.BaseEstimator", "sklearn.linear_model.LogisticRegression", 7,
    ],
)  # fmt: skip
def test_only_estimators_of_the_package_are_built(folder, name):
    edit(folder, lambda d: d.update({"class": name}))
    assert_refused(folder, r"refused to import|is not a class of saved|must be a dotted name")


def test_a_stranger_s_class_is_built_once_trusted(frame, tmp_path, monkeypatch):
    code = "from agglearn.maxent import NaiveBayesClassifier\n\n\nclass Mine(NaiveBayesClassifier):\n    pass\n"
    (tmp_path / "stranger.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    import stranger

    stranger.Mine().fit(ContingencyTables.from_records(frame, "y")).save(tmp_path / "m")
    with pytest.raises(DataError, match=r"refused to import 'stranger\.Mine'"):
        Estimator.load(tmp_path / "m")
    for trusted in (["stranger.Mine"], ["stranger"]):
        assert type(Estimator.load(tmp_path / "m", trusted=trusted)) is stranger.Mine


@pytest.mark.parametrize("name", ["predict_proba", "__class__", "_private_", "fit", "not an identifier_", "observes"])
def test_state_sets_learned_attributes_only(folder, name):
    edit(folder, lambda d: d["state"].update({name: 1}))
    assert_refused(folder, "is no learned attribute")


def test_objects_in_npz_are_refused(folder):
    np.savez(folder / "model.npz", theta_=np.array([{"a": 1}], dtype=object))
    assert_refused(folder, "Object arrays cannot be loaded")


def bomb(shape: tuple[int, ...], payload: bytes, kind="<f8") -> bytes:
    """An NPY member that declares `shape` and holds `payload`."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue() + payload


@pytest.mark.parametrize("shape", [(10**13,), (1 << 40, 1 << 40), (300,)])
def test_sizes_that_are_not_there_are_refused(folder, shape):
    with zipfile.ZipFile(folder / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("theta_.npy", bomb(shape, bytes(800)))
    assert_refused(folder, "damaged, or no model made by agglearn")


def test_empty_texts_without_number_are_refused(folder):
    """Each has no byte, so that a file of none declares any number."""
    with zipfile.ZipFile(folder / "model.npz", "w") as archive:
        archive.writestr("classes_.npy", bomb((1 << 33,), b"", "<U0"))
    assert_refused(folder, "classes_: arrays of type <U0 are refused")


def test_deep_nesting_is_one_error(folder):
    nested = "[" * 200_000 + "]" * 200_000
    text = (folder / "model.json").read_text().replace('"state": {', f'"state": {{"x_": {nested},', 1)
    (folder / "model.json").write_text(text)
    assert_refused(folder, "RecursionError")


@pytest.mark.parametrize(
    "text", ["", "[]", "nonsense", '{"class": "agglearn.maxent.NaiveBayesClassifier"}', "null", "7"]
)
def test_what_is_no_description_is_refused(folder, text):
    (folder / "model.json").write_text(text)
    with pytest.raises(DataError):
        Estimator.load(folder)


@pytest.fixture(scope="module")
def honest(frame, tmp_path_factory):
    """{class: honest model folder} of learners whose kernels read weights."""
    tables, records = ContingencyTables.from_records(frame, "y"), Records.from_records(frame, "y")
    models = [
        MaxEntClassifier(n_chains=50, max_iter=5, random_state=0).fit(tables),
        NaiveBayesClassifier().fit(tables),
        ExactMaxEntClassifier().fit(tables),
        LogisticSkyline(l2=1.0).fit(records),
    ]
    folders = {type(m).__name__: tmp_path_factory.mktemp(type(m).__name__) for m in models}
    for model in models:
        model.save(folders[type(model).__name__])
    return folders


KINDS = ["MaxEntClassifier", "NaiveBayesClassifier", "ExactMaxEntClassifier", "LogisticSkyline"]


@pytest.mark.parametrize("kind", ["MaxEntClassifier", "NaiveBayesClassifier"])
@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((4, 4)), np.zeros(6, dtype=np.int64), np.array(["a"] * 6)])
def test_shapes_and_types_are_checked(honest, tmp_path, kind, wrong):
    folder = shutil.copytree(honest[kind], tmp_path / "model")
    replace_array(folder, "theta_", wrong)
    assert_refused(folder, rf"{kind}\.theta_")


def test_kernels_get_no_index_beyond_an_array(honest, tmp_path):
    folder = shutil.copytree(honest["LogisticSkyline"], tmp_path / "model")
    with np.load(folder / "model.npz") as arrays:
        bounds = arrays["cells_bounds_"]
    replace_array(folder, "cells_bounds_", bounds + 10**6)
    assert_refused(folder, "must ascend from 0")


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_in_another_order_are_read(honest, frame, tmp_path, kind):
    shutil.copytree(honest[kind], tmp_path / "model")
    with np.load(honest[kind] / "model.npz") as arrays:
        swapped = {name: a.astype(a.dtype.newbyteorder(">")) for name, a in arrays.items()}
    np.savez_compressed(tmp_path / "model/model.npz", **swapped)
    expected = Estimator.load(honest[kind]).predict_proba(frame)
    np.testing.assert_array_equal(Estimator.load(tmp_path / "model").predict_proba(frame), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spoil", ["inf", "-inf", "nan", "half", "extended", "intercept"])
def test_weights_that_are_no_numbers_are_refused(honest, tmp_path, kind, spoil):
    folder = tmp_path / "model"
    shutil.copytree(honest[kind], folder)
    name = "coef_" if kind == "LogisticSkyline" else "theta_"
    with np.load(folder / "model.npz") as arrays:
        weights = arrays[name]
    if spoil == "intercept":
        edit(folder, lambda d: d["state"].update(intercept_=math.inf))
        name = "intercept_"
    elif spoil in ("half", "extended"):
        replace_array(folder, name, weights.astype(np.float16 if spoil == "half" else np.longdouble))
    else:
        weights.flat[1] = float(spoil)
        replace_array(folder, name, weights)
    assert_refused(folder, name)


def packed(*values) -> dict:
    return {"__tuple__": list(values)}


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("categorical.CategoricalEncoder", {"values": "xyz"}), ("categorical.CategoricalEncoder", {"values": packed(1, 2)}),
        ("categorical.CategoricalEncoder", {"name": 3, "values": packed("x")}),
        ("categorical.CategoricalEncoder", {"values": packed("x"), "has_missing": 100}),
        ("coded.CodedEncoder", {"size": 1 << 40}), ("coded.CodedEncoder", {"size": 2.5}), ("hashing.HashedEncoder", {"buckets": -1}),
        ("target.TargetEncoder", {"values": packed("x", "y"), "codes": packed(1, 99), "labels": packed("a", "b")}),
        ("binned.BinnedEncoder", {"edges": packed(2.0, 1.0)}), ("binned.BinnedEncoder", {"edges": packed("a")}),
    ],
)  # fmt: skip
def test_encoders_are_checked(folder, kind, params):
    def change(description):
        features = description["state"]["encoder_"]["__object__"]["params"]["features"]["__tuple__"]
        features[0] = {"__object__": {"class": f"agglearn.encoding.{kind}", "params": {"name": "a", **params}}}

    edit(folder, change)
    assert_refused(folder, r"is not allowed; it must be|whole number|outside its|do not ascend")
