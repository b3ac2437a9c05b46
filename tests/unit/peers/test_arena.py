"""The task of the arena: which records are public, what a rival without its package is, how heads are measured."""

import numpy as np
import pandas as pd
import pytest
from samples import shipped_config

from agglearn import optional
from agglearn.encoding import FrameEncoder
from agglearn.errors import NotAvailable
from agglearn.observations import Records
from agglearn.tasks.classification import HeldOutRows
from arena import records

FRAME = pd.DataFrame({"a": ["x", "y"] * 50})
Y = np.tile([0, 1], 50).astype(np.int8)


def test_public_records_are_no_private_ones():
    observed = records.take(Records(FrameEncoder.fit(FRAME), FRAME, Y), np.arange(80), np.arange(80, 100), 1.0, 1 / 800)
    assert (len(observed.y), len(observed.public_y), observed.delta) == (80, 20, 1 / 800)
    assert observed.codes.shape == (80, 1)


def test_the_first_head_has_no_key():
    class Head:
        def __init__(self, p):
            self.p = p

        def predict_proba(self, frame):
            return np.tile([1 - self.p, self.p], (len(frame), 1))

    rival = Head(0.1)
    rival.heads_ = {"": Head(0.5), "other": Head(0.25)}
    found = list(records.Arena().measure(rival, HeldOutRows(FRAME, Y), ["brier"]))
    assert [(m.value, m.keys) for m in found] == [(0.25, None), (0.3125, {"head": "other"})]


@pytest.mark.parametrize(
    ("name", "package"), [("AIM", "mbi"), ("MST", "mbi"), ("PrivatePGM", "mbi"), ("NoisyGradient", "jax")]
)
def test_a_rival_without_its_package_is_not_available(monkeypatch, name, package):
    import arena.linear
    import arena.marginals
    import arena.selection

    def missing(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    rival = next(getattr(m, name) for m in (arena.linear, arena.selection, arena.marginals) if hasattr(m, name))
    observed = records.take(Records(FrameEncoder.fit(FRAME), FRAME, Y), np.arange(80), np.arange(80, 100), 1.0, 1e-3)
    with pytest.raises(NotAvailable, match=f"{package} is not installed"):
        rival(random_state=0).fit(observed)


def test_the_experiment_names_its_folder_of_code():
    assert "workflow/peers" in shipped_config()["code"]
