"""What a run prints, and that an interrupt ends everything."""

import os
import signal
import time

import pytest
from project import spiked

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_an_interrupt_ends_every_process_and_the_last_lines_of_the_next_run_say_where_everything_is(places):
    small = spiked(places, "spike_chain", "spike_regions")
    small.overlay["show"] = ["spike_chain"]
    methods = small.overlay["experiments"]["spike_regions"]["methods"]
    methods["planted"] = {"class": "bags.Planted", "observe": "bags", "params": {"how": "hang"}}
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
    del methods["planted"]
    outcome = small.succeed()
    assert outcome.said[-1] == "agglearn: read them at results/site/index.html"
    lines = outcome.text.splitlines()
    assert lines[lines.index("Learning in stages") + 1].split()[-1] == "4"
    assert "Nothing to be done" in small.run().text
