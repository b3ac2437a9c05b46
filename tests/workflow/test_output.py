"""What `make reproduce` and `make quick` print, and that an interrupt ends everything."""

import copy
import os
import signal
import time

import pytest
from project import CHAIN, REGIONS, SPIKE_DATA, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
OUTPUT = ("--logger", "agglearn")


@pytest.fixture
def small(tmp_path, cache):
    made = Project(tmp_path, cache)
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
    assert any(line.startswith("agglearn: spike  done, ") for line in lines)
    assert outcome.said[-1] == "agglearn: read them at results/site/index.html"
    [log] = [line.removeprefix("agglearn: whole log: ") for line in outcome.said if "whole log" in line]
    assert "Finished jobid" in (small.folder / log).read_text()
    title = lines.index("Markov chain")
    assert lines[title + 1].split()[-1] == "4"
    assert small.run(*OUTPUT).said[-1] == outcome.said[-1]  # also where nothing is to be done


def test_a_job_that_fails_is_one_line_with_its_log(small):
    small.edit("tests/workflow/spikes/bags.py", "class Planted", "raise ImportError('broken')\n\n\nclass Planted")
    outcome = small.run(*OUTPUT)
    assert outcome.status == 1
    error = "agglearn: error: observe spike_regions regions: ImportError: broken (log: results/logs/observe/spike_regions/regions.log)"
    assert outcome.said.count(error) == 2  # when it happens, and at the end
    assert (small.results / "tables/spike_chain.csv").exists()


def test_an_interrupt_ends_every_process(small):
    plant(small, "hang")
    process = small.start(*OUTPUT, start_new_session=True)
    while not any(r["method"] == "threshold" for r in small.records()):
        time.sleep(0.1)
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
