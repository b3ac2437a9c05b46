"""From configuration to runs."""

import itertools
import json

import pytest
from samples import ROOT

from agglearn.errors import ConfigError
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.plan import Plan, canonical, expand_grid, select_scale


def test_points():
    assert expand_grid(3) == [3]
    assert expand_grid({"grid": [1, 2]}) == [1, 2]
    assert expand_grid({"a": 1}) == [{"a": 1}]
    assert expand_grid({}) == [{}]
    assert expand_grid({"a": {"grid": [1, 2]}, "b": {"grid": ["x", "y"]}}) == [
        {"a": a, "b": b} for a in (1, 2) for b in ("x", "y")
    ]
    assert expand_grid({"a": {"b": {"grid": [1, 2]}}}) == [{"a": {"b": 1}}, {"a": {"b": 2}}]
    assert expand_grid([{"grid": [1, 2]}, 3]) == [[1, 3], [2, 3]]
    nested = {"grid": [{"kind": "a"}, {"kind": "b", "size": {"grid": [1, 2]}}]}
    assert expand_grid(nested) == [{"kind": "a"}, {"kind": "b", "size": 1}, {"kind": "b", "size": 2}]


def test_at_scale():
    value = {"n": {"smoke": 1, "default": 2}, "deep": [{"default": {"x": {"paper": 9, "default": 8}}}], "default_n": 1}
    assert select_scale(value, "smoke") == {"n": 1, "deep": [{"x": 8}], "default_n": 1}
    assert select_scale(value, "paper") == {"n": 2, "deep": [{"x": 9}], "default_n": 1}
    assert select_scale({"smoke": None, "default": 2}, "smoke") is None
    assert select_scale({}, "smoke") == {}
    with pytest.raises(ConfigError, match="no value for scale 'paper' and no default"):
        select_scale({"a": {"smoke": 1}}, "paper")


def plan_of(project, **overrides) -> Plan:
    return Plan(configuration.load(project.base, {"run": ["trial"], **overrides}))


def test_runs_of_the_trial(project):
    plan = plan_of(project)
    runs = plan.runs("trial")
    # fair, and two sizes of loglinear; two maxent and one logistic; three seeds
    assert len({r.key for r in runs}) == len(runs) == 3 * 3 * 3
    assert {json.loads(r.params)["n_chains"] for r in runs if r.method == "maxent"} == {10000}
    assert {r.dataset_params for r in runs if r.dataset == "loglinear"} == {'{"n": 100}', '{"n": 200}'}
    assert runs[0].observation_params == '{"binning": "width"}'
    assert plan.sources() == ["maxent"]


def test_keys_are_of_what_a_run_is_and_recipes_of_what_it_measures_too(project):
    runs, smoke = plan_of(project).runs("trial"), plan_of(project, scale="smoke").runs("trial")
    keys, recipes = {r.key for r in runs}, {r.recipe for r in runs}
    assert len(recipes) == len(runs)
    assert {r.seed for r in smoke} == {0}
    assert not keys & {r.key for r in smoke if r.method == "maxent"}, "other sizes are other runs"
    assert {r.key for r in smoke if r.method == "logistic"} <= keys, "equal parameters are equal runs"
    for change, same in (({"title": "Another"}, recipes), ({"measures": ["nllh"]}, set())):
        project.edit("experiments/trial", lambda e, change=change: e.update(change))
        runs = plan_of(project).runs("trial")
        assert {r.key for r in runs} == keys
        assert {r.recipe for r in runs} & recipes == same


def test_batches(project):
    assert plan_of(project).batches("trial") == ["all"]
    project.edit("experiments/trial", lambda e: e.update(batch_by=["dataset", "method"]))
    plan = plan_of(project)
    assert plan.batches("trial") == ["fair-logistic", "fair-maxent", "loglinear-logistic", "loglinear-maxent"]
    parts = [plan.runs("trial", b) for b in plan.batches("trial")]
    assert sorted(r.key for r in itertools.chain(*parts)) == sorted(r.key for r in plan.runs("trial"))
    assert plan.datasets("trial") == ["fair", "loglinear"]
    assert plan.datasets("trial", "fair-maxent") == ["fair"]
    project.edit("experiments/trial", lambda e: e.update(batch_by=["seed"]))
    assert plan_of(project).batches("trial") == ["0", "1", "2"]
    project.edit("experiments/trial", lambda e: e.update(batch_by={"paper": ["dataset"], "default": []}))
    assert plan_of(project).batches("trial") == ["all"]
    assert plan_of(project, scale="paper").batches("trial") == ["fair", "loglinear"]
    loaded = configuration.load(project.base, {"run": ["trial"], "scale": "paper"})
    assert Plan(loaded | {"from": "archive"}).batches("trial") == ["all"]  # nothing is computed


