"""Ablations by configuration: what each change makes of its base, and settings by their dotted path."""

import json

import pytest
import yaml
from samples import ROOT

from agglearn.errors import ConfigError
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.config.loading import expand_ablation, read_settings
from agglearn_workflow.plan import Plan
from agglearn_workflow.tracking.entry import tags

FILES = sorted((ROOT / "config/ablations").glob("*.yaml"))


def experiment(**ablate) -> dict:
    base = {"name": "Base", "class": "a.Base", "observe": "tables", "params": {"n": 3, "inner": {"l2": 1.0}}}
    return {
        "datasets": {"adult": None, "loglinear": {"n": {"smoke": 5, "default": {"grid": [10, 20]}}}},
        "observe": {"tables": {"type": "T", "binning": "width"}, "other": {"type": "O"}},
        "methods": {"base": base, "rival": {"class": "a.Rival", "observe": "other"}},
        "table": {"rows": ["dataset"], "columns": [], "measure": "auc"}, "figure": {"kind": "dots", "y": "auc"},
        "measures": ["nllh", "auc"], "reported": [1], "agreement": {}, "ablate": ablate,
    }  # fmt: skip


def test_each_change_stands_alone_against_the_base():
    changes = {"params.n": [5, [1, 2]], "params.inner.l2": [2.0], "class": ["b.Other"], "observe.binning": ["deciles"]}
    given = experiment(base="base", changes=changes)
    expanded = expand_ablation(given, "x.yaml")
    base = given["methods"]["base"]
    assert expanded["methods"] == {
        "base": base,
        "n_5": {**base, "params": {"n": 5, "inner": {"l2": 1.0}}, "name": "n: 5", "change": "params.n = 5"},
        "n_1_2": {**base, "params": {"n": [1, 2], "inner": {"l2": 1.0}}, "name": "n: [1, 2]", "change": "params.n = [1, 2]"},
        "inner_l2_2_0": {**base, "params": {"n": 3, "inner": {"l2": 2.0}}, "name": "inner.l2: 2.0", "change": "params.inner.l2 = 2.0"},
        "class_b_other": {**base, "class": "b.Other", "name": "class: Other", "change": "class = b.Other"},
        "binning_deciles": {**base, "observe": "binning_deciles", "name": "binning: deciles", "change": "observe.binning = deciles"},
    }  # fmt: skip
    assert expanded["observe"] == {
        "tables": {"type": "T", "binning": "width"},
        "binning_deciles": {"type": "T", "binning": "deciles"},
    }
    assert expanded["baseline"] == "base"
    assert expanded["table"] == {
        "rows": ["method"], "columns": ["dataset", "dataset_params.n"], "measure": ["nllh", "nllh_minus_base"]
    }  # fmt: skip
    assert not expanded.keys() & {"figure", "reported", "agreement", "ablate"}
    assert given == experiment(**given["ablate"])  # what was read stays as it is


def leaves(value, path="") -> dict:
    """Dotted path → value of everything in nested mappings and lists."""
    if not isinstance(value, dict | list):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {p: v for key, inner in items for p, v in leaves(inner, f"{path}.{key}".lstrip(".")).items()}


@pytest.mark.parametrize(("path", "texts"), [
    ("class", ["b.Other"]),
    ("params.n", ["5", "-1"]),
    ("params.inner.l2", ["2.0", "0.5"]),
    ("params.inner.deep.er", ["2", "3"]),
    ("params.new.inner", ["true"]),
    ("observe.binning", ["deciles"]),
    ("observe.noise.epsilon", ["0.5", "2.0"]),
    ("observe.noise.of.label", ["laplace", "null"]),
    ("observe.new.inner", ["1"]),
])  # fmt: skip
def test_a_change_at_any_depth_changes_that_alone(path, texts):
    """The base, and each change beside the others, are what they would be without these changes."""
    values = [yaml.safe_load(text) for text in texts]
    given = experiment(base="base", changes={path: values})
    given["methods"]["base"]["params"]["inner"]["deep"] = {"er": 1, "other": [1, 2]}
    given["observe"]["tables"]["noise"] = {"epsilon": 1.0, "of": {"label": "none", "counts": [1]}}
    before = json.loads(json.dumps(given))
    expanded = expand_ablation(given, "x.yaml")
    assert given == before
    base, *changes = expanded["methods"].values()
    assert (base, expanded["observe"]["tables"]) == (before["methods"]["base"], before["observe"]["tables"])
    assert [method["change"] for method in changes] == [f"{path} = {text}" for text in texts]
    observed = expanded["observe"]
    parts = [{k: m[k] for k in ("class", "params")} | {"observe": observed[m["observe"]]} for m in (base, *changes)]
    for part, value in zip(parts[1:], values, strict=True):
        assert leaves(part) == leaves(parts[0]) | {path: value}


def test_axes_of_the_data_are_columns_in_the_order_of_their_names():
    given = experiment(base="base", changes={"params.n": [1]})
    given["datasets"] = {
        "x": {"size": {"grid": [1, 2]}, "noise": {"smoke": 0, "default": {"grid": [0, 1]}}},
        "y": {"bag": {"grid": [3]}, "k": 1},
    }
    columns = expand_ablation(given, "x.yaml")["table"]["columns"]
    assert columns == ["dataset", "dataset_params.bag", "dataset_params.noise", "dataset_params.size"]


