"""A smaller scale leaves what a larger one has rendered alone."""

import json

import pytest
from project import spiked

pytestmark = pytest.mark.workflow


@pytest.fixture
def small(places):
    made = spiked(places, "spike_chain")
    made.overlay["experiments"]["spike_chain"]["seeds"] = {"smoke": [0], "default": [0, 1]}
    return made


def contents(folder):
    """Everything that was rendered in a folder, and what it was rendered from."""
    names = ("tables", "figures", "site", "measurements", "tracking", "outcome")
    return {p: p.read_bytes() for name in names for p in (folder / name).rglob("*") if p.is_file()}


@pytest.mark.slow
def test_smoke_then_default_then_smoke(small):
    small.succeed()
    assert set(small.table("spike_chain").n) == {1}  # in an empty folder smoke takes the usual place
    small.overlay["scale"] = "default"
    small.succeed()
    assert set(small.table("spike_chain").n) == {2}
    assert json.loads((small.results / "scale.json").read_text()) == {"scale": "default"}
    before, finished = contents(small.results), small.computed()

    small.overlay["scale"] = "smoke"
    outcome = small.succeed()
    assert (small.results / "smoke/tables/spike_chain.csv").exists()
    assert contents(small.results) == before
    assert (small.results / "smoke/site/index.html").exists()
    assert any("results/smoke/site/index.html" in line for line in outcome.said)
    assert small.computed() == finished  # its runs are those of default with fewer seeds

    small.overlay["scale"] = "default"
    assert "Nothing to be done" in small.run().text