def test_code_and_varied_parameters_of_a_batch(project):
    project.edit("experiments/trial", lambda e: e.update(batch_by=["dataset", "method"]))
    plan = plan_of(project)
    names = ("datasets.LogLinear", "maxent.MaxEntClassifier", "observations.ContingencyTables", "tasks.Classification")
    assert plan.code("trial", "loglinear-maxent") == [f"agglearn.{name}" for name in names]
    assert sorted(v["n"] for v in plan.varied("trial", "loglinear")) == [100, 200]
    assert plan.varied("trial", "fair") == [{}]


@pytest.mark.parametrize(("entries", "is_left_out"), [
    ([{"dataset": "fair", "method": "maxent"}], lambda r: r.dataset == "fair" and r.method == "maxent"),
    ([{"seed": 1}, {"method": "logistic"}], lambda r: r.seed == 1 or r.method == "logistic"),
    ([{"params.l2_theta": 2.0, "seed": 0}], lambda r: r.method == "maxent" and '"l2_theta": 2.0' in r.params and r.seed == 0),
])  # fmt: skip
def test_excluded_runs_are_not_planned(project, entries, is_left_out):
    axis = {"l2_theta": {"grid": [2.0, 8.0]}}
    project.edit("experiments/trial", lambda e: e["methods"]["maxent"].update(params=axis))
    whole = plan_of(project).runs("trial")
    project.edit("experiments/trial", lambda e: e.update(exclude=entries))
    left = plan_of(project).runs("trial")
    assert [r.key for r in left] == [r.key for r in whole if not is_left_out(r)]
    assert len(left) < len(whole)


def test_an_entry_of_exclude_may_be_of_another_scale(project):
    penalty = {"l2_theta": {"smoke": 4.0, "default": 8.0}}
    project.edit("experiments/trial", lambda e: e["methods"]["maxent"].update(params=penalty))
    project.edit("experiments/trial", lambda e: e.update(exclude=[{"params.l2_theta": 4.0}]))
    assert plan_of(project).runs("trial")
    project.edit("experiments/trial", lambda e: e.update(exclude=[{"params.l2_theta": 5.0}]))
    with pytest.raises(ConfigError, match=r"trial.yaml: exclude.0: no run at any scale has .*5.0"):
        plan_of(project)


def test_an_entry_of_exclude_may_be_on_a_data_set_that_an_overlay_drops(project):
    exclude = [{"dataset": "fair", "method": "maxent"}]
    project.edit("experiments/trial", lambda e: e.update(exclude=exclude, datasets={"loglinear": {}}))
    assert {r.dataset for r in plan_of(project).runs("trial")} == {"loglinear"}


def test_extends(project):
    child = "extends: trial\ntitle: Child\ndatasets: {loglinear: null, bank: {}}\nseeds: [7]\n"
    project.path("experiments/child").write_text(child)
    plan = plan_of(project, run=["child"])
    assert plan.datasets("child") == ["bank", "fair"]
    assert {r.seed for r in plan.runs("child")} == {7}
    assert {r.method for r in plan.runs("child")} == {"maxent", "logistic"}
    grandchild = "extends: child\nmethods: {maxent: {params: {l2_theta: 1.0}}}\n"
    project.path("experiments/grandchild").write_text(grandchild)
    runs = plan_of(project, run=["grandchild"]).runs("grandchild")
    params = {r.params for r in runs if r.method == "maxent"}
    assert params == {canonical({"l2_theta": 1.0, "n_chains": 10000})}


def test_doubles_are_refused(project):
    axis = {"l2_theta": {"grid": [1.0, 2.0, 1.0]}}
    project.edit("experiments/trial", lambda e: e["methods"]["maxent"].update(params=axis))
    with pytest.raises(ConfigError, match=r"config/experiments/trial\.yaml: the same run stands twice: fair, maxent"):
        plan_of(project)


def test_only_what_is_asked_for_is_planned(project):
    project.path("experiments/other").write_text("extends: trial\ntitle: Other\n")
    assert list(plan_of(project, run=["other"]).experiments) == ["other"]
    assert {"other", "trial"} <= set(plan_of(project, run="all").experiments)


def test_sources_stand_in_the_order_of_the_readme(project):
    for name in ("labelsums", "collective", "vocabulary", "another", "aloud"):
        project.path(f"experiments/{name}_table").write_text(f"extends: trial\nsource: {name}\n")
    sources = plan_of(project, run="all").sources()
    assert sources == ["maxent", "vocabulary", "collective", "labelsums", "aloud", "another"]


def test_the_readme_names_the_sources_in_their_order():
    papers = configuration.read_mapping(ROOT / "config/references.yaml")["papers"]
    pages = [f"docs/{name}.md" for name in papers]
    assert pages == sorted(pages, key=(ROOT / "README.md").read_text().index)