@pytest.mark.parametrize(("base", "changes", "wrong"), [
    ("logistik", {"params.l2": [1]}, "'logistik' is not known .did you mean 'logistic'"),
    ("logistic", {"name": ["x"]}, "'name' is not allowed"),
    ("logistic", {"params": [{}]}, "'params' is not allowed"),
    ("logistic", {"params.": [1]}, r"'params\.' is not allowed"),
    ("logistic", {"params.n-x": [1]}, r"'params\.n-x' is not allowed"),
    ("logistic", {"params.n x": [1]}, r"'params\.n x' is not allowed"),
    ("logistic", {"classes": ["x"]}, "'classes' is not allowed"),
    ("logistic", {"my.params.n": [1]}, r"'my\.params\.n' is not allowed"),
    ("logistic", {"params.l2": [5, 5]}, "the change to 5 stands twice"),
    ("maxent", {"params.clip": [1]}, r"maxent\.params\.l2_theta is a grid"),
])  # fmt: skip
def test_what_is_no_change_of_a_method_is_refused(project, base, changes, wrong):
    ablation = {"extends": "trial", "ablate": {"base": base, "changes": changes}}
    with pytest.raises(ConfigError, match=f"x.yaml: (ablate|methods).*{wrong}"):
        configuration.load(project.base, {"experiments": {"x": ablation}})


def test_settings_by_their_path():
    texts = [
        "trial.methods.maxent.params.n_chains=7",
        "trial.seeds=[0, 4]",
        "scale=smoke",
        "datasets.adult.title=A = B",
    ]
    assert read_settings(texts, ["trial"], ["scale", "datasets"]) == {
        "experiments": {"trial": {"methods": {"maxent": {"params": {"n_chains": 7}}}, "seeds": [0, 4]}},
        "scale": "smoke",
        "datasets": {"adult": {"title": "A = B"}},
    }


@pytest.mark.parametrize(("texts", "wrong"), [
    (["trial.seeds"], "write path.to.setting=value"),
    (["trial..seeds=1"], "write path.to.setting=value"),
    (["trail.seeds=1"], "'trail' is no experiment and no setting .did you mean 'trial'"),
    (["trial.seeds=[0"], "is not YAML"),
    (["trial.seeds=1", "trial.seeds.first=2"], "set to a value already"),
])  # fmt: skip
def test_what_sets_nothing_is_refused(texts, wrong):
    with pytest.raises(ConfigError, match=wrong):
        read_settings(texts, ["trial"], ["scale"])


def test_a_setting_counts_more_than_a_file(project):
    over = {"run": ["trial"], "experiments": {"trial": {"seeds": [5, 6]}}, "set": "trial.seeds=[9]"}
    assert {run.seed for run in Plan(configuration.load(project.base, over)).runs("trial")} == {9}
    with pytest.raises(ConfigError, match="set: 3 is not allowed"):
        configuration.load(project.base, {"set": 3})
    with pytest.raises(ConfigError, match=r"takes no 'n_chain' \(did you mean 'n_chains'\?\)"):
        configuration.load(project.base, {"set": ["trial.methods.maxent.params.n_chain=3"]})


def test_an_ablation_runs_beside_its_base(project):
    """The base's runs, and with them its table, are those without the ablation."""
    plain = Plan(configuration.load(project.base, {"run": ["trial"]}))
    ablation = {"extends": "trial", "ablate": {"base": "logistic", "changes": {"params.l2": [3.5]}}}
    loaded = configuration.load(project.base, {"run": ["trial", "change"], "experiments": {"change": ablation}})
    plan = Plan(loaded)
    assert [r.key for r in plan.runs("trial")] == [r.key for r in plain.runs("trial")]
    assert {r.method: json.loads(r.params).get("l2") for r in plan.runs("change")} == {"logistic": None, "l2_3_5": 3.5}
    run = next(r for r in plan.runs("change") if r.method == "l2_3_5")
    record = {"dataset": run.dataset, "observation": run.observation, "method": run.method, "status": "ok", "reason": None,
              "experiment": "change", "commit": None, "config": {"scale": "smoke", "experiment": loaded["experiments"]["change"]}}  # fmt: skip
    assert tags(record)["change"] == "params.l2 = 3.5"
    assert "change" not in tags(record | {"method": "logistic"})


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["default", "paper"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_files_that_come_with_the_project_can_be_planned(path, scale):
    given = yaml.safe_load(path.read_text())
    [name] = given["experiments"]
    assert given.keys() == {"show", "experiments"}
    assert given["show"] == [name] == [path.stem]
    assert f"snakemake --cores 4 {name} --configfile config/ablations/{name}.yaml" in path.read_text()
    plan = Plan(configuration.load(ROOT, given | {"scale": scale, "run": [name]}))
    n_methods = 1 + sum(map(len, given["experiments"][name]["ablate"]["changes"].values()))
    different = {(run.settings["class"], run.params, run.observation_params) for run in plan.runs(name)}
    assert len(plan.experiments[name]["methods"]) == len(different) == n_methods
