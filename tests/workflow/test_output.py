"""What `make reproduce` and `make quick` print, and that an interrupt ends everything."""

import copy
import os
import signal
import time

import pytest
from project import CHAIN, OWN_SERVER, REGIONS, SPIKE_DATA, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
OUTPUT = ("--logger=agglearn",)


@pytest.fixture
def small(places):
    made = Project(*places)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN, "spike_regions": REGIONS})
    made.overlay["run"] = ["spike_chain", "spike_regions"]
    return made


def plant(project, how):
    method = {"class": "bags.Planted", "observe": "bags", "params": {"how": how}}
    project.overlay["experiments"]["spike_regions"]["methods"]["planted"] = method


def test_few_lines_and_the_last_ones_say_where_everything_is(small):
    small.overlay["show"] = ["spike_chain"]
    outcome = small.run(*OUTPUT)
    assert outcome.status == 0, outcome.text
    lines = outcome.text.splitlines()
    assert len(lines) < 40
    assert "Finished jobid" not in outcome.text
    done = [line for line in lines if line.startswith("agglearn: spike  done ")]
    assert len(done) == 1
    assert done[0].endswith(": results/site/spike.html")
    assert outcome.said[-1] == "agglearn: read them at results/site/index.html"
    [log] = [line.removeprefix("agglearn: whole log: ") for line in outcome.said if "whole log" in line]
    assert "Finished jobid" in (small.folder / log).read_text()
    title = lines.index("Markov chain")
    assert lines[title + 1].split()[-1] == "4"
    assert small.run(*OUTPUT).said[-1] == outcome.said[-1]  # also where nothing is to be done


def test_a_job_that_fails_is_one_line_with_its_log(small):
    small.overlay["tracking"] = {"uri": "none"}
    small.edit("tests/workflow/spikes/bags.py", "class Planted", "raise ImportError('broken')\n\n\nclass Planted")
    outcome = small.run(*OUTPUT)
    assert outcome.status == 1
    error = "agglearn: error: observe spike_regions regions: ImportError: broken (log: results/logs/observe/spike_regions.log)"
    assert "Exception" not in outcome.text
    assert outcome.said.count(error) == 1  # when it happens; at the end stands what it leaves without result
    assert any(line.startswith("agglearn: failed: spike_regions, regions") for line in outcome.said)
    assert (small.results / "tables/spike_chain.csv").exists()


def test_a_page_is_there_while_another_source_runs_and_an_interrupt_ends_every_process(small):
    plant(small, "hang")
    small.overlay["experiments"]["spike_regions"]["source"] = "whiskers"  # after spike
    small.overlay["tracking"] = {"uri": "none"}
    small.environ |= OWN_SERVER
    process = small.start(*OUTPUT, start_new_session=True)
    index, hanging = small.results / "site/index.html", small.results / "logs/fit/spike_regions/regions.log"
    while not (index.exists() and hanging.exists()):
        assert process.poll() is None
        time.sleep(0.1)
    assert "Markov chain" in (small.results / "site/spike.html").read_text()
    assert "Not complete: whiskers" in index.read_text()
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 1, text
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("processes are left")
    small.environ.clear()
    small.overlay["experiments"]["spike_regions"]["methods"].pop("planted")
    assert small.run(*OUTPUT).status == 0
    assert "Not complete" not in index.read_text()
    assert (small.results / "site/whiskers.html").exists()
    assert "nothing to be done" in small.run(*OUTPUT).text.lower()
