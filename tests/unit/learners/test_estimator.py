"""Estimators: the declared observation, and models kept without pickle."""

import json

import numpy as np
import pytest

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables


class Keeper(Estimator):
    """Learns one of everything that a model may keep."""

    observes = ContingencyTables

    def __init__(self, rate=0.5, names=("a", "b"), random_state=None):
        self.rate = rate
        self.names = names
        self.random_state = random_state

    def _fit(self, observation):
        self.encoder_ = observation.encoder
        self.matrix_ = np.arange(6.0).reshape(2, 3)
        self.whole_ = np.array([1, 2], dtype=np.int16)
        self.nested_ = {(0, 1): np.ones(2), "text": [1, {"deep": np.zeros((2, 2))}, (1, "t")], 3: None}
        self.scalar_ = np.float64(0.25)
        self.flag_ = np.bool_(True)
        self.empty_ = {}
        self.trace_ = [object()]
        self._cache = object()


class Other(Keeper):
    """Another class."""


@pytest.fixture
def fitted(records):
    return Keeper(rate=0.25).fit(ContingencyTables.from_records(records, "y"))


def test_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["model.json", "model.npz"]  # no pickle
    back = Estimator.load(tmp_path / "m", trusted=[__name__])
    assert type(back) is Keeper
    assert back.rate == 0.25
    assert back.encoder_ == fitted.encoder_
    np.testing.assert_array_equal(back.matrix_, fitted.matrix_)
    assert back.whole_.dtype == np.int16
    assert list(back.nested_) == [(0, 1), "text", 3]
    np.testing.assert_equal(back.nested_, fitted.nested_)
    assert (back.scalar_, back.flag_, back.empty_) == (0.25, True, {})
    assert not hasattr(back, "trace_")
    assert not hasattr(back, "_cache")


def test_an_array_of_objects_is_not_kept(fitted, tmp_path):
    fitted.nested_["text"][1]["deep"] = np.array([object()], dtype=object)
    with pytest.raises(TypeError, match=r"nested_.*objects"):
        fitted.save(tmp_path / "m")
    with pytest.raises(DataError, match="no model here"):
        Estimator.load(tmp_path / "m")


def test_loading_what_is_not_there(fitted, tmp_path):
    with pytest.raises(DataError, match=r"model\.json is missing"):
        Estimator.load(tmp_path)
    fitted.save(tmp_path / "m")
    with pytest.raises(DataError, match="holds a Keeper, not a Other"):
        Other.load(tmp_path / "m", trusted=[__name__])
    state = json.loads((tmp_path / "m/model.json").read_text())
    (tmp_path / "m/model.json").write_text(json.dumps({**state, "params": {"a": 1}}))
    with pytest.raises(DataError):
        Estimator.load(tmp_path / "m", trusted=[__name__])
