"""What is missing, fails, is killed or is wrong: the rest stands, and one line says what to do."""

import copy
import os
import signal
import time

import pytest
from project import CHAIN, REGIONS, SPIKE_DATA, Project, adult_like

pytestmark = pytest.mark.workflow


@pytest.fixture
def small(tmp_path, cache):
    """A project that runs the spike on regions only."""
    made = Project(tmp_path, cache)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN, "spike_regions": REGIONS})
    made.overlay["run"] = ["spike_regions"]
    return made


def plant(project, **methods):
    wanted = project.overlay["experiments"]["spike_regions"]
    for name, params in methods.items():
        wanted["methods"][name] = {"class": "bags.Planted", "observe": "bags", "params": params}


def test_failed_and_missing_cells_are_stated(small):
    plant(small, planted={"how": {"grid": ["raise", "kill", "hang", "lack", "none"]}})
    small.overlay["experiments"]["spike_regions"]["time_limit"] = 3
    small.overlay["run"] = ["spike_regions", "maxent_table4"]  # Adult and Bank can be had nowhere
    small.overlay["experiments"]["maxent_table4"] = {"seeds": [0]}
    outcome = small.run()
    assert outcome.status == 0, outcome.text[-3000:]
    said = {
        r["params"]: (r["status"], r["reason"]) for r in small.records() if r["method"] == "planted" and r["seed"] == 0
    }
    assert said['{"how": "raise"}'] == ("failed", "ZeroDivisionError: matrix is singular")
    assert said['{"how": "kill"}'] == ("failed", "the process was ended by SIGKILL (out of memory?)")
    assert said['{"how": "hang"}'] == ("failed", "stopped after the limit of 3 s")
    assert said['{"how": "lack"}'] == ("unavailable", "torch is not installed")
    assert said['{"how": "none"}'] == ("ok", None)
    traces = [p for p in small.results.glob("runs/*/traceback.txt") if "matrix is singular" in p.read_text()]
    assert len(traces) == 2
    table = small.table("spike_regions")
    assert set(table.status) == {"ok", "failed", "unavailable"}
    assert (small.table("maxent_table4").status == "unavailable").all()
    assert "not available" in (small.results / "tables/maxent_table4.md").read_text()
    page = (small.results / "site/index.html").read_text()
    assert "bank-additional-full.csv cannot be had" in page
    assert any(line.startswith("agglearn: not available: adult") for line in outcome.said)
    assert any("failed: spike_regions" in line for line in outcome.said)


def test_failing_can_be_made_fatal(small):
    plant(small, planted={"how": "raise"})
    small.overlay["on_failure"] = "fail"
    outcome = small.run()
    assert outcome.status != 0
    assert any("ZeroDivisionError: matrix is singular" in line for line in outcome.said)


def test_missing_can_be_made_fatal(small):
    small.overlay |= {"on_missing": "fail", "run": ["maxent_figure2"]}
    outcome = small.run()
    assert outcome.status != 0
    assert any("adult.data cannot be had" in line for line in outcome.said)


def test_killed_and_started_again(small):
    plant(small, planted={"how": "slow"})
    small.overlay["experiments"]["spike_regions"] |= {"seeds": list(range(6)), "batch_by": ["dataset"]}
    process = small.start("spike_regions", start_new_session=True)
    for _ in range(400):
        done = {r["run"] for r in small.records() if r["method"] == "planted"} if small.results.exists() else set()
        if len(done) >= 2:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)
    kept = small.computed()
    assert 2 <= len(done) < 6
    outcome = small.run("spike_regions")
    assert outcome.status == 0, outcome.text[-2000:]
    after = small.computed()
    assert len(after) == 12
    assert all(after[k] == kept[k] for k in kept)  # what was finished is not done again
    assert not list(small.results.glob("runs/.*.old.*"))


def test_second_start_leaves_with_one_line(small):
    plant(small, planted={"how": "slow"})
    small.overlay["experiments"]["spike_regions"]["seeds"] = [0, 1, 2, 3]
    process = small.start("spike_regions")
    while not (small.results / ".lock").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    other = small.run("spike_regions")
    assert other.status != 0
    assert len(other.said) == 1
    assert "another run is working in this folder" in other.said[0]
    process.communicate()
    assert process.returncode == 0


def test_tracking_server_away(small):
    small.overlay["tracking"] = {"uri": "http://127.0.0.1:9"}
    outcome = small.run("spike_regions")
    assert outcome.status == 0
    assert any("not tracked" in line for line in outcome.said)
    small.overlay["tracking"] = {"uri": "sqlite:///results/mlflow.db"}
    outcome = small.run("spike_regions")
    assert outcome.status == 0
    assert (small.results / "mlflow.db").exists()
    assert not any("not tracked" in line for line in outcome.said)


BAD_DATA = {
    "no label column": (lambda t: t, {"label": {"column": "wage", "positive": [">50K"]}}, "no label column 'wage'"),
    "label with three values": (
        lambda t: t.replace(">50K", "rich", 3), {"label": {"positive": ">50K"}}, "must have two values, it has 3",
    ),
    "text in a numeric column": (
        lambda t: t.replace("39, ", "old, ", 1) if t.startswith("39, ") else "old" + t[t.index(","):],
        {"features": {"numeric": ["age"]}},
        "column 'age' is numeric but row 1 holds 'old'",
    ),
    "empty file": (lambda t: "", {}, "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(small, name):
    spoil, entry, said = BAD_DATA[name]
    small.overlay["run"] = ["maxent_figure2"]
    small.write_data("adult", "adult", "adult.data", spoil(adult_like(200, 1, test=False)))
    small.write_data("adult", "adult", "adult.test", adult_like(100, 2, test=False))
    small.overlay["datasets"]["adult"] |= entry
    outcome = small.run("results/records/adult")
    assert outcome.status != 0
    assert said in outcome.said[-1], outcome.text[-2000:]
    assert not (small.results / "records/adult").exists()


def test_checksum_mismatch_leaves_finished_results(small):
    assert small.run().status == 0
    before = small.computed()
    small.write_data("adult", "adult", "adult.data", adult_like(200, 1, test=False))
    small.write_data("adult", "adult", "adult.test", adult_like(100, 2, test=True))
    (small.folder / "mirror/adult/adult.data").write_text("39, State-gov\n")
    small.overlay["run"] = ["spike_regions", "maxent_figure2"]
    outcome = small.run()
    assert outcome.status != 0
    assert any("adult.data: sha256 is" in line and "restore the file" in line for line in outcome.said)
    assert small.computed() == before
    assert (small.results / "tables/spike_regions.csv").exists()


def test_bad_configuration_stops_before_anything(small):
    small.overlay["experiments"]["spike_regions"]["mesures"] = ["accuracy"]
    outcome = small.run()
    assert outcome.status != 0
    assert outcome.said == [s for s in outcome.said if "spike_regions.yaml: top level: unknown key 'mesures'" in s]
    assert "did you mean 'measures'" in outcome.said[0]
    assert not (small.results / "runs").exists()
