"""What a run prints, and that an interrupt ends everything."""

import os
import signal
import time

import pytest
from project import spiked

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def small(places):
    """A project for all tests of this file, each of which goes on where the one before it ended."""
    return spiked(places, "spike_chain", "spike_regions")


def test_the_last_lines_say_where_everything_is(small):
    small.overlay["show"] = ["spike_chain"]
    outcome = small.succeed()
    assert outcome.said[-1] == "agglearn: read them at results/site/index.html"
    lines = outcome.text.splitlines()
    title = lines.index("Learning in stages")
    assert lines[title + 1].split()[-1] == "4"
    assert "Nothing to be done" in small.run().text


def test_an_interrupt_ends_every_process(small):
    method = {"class": "bags.Planted", "observe": "bags", "params": {"how": "hang"}}
    small.overlay["experiments"]["spike_regions"]["methods"]["planted"] = method
    process = small.start(start_new_session=True)
    while not list(small.results.glob("runs/.*")):  # the method hangs in it
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 1, text
    for _ in range(600):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("processes are left")
    del small.overlay["experiments"]["spike_regions"]["methods"]["planted"]
    small.succeed()
    assert "Nothing to be done" in small.run().text
