"""Results are those of the code and configuration that they name: what runs again, when Snakemake's records are lost or it is forced."""

import contextlib
import copy
import fcntl
import json
import shutil
import signal
import time

import psutil
import pytest
from project import REGIONS, SPIKE_DATA, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def small(places):
    """A project that has run one experiment on simulated data, with a planted method."""
    made = Project(*places)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] = {"spike_regions": copy.deepcopy(REGIONS)}
    made.overlay["experiments"]["spike_regions"] |= {"batch_by": ["method"]}
    made.overlay["experiments"]["spike_regions"]["methods"]["planted"] = {
        "class": "bags.Planted", "observe": "bags", "params": {"how": "none"},
    }  # fmt: skip
    made.overlay |= {"run": ["spike_regions"], "tracking": {"uri": "none"}}
    outcome = made.run()
    assert outcome.status == 0, outcome.text[-3000:]
    return made


FITTED = [f"results/measurements/spike_regions/{method}.parquet" for method in ("planted", "threshold")]


def changed(project, before) -> set[str]:
    """Methods of the runs that were computed since."""
    after = project.computed()
    return {r["method"] for r in project.records() if after[r["run"]] != before.get(r["run"])}


def rules_run(outcome) -> set[str]:
    lines = [line for line in outcome.text.splitlines() if line.startswith(("rule ", "localrule "))]
    return {line.split()[1].removesuffix(":") for line in lines}


def value(project) -> float:
    table = project.table("spike_regions")
    return table[table["keys"].isna() & (table.method == "threshold") & (table.measure == "accuracy")]["mean"].item()


def test_without_records_only_what_states_no_recipe_is_made_again(small):
    before = small.computed()
    shutil.rmtree(small.folder / ".snakemake")
    outcome = small.run()
    assert outcome.status == 0, outcome.text[-3000:]
    assert rules_run(outcome) == {"render", "judge", "collect", "page", "site", "conclude", "all"}
    assert changed(small, before) == set()
    assert sum("Snakemake has no record" in line for line in outcome.said) == 1
    assert "Nothing to be done" in small.run().text


def test_without_records_a_changed_parameter_runs(small):
    before, number = small.computed(), value(small)
    shutil.rmtree(small.folder / ".snakemake")
    small.overlay["datasets"]["regions"]["params"] = {"bag_size": 50}
    small.overlay["experiments"]["spike_regions"]["methods"]["planted"]["params"] = {"how": "no"}
    trial = small.run("--dry-run")
    assert "fit" in rules_run(trial)
    assert small.computed() == before
    outcome = small.run()
    assert outcome.status == 0, outcome.text[-3000:]
    assert "observe" in rules_run(outcome)
    assert value(small) != number
    assert set(small.table("spike_regions").query("method == 'planted'").params) == {'{"how": "no"}'}


@pytest.mark.parametrize(("arguments", "methods"), [
    (["--forcerun", FITTED[0]], {"planted"}),
    (["--forcerun", "fit"], {"planted", "threshold"}),
    (["-F"], {"planted", "threshold"}),
    (["--forcerun", "observe"], set()),
])  # fmt: skip
def test_forced_fits_are_computed_again(small, arguments, methods):
    before = small.computed()
    outcome = small.run(*FITTED, *arguments)
    assert outcome.status == 0, outcome.text[-3000:]
    assert changed(small, before) == methods
    assert "Job rate limit reached" not in outcome.text
    assert not [p for p in (small.results / "forced").rglob("*") if p.is_file()]


def test_retrying_computes_no_good_run_again(small):
    before = small.computed()
    small.environ["AGGLEARN_RETRY"] = "1"  # as `make retry` sets it
    outcome = small.run(*FITTED, "--forcerun", FITTED[0])
    del small.environ["AGGLEARN_RETRY"]
    assert "fit" in rules_run(outcome)
    assert changed(small, before) == set()


def test_deleted_output_is_computed_again(small):
    before = small.computed()
    assert small.run("--delete-all-output", "--dry-run").status == 0
    assert small.computed() == before
    assert small.run("--delete-all-output").status == 0
    assert small.run().status == 0
    assert changed(small, before) == {"planted", "threshold"}


