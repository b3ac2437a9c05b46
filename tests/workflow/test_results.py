"""Results are those of the code and configuration that they name: what runs again, when Snakemake's records are lost or it is forced."""

import fcntl
import shutil

import pytest
from project import spiked

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def small(places):
    """A project that has run one experiment on simulated data, with a planted method."""
    made = spiked(places, "spike_regions")
    made.overlay["experiments"]["spike_regions"] |= {"batch_by": ["method"]}
    planted = {"class": "bags.Planted", "observe": "bags", "params": {"how": "spawn"}}  # a method may spawn processes
    made.overlay["experiments"]["spike_regions"]["methods"]["planted"] = planted
    made.succeed()
    return made


FITTED = [f"results/measurements/spike_regions/{method}.parquet" for method in ("planted", "threshold")]


def changed(project, before) -> set[str]:
    """Methods of the runs that were computed since."""
    after = project.computed()
    return {r["method"] for r in project.records() if after[r["run"]] != before.get(r["run"])}


def rules_run(outcome) -> set[str]:
    """Rules of the jobs of a run, by the table that Snakemake prints."""
    lines = outcome.text.partition("Job stats:")[2].partition("\ntotal ")[0].splitlines()
    return {line.split()[0] for line in lines[3:]}


def statuses(project) -> set[str]:
    return set(project.table("spike_regions").query("method == 'threshold'").status)


def test_without_records_what_was_computed_otherwise_is_marked(small):
    """Snakemake then goes by the times of files."""
    before = small.computed()
    shutil.rmtree(small.folder / ".snakemake")
    assert "Nothing to be done" in small.run().text
    small.edit("tests/workflow/spikes/bags.py", "1 - observation.counts", "1.0 - observation.counts")
    small.succeed(*FITTED, "results/tables/spike_regions.csv", "--forcerun", "render")
    assert changed(small, before) == set()
    assert statuses(small) == {"stale"}
    small.succeed("--forcerun", "fit")
    assert changed(small, before) == {"planted", "threshold"}
    assert statuses(small) == {"ok"}


@pytest.mark.parametrize(("arguments", "methods"), [
    (["--forcerun", "fit"], set()),
    (["--forcerun", FITTED[0], "--config", "reuse=false"], {"planted"}),
])  # fmt: skip
def test_forced_fits_are_computed_again_where_they_may_not_be_reused(small, arguments, methods):
    before = small.computed()
    outcome = small.succeed(*FITTED, *arguments)
    assert "fit" in rules_run(outcome)
    assert changed(small, before) == methods


def test_what_runs_no_job_works_beside_a_run(small):
    with open(small.results / ".lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for arguments in (["--summary"], ["--dag"], ["--lint"], ["--list-rules"]):
            outcome = small.run(*arguments)
            assert not [line for line in outcome.said if "another run" in line], arguments
            assert outcome.said == [] or arguments == ["--lint"]
        assert "another run is working in this folder" in small.run("-F").said[0]
