"""From data to an archive, and from the archive to the same pages in a copy that has no data and computes nothing."""

import shutil

import pytest
from project import Project, spiked

from agglearn_workflow.archive import store

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

CLAIM = {
    "source": "spike", "experiment": "spike_chain", "claim": "It learns.", "place": "here", "predicate": "at_least", "bound": -9,
    "value": {"method": "stages", "measure": "nllh", "params.prior": 4.0},
}  # fmt: skip
TABLES = [f"tables/spike_chain.{kind}" for kind in ("csv", "md", "tex", "html")]
SHOWN = [*TABLES, "figures/spike_chain.svg", "claims.json"]


def with_claim(places) -> Project:
    project = spiked(places, "spike_chain")
    project.overlay["experiments"]["spike_chain"] |= {
        "seeds": [0, 1, 2],
        "batch_by": [],
    }  # one batch, as from the archive
    project.overlay["claims"] = {"learns": CLAIM}
    return project


def shown(project) -> dict[str, str]:
    return {name: (project.results / name).read_text() for name in SHOWN}


def test_an_archive_shows_what_was_computed(places, tmp_path):
    first = with_claim(places)
    first.overlay["from"] = "both"
    first.succeed()
    computed = shown(first)
    assert len(store.read(first.folder / "archive", "spike_chain")) == 6
    shutil.copytree(first.folder / "archive", tmp_path / "archive")

    second = with_claim(places)  # in the place of the first
    second.overlay["from"] = "archive"
    shutil.copytree(tmp_path / "archive", second.folder / "archive")
    second.succeed()
    assert shown(second) == computed
    second.succeed("--report", "report.html")
    assert "spike_chain" in (second.folder / "report.html").read_text()
    assert not [name for name in ("runs", "observations", "records", "mlflow.db") if (second.results / name).exists()]
    page = (second.results / "site/index.html").read_text()
    assert "nothing was computed for these pages, and data were not checked. 6 of 6 runs are archived" in page
    assert "Archived: 6 of 6 runs" in (second.results / "site/spike.html").read_text()

    # `both` takes what the archive has, by fits: what was shown is not taken for what a fit made
    second.overlay["from"] = "both"
    second.succeed()
    logs = "".join(path.read_text() for path in second.results.glob("logs/fit/spike_chain/*.log"))
    assert "0 of 6 runs to compute, 6 taken from the archive" in logs
