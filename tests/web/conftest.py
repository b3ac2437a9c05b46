"""The results that a browser looks at: one run for all tests of pages."""

import copy

import pytest
from browser import BROWSER, DRIVER
from project import CHAIN, SPIKE_DATA, Project, adult_like, bank_like

FAILING = {
    "source": "maxent", "experiment": "maxent_table4", "place": "planted",
    "claim": "an NLLH of maximum entropy is above two",
    "predicate": "at_least", "bound": 2.0, "value": {"measure": "nllh", "method": "maxent", "dataset": "adult"},
    "deterministic": "the scale of the tests has one seed", "why": "No NLLH is above one.",
}  # fmt: skip


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A run with tables, lines, a map, claims of every kind, and data that are not there."""
    if BROWSER is None or not all(path.is_file() for path in DRIVER.values()):
        pytest.fail("no Chromium or no axe-core; `make web` installs them")
    shipped = ["maxent_table4", "labelsums_ladder", "collective_routes"]
    made = Project(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("cache"), shipped=shipped)
    made.write_data("adult", "adult", "adult.data", adult_like(1200, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(400, 2, test=True))
    made.write_data("bank", "bank_marketing", "bank-additional-full.csv", bank_like(1500, 3))
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN})
    made.overlay["claims"] = {"planted": FAILING}
    made.overlay["run"] = [*shipped, "spike_chain"]
    outcome = made.run()
    assert outcome.status == 0, outcome.text[-3000:]
    return made
