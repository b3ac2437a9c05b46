"""`agglearn new` writes files that run, and `agglearn --completion` a script that completes words."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cli_calls import call, refuse, run, told

from agglearn import cli
from agglearn.registry import resolve
from agglearn_workflow.commands import new
from agglearn_workflow.plan import Plan
from agglearn_workflow.project import project_config
from agglearn_workflow.runs.execution import Source, execute_run, observe_runs
from agglearn_workflow.runs.products import build_product


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "commands", lambda: {**cli.COMMANDS, "new": new})
    rng = np.random.default_rng(0)
    records = pd.DataFrame({"age": rng.integers(18, 80, 300), "job": rng.choice(["cook", "nurse"], 300)})
    bought = rng.random(300) < np.where(records["job"] == "nurse", 0.8, 0.3)
    records.assign(bought=np.where(bought, "yes", "no")).to_csv("survey.csv", index=False)
    return tmp_path


def test_a_method_runs_as_a_script_and_as_a_learner(folder, capsys):
    assert "python always_alike.py" in told(capsys, "new method always_alike").out
    finished = subprocess.run([sys.executable, "always_alike.py"], capture_output=True, text=True, check=True)
    assert finished.stdout.startswith("accuracy 0.")
    spec = importlib.util.spec_from_file_location("always_alike", folder / "always_alike.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    records = pd.read_csv("survey.csv")
    model = module.AlwaysAlike(smoothing=0).fit(records[["age", "job"]], records["bought"])
    np.testing.assert_allclose(model.predict_proba(records)[:, 1], (records["bought"] == "yes").mean())


def test_an_experiment_on_a_data_set_runs(folder, capsys):
    assert call("new dataset survey --csv survey.csv --label bought --positive yes") == 0
    assert call("new experiment trial") == 0
    capsys.readouterr()
    change = "trial.datasets={adult: null, survey: {}}"
    config = project_config(None, {"scale": "smoke", "set": [change]}, ["trial"])
    assert config["datasets"]["survey"]["label"] == {"column": "bought", "positive": "yes"}
    assert config["experiments"]["trial"]["title"].startswith("Trial")
    runs = Plan(config).runs("trial")
    assert {(run.dataset, run.method) for run in runs} == {("survey", m) for m in ("maxent", "naive_bayes", "logistic")}
    entry = config["datasets"]["survey"]
    read = resolve(entry["class"]).from_entry(entry)
    build_product(folder / "results/records/survey", lambda out: read.parse({"survey.csv": folder / "survey.csv"}, out))
    sources = {"survey": Source.of(config, "survey")}
    observe_runs(runs, config["experiments"]["trial"], sources, folder / "observed", lambda *_: None)
    for planned in runs:
        (folder / planned.key).mkdir()
        outcome = execute_run(planned, folder / "observed/survey", folder / planned.key)
        assert outcome.status == "ok", outcome.trace


def test_names_with_signs_of_yaml_are_quoted():
    pd.DataFrame({"a: b": [1], "# label": [2]}).to_csv("odd: file.csv", index=False)
    assert run("new", "dataset", "odd", "--csv", "odd: file.csv", "--label", "# label") == 0
    entry = yaml.safe_load(Path("config/datasets/odd.yaml").read_text())
    assert entry["label"] == {"column": "# label", "positive": "1"}
    assert entry["files"] == {"odd: file.csv": {"path": "odd: file.csv", "sha256": "unknown"}}


@pytest.mark.parametrize(("words", "line"), [
    ("experiment mine!", "'mine!' is no name; use small letters, digits and _"),
    ("experiment ../mine", "is no name"),
    ("dataset mine --csv absent.csv --label y", "absent.csv: No such file or directory"),
    ("dataset mine --csv survey.csv --label y", "no column 'y'; the columns are age, job, bought"),
    ("method survey", "survey.py: is there already"),
])  # fmt: skip
def test_wrong_words_get_one_line(words, line, capsys):
    Path("survey.py").write_text("# changed\n")
    assert line in refuse(capsys, f"new {words}")[1]


@pytest.mark.parametrize(("words", "expected"), [
    (["agg"], ["aggregate"]),
    (["compress", "--bud"], ["--budget", "--budgets"]),
    (["fit", "--meth"], ["--method"]),
    (["fit", "tabl"], []),  # then files
])  # fmt: skip
def test_bash_completes_commands_and_options(words, expected, capsys):
    script = told(capsys, "--completion").out
    asked = f"COMP_WORDS=(agglearn {' '.join(words)}); COMP_CWORD={len(words)}; _agglearn; echo ${{COMPREPLY[@]}}"
    finished = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == expected
