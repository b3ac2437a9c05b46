"""What is missing, fails, is killed or is wrong: the rest stands, and one line says what to do."""

import os
import signal
import time

import pytest
from project import adult_like, spiked

from agglearn_workflow.runs import products

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def small(places):
    """A project that runs the spike on regions only."""
    return spiked(places, "spike_adult", "spike_regions", run=["spike_regions"])


def plant(project, **methods):
    wanted = project.overlay["experiments"]["spike_regions"]
    for name, params in methods.items():
        wanted["methods"][name] = {"class": "bags.Planted", "observe": "bags", "params": params}


def test_failed_and_missing_cells_are_stated(small):
    plant(small, planted={"how": {"grid": ["raise", "kill", "hang", "lack", "stop", "none"]}})
    small.overlay["experiments"]["spike_regions"] |= {"time_limit": 3, "seeds": [0]}
    small.overlay["run"] = ["spike_regions", "spike_adult"]  # Adult can be had nowhere
    outcome = small.run()
    assert outcome.status == 1, outcome.text[-3000:]
    said = {r["params"]: (r["status"], r["reason"]) for r in small.records() if r["method"] == "planted"}
    assert said == {
        '{"how": "raise"}': ("failed", "ZeroDivisionError: matrix is singular"),
        '{"how": "kill"}': ("failed", "the process was ended by SIGKILL (out of memory?)"),
        '{"how": "hang"}': ("failed", "stopped after the limit of 3 s"),
        '{"how": "lack"}': ("unavailable", "pyspark is not installed"),
        '{"how": "stop"}': ("stopped", "> 8 s"),
        '{"how": "none"}': ("ok", None),
    }
    assert set(small.table("spike_regions").status) == {"ok", "failed", "unavailable", "stopped"}
    assert (small.table("spike_adult").status == "unavailable").all()
    assert any(line.startswith("agglearn: not available: adult") for line in outcome.said)
    assert any("failed: spike_regions" in line for line in outcome.said)
    before = small.computed()
    again = small.run()
    assert again.status == 1  # while the failure stands
    assert small.computed() == before
    small.succeed("spike_adult")
    plant(small, planted={"how": {"grid": ["lack", "stop"]}})  # what is missing or stopped is no failure
    small.succeed()
    after = small.computed()
    tried_again = {r["status"] for r in small.records() if after[r["run"]] != before[r["run"]]}
    assert tried_again == {"unavailable"}


def test_killed_and_started_again(small):
    plant(small, planted={"how": "slow"})
    small.overlay["experiments"]["spike_regions"] |= {"seeds": list(range(6)), "batch_by": ["dataset"]}
    process = small.start("spike_regions", start_new_session=True)
    for _ in range(3000):
        done = {r["run"] for r in small.records() if r["method"] == "planted"} if small.results.exists() else set()
        if len(done) >= 2:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)
    kept = small.computed()
    assert 2 <= len(done) < 6
    (small.folder / "hurry").touch()
    assert "--unlock" in small.run("spike_regions").text  # Snakemake alone asks for it
    outcome = small.reproduce("spike_regions")
    assert outcome.status == 0, outcome.text[-2000:]
    after = small.computed()
    assert len(after) == 12
    assert all(after[k] == kept[k] for k in kept)  # what was finished is not done again
    assert not list(small.results.glob("runs/.*.old.*"))


def test_second_start_leaves_and_disturbs_nothing(small):
    plant(small, planted={"how": "slow"})
    small.overlay["experiments"]["spike_regions"]["seeds"] = [0, 1, 2, 3]
    process = small.start("spike_regions")
    while not (small.results / ".lock").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    other = small.run("spike_regions")
    assert other.status != 0
    assert "Directory cannot be locked" in other.text
    assert "Traceback" not in other.text
    again = small.reproduce("spike_regions")  # which removes locks of killed runs only
    assert again.status != 0
    assert len(again.said) == 1
    assert "another run is working in this folder" in again.said[0]
    (small.folder / "hurry").touch()
    process.communicate()
    assert process.returncode == 0


def test_jobs_wait_for_memory(small):
    """The machine's memory is the default limit; jobs that are expected to take more than all of it run one at a time."""
    least = "return min(physical_bytes(), cgroup_limit() or physical_bytes())"
    small.edit("src/agglearn/machine.py", least, "return 500 * 10**6")
    small.overlay["experiments"]["spike_regions"]["batch_by"] = ["dataset", "seed"]
    outcome = small.reproduce("spike_regions", "--", "--quiet", "host")
    assert outcome.status == 0, outcome.text[-2000:]
    assert "mem_mb=500" in outcome.text
    running, most = 0, 0
    for line in outcome.text.splitlines():
        running += line.startswith(("rule ", "localrule ")) - line.startswith("Finished jobid:")
        most = max(most, running)
    assert most == 1


def test_data_that_are_wrong_leave_the_rest_and_the_site(small):
    right = adult_like(200, 1, test=False)
    small.write_data("adult", "adult", "adult.data", right)
    small.write_data("adult", "adult", "adult.test", adult_like(100, 2, test=False))
    (small.folder / "mirror/adult/adult.data").write_text("39, State-gov\n")
    small.overlay["run"] = ["spike_regions", "spike_adult"]
    small.overlay["datasets"]["adult"] |= {"label": {"positive": ">50K"}}
    outcome = small.run()
    assert outcome.status == 1
    assert any("adult.data: sha256 is" in line and "restore the file" in line for line in outcome.said)
    assert set(small.table("spike_adult").query("dataset == 'adult'").status) == {"failed"}
    assert small.table("spike_regions")["mean"].notna().all()
    assert (small.results / "site/index.html").exists()
    small.write_data("adult", "adult", "adult.data", right)
    small.succeed("results/records/adult")
    assert products.manifest(small.results / "records/adult")["status"] == "ok"
