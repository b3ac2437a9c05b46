"""Identity, recipe and fingerprint of a run."""

import dataclasses
import json
from pathlib import Path

import pytest
from samples import shipped_config

from agglearn_workflow import plan as planning
from agglearn_workflow.plan import IDENTITY, Run, canonical, classes_in
from agglearn_workflow.runs import batches
from agglearn_workflow.runs.execution import Source, fit_seed

QUANTIZER = {"class": "agglearn.vocabulary.BucketingQuantizer", "params": {"budget": 0.3}}
SPEC = {"class": "agglearn.maxent.NaiveBayesClassifier", "task": "agglearn.tasks.Classification",
        "type": "agglearn.observations.ContingencyTables", "measures": ["nllh"], "keep_model": "none", "ignore_noise": False}  # fmt: skip
RUN = Run("e", "d", "{}", "tables", "{}", "m", "{}", 0, canonical(SPEC))


def with_other(name: str) -> Run:
    """The run with another value of one part of its identity."""
    other = {"seed": 1}.get(name, '{"k": 1}' if name.endswith("params") else "other")
    return dataclasses.replace(RUN, **{name: other})


def test_every_part_of_the_identity_makes_another_run():
    others = [with_other(name) for name in IDENTITY]
    assert len({RUN.key, *(r.key for r in others)}) == len(IDENTITY) + 1
    assert len({RUN.recipe, *(r.recipe for r in others)}) == len(IDENTITY) + 1
    of_slot = set(IDENTITY) - {"experiment", "method", "params"}
    assert len({RUN.slot, *(r.slot for r in others)}) == len(of_slot) + 1
    of_seed = set(IDENTITY) - {"experiment", "observation"}  # an equal observation under another name is no other one
    assert len({fit_seed(RUN), *(fit_seed(r) for r in others)}) == len(of_seed) + 1


@pytest.mark.parametrize(("key", "value"), [
    ("class", "agglearn.maxent.BestPairClassifier"), ("task", "agglearn.tasks.Compression"), ("type", "agglearn.observations.Records"),
    ("measures", ["nllh", "auc"]), ("keep_model", "all"), ("ignore_noise", True),
])  # fmt: skip
def test_every_part_of_what_computes_a_run_changes_its_recipe(key, value):
    assert RUN.settings == SPEC
    other = dataclasses.replace(RUN, spec=canonical(SPEC | {key: value}))
    assert other.key == RUN.key
    assert other.recipe != RUN.recipe


def test_code_behind_a_run_is_that_of_its_classes_and_a_part_of_its_recipe(monkeypatch):
    nested = dataclasses.replace(RUN, params=canonical({"quantizer": QUANTIZER, "k": [{"class": "a.B", "params": {}}]}))
    assert sorted(nested.code) == sorted([SPEC["class"], SPEC["task"], SPEC["type"], QUANTIZER["class"], "a.B"])
    assert classes_in({"x": {"y": [QUANTIZER]}}) == [QUANTIZER["class"]]
    recipes = set()
    for name in nested.code:  # an edit of each
        monkeypatch.setattr(planning, "code_digest", lambda *names, name=name: [n + "!" * (n == name) for n in names])
        recipes.add(dataclasses.replace(nested).recipe)
    assert len(recipes) == len(nested.code)


def test_a_fingerprint_is_of_the_recipe_and_of_what_is_observed():
    """Neither where records lie nor a reason is part of it."""
    source = Source("ok", None, "recipe", "content", None, {})
    mine = batches.fingerprint(RUN, source)
    assert mine == batches.fingerprint(RUN, source._replace(records=Path("elsewhere"), reason="none"))
    others = [batches.fingerprint(RUN, source._replace(**{key: "other"})) for key in ("recipe", "content")]
    others += [batches.fingerprint(with_other(name), source) for name in IDENTITY]
    assert len({mine, *others}) == len(others) + 1


def test_parameters_are_written_in_one_way():
    assert canonical({"b": 1, "a": [1.0, None, True, "ä"]}) == '{"a": [1.0, null, true, "ä"], "b": 1}'
    assert json.loads(canonical({"a": {"c": 1, "b": 2}})) == {"a": {"b": 2, "c": 1}}


def test_a_run_records_its_own_part_of_the_configuration():
    """Thousands of runs keep it: no other experiment, data set or paper is in it."""
    config = shipped_config()
    experiment = config["experiments"]["maxent_table4"]
    recorded = batches.effective(config, experiment, ["adult"])
    assert recorded["experiment"] == experiment
    assert list(recorded["datasets"]) == ["adult"]
    assert recorded["references"] == {"papers": {"maxent": config["references"]["papers"]["maxent"]}}
    assert recorded["mirrors"] == config["mirrors"]
    assert not {"experiments", "claims", "digests"} & set(recorded)