def test_a_lost_file_of_a_run_is_made_again(small):
    before = small.computed()
    run = max((r["run"] for r in small.records() if r["method"] == "threshold"), key=before.get)  # of today's plan
    (small.results / f"runs/{run}/measurements.parquet").write_bytes(b"")
    outcome = small.run(*FITTED, "--forcerun", "observe")
    assert outcome.status == 0, outcome.text[-3000:]
    assert {k for k, v in small.computed().items() if before[k] != v} == {run}


def test_what_runs_no_job_works_beside_a_run(small):
    with open(small.results / ".lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for arguments in (["--summary"], ["--dag"], ["--lint"], ["--list-rules"]):
            outcome = small.run(*arguments)
            assert not [line for line in outcome.said if "another run" in line], arguments
            assert outcome.said == [] or arguments == ["--lint"]
        assert "another run is working in this folder" in small.run("-F").said[0]


def test_the_rate_of_jobs_may_be_limited(small):
    outcome = small.run(*FITTED, "--forcerun", "observe", "--max-jobs-per-timespan", "1/1s")
    assert outcome.status == 0
    assert "Job rate limit reached" in outcome.text


# -- processes --------------------------------------------------------------------------------------------------------


def processes_of(project) -> list[psutil.Process]:
    """Processes that work in the project's folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(project.folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.fixture
def planted(small):
    """The project, its planted method to be changed: `planted(how, timed)`."""
    experiment = small.overlay["experiments"]["spike_regions"]

    def plant(how, timed):
        experiment["methods"]["planted"]["params"] = {"how": how}
        experiment["timed"] = timed
        return small

    yield plant
    plant("none", False)


@pytest.mark.parametrize("timed", [True, False])  # in the job's own process, in a child of the prefork server
def test_jobs_die_with_the_main_process(planted, timed):
    project = planted("hang", timed)
    main = project.start("spike_regions")
    for _ in range(600):
        if list((project.results / "runs").glob(".*")):  # the method hangs in it
            break
        time.sleep(0.1)
    main.send_signal(signal.SIGKILL)
    main.stdout.close()
    main.wait()
    for _ in range(50):
        if not processes_of(project):
            break
        time.sleep(0.1)
    assert processes_of(project) == []
    outcome = planted("none", timed).run("spike_regions")
    assert outcome.status == 0, outcome.text[-3000:]
    assert not list((project.results / "runs").glob(".*"))


@pytest.mark.parametrize("timed", [True, False])
def test_methods_may_spawn_processes(planted, timed):
    project = planted("spawn", timed)
    outcome = project.run("spike_regions")
    assert outcome.status == 0, outcome.text[-3000:]
    assert {r["status"] for r in project.records() if r["params"] == '{"how": "spawn"}'} == {"ok"}


# The last of this file: its project takes the place of the others'.
def test_without_records_a_new_local_file_is_noticed(places):
    project = Project(*places)
    text = "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(40))
    project.overlay["datasets"]["mine"] = {
        "title": "Mine", "class": "agglearn.datasets.Tabular", "label": {"column": "y"}, "split": 0.2,
        "format": {"columns": ["a", "b", "y"]},
    }  # fmt: skip
    project.write_data("mine", "mine", "mine.csv", text)
    project.overlay["experiments"]["trial"] = {
        "title": "Trial", "source": "maxent", "task": "agglearn.tasks.Classification", "seeds": [0], "measures": ["nllh"],
        "datasets": {"mine": {}}, "observe": {"tables": {"type": "agglearn.observations.ContingencyTables"}},
        "methods": {"naive": {"class": "agglearn.maxent.NaiveBayesClassifier", "observe": "tables"}},
    }  # fmt: skip
    project.overlay |= {"run": ["trial"], "tracking": {"uri": "none"}}
    path = project.folder / "mirror/mine/mine.csv"
    away = path.rename(project.folder / "away.csv")
    target, manifest = "results/records/mine", project.results / "records/mine/manifest.json"
    project.run(target)
    assert json.loads(manifest.read_text())["status"] == "unavailable"
    shutil.rmtree(project.folder / ".snakemake")
    away.rename(path)
    outcome = project.run(target)
    assert outcome.status == 0, outcome.text[-3000:]
    assert json.loads(manifest.read_text())["status"] == "ok"
    shutil.rmtree(project.folder / ".snakemake")
    assert "fetch" not in rules_run(project.run(target))
