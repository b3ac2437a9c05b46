"""How settings are chosen: what parameters say, what `tune:` may say, and claims on methods of ours, whose rivals say it."""

import re

import pytest
from samples import shipped_config

from agglearn.errors import ConfigError
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import select_scale
from agglearn_workflow.site.pages import PAGES
from agglearn_workflow.tables.numbers import method_name
from agglearn_workflow.tables.tuning import tunings

WALR = {"class": "agglearn.labelsums.WALRClassifier"}


def experiment(method: dict, kind: str = "Bags") -> dict:
    return {
        "observe": {"data": {"type": f"agglearn.observations.{kind}"}},
        "methods": {"it": method | {"observe": "data"}},
    }


@pytest.mark.parametrize(("name", "params", "kind", "expected"), [
    ("proportions.MeanEmbeddingClassifier", {}, "Bags", [{"l2": None, "by": "held-out bags"}]),
    ("proportions.MeanEmbeddingClassifier", {"l2": 0.5}, "Bags", [{"l2": [0.5], "by": "fixed"}]),
    ("proportions.MeanEmbeddingClassifier", {"l2": {"grid": [1, 2]}}, "Bags", [{"l2": [1, 2], "by": "rows"}]),
    ("maxent.LogisticSkyline", {}, "Records", [{"l2": None, "by": "held-out records"}]),
    ("labelsums.WALRClassifier", {"l2": "moments"}, "LabelSums", [{"l2": None, "by": "moments"}]),
    ("labelsums.WALRClassifier", {}, "LabelSums", []),
    ("labelsums.AggregateSearch", {"base": WALR, "parameter": "l2", "values": [1.0, 2.0]}, "ContingencyTables",
     [{"l2": [1.0, 2.0], "by": "held-out contingency tables"}]),
    ("collective.TunedReconstruction", {"option": "beta", "values": [5.0, 50.0]}, "FlowCounts", [{"beta": [5.0, 50.0], "by": "measure"}]),
    ("distribution.EmbeddingRegressor", {"regressor": {"class": "agglearn.distribution.LinearRidge"}, "tune": {"scale": [1, 2]}}, "Bags",
     [{"λ": None, "by": "held-out bags"}, {"scale": [1, 2], "by": "held-out bags"}]),
])  # fmt: skip
def test_parameters_say_how_others_are_chosen(name, params, kind, expected):
    assert tunings(experiment({"class": f"agglearn.{name}", "params": params}, kind), "it") == expected


def test_what_is_stated_stands_in_the_place_of_what_a_parameter_says():
    stated = {"l2": [1.0, 2.0], "by": "test records"}
    assert tunings(experiment(WALR | {"params": {"l2": 2.0}, "tune": stated}), "it") == [stated]


@pytest.mark.parametrize(("tune", "message"), [
    ({"by": "printed"}, ": key 'place' is missing"),
    ({"by": "eye"}, ".by: 'eye' is not allowed"),
    ({"by": "fixed", "l2_thetta": [1]}, ": 'l2_thetta' is not known"),
    ({"by": "fixed", "l2": 1}, ".l2: 1 is not allowed"),
])  # fmt: skip
def test_a_statement_is_data(project, tune, message):
    with pytest.raises(ConfigError) as error:
        load(project.base, {"experiments": {"trial": {"methods": {"maxent": {"tune": tune}}}}})
    assert f"methods.maxent.tune{message}" in str(error.value)


@pytest.mark.parametrize(("tuning", "words"), [
    ({"l2": [0.5], "by": "fixed"}, "l2: 0.5 fixed"),
    ({"l2": None, "by": "held-out bags"}, "l2 by held-out bags"),
    ({"schedule": ["thesis"], "by": "printed", "place": "Section 2.5"}, "schedule: thesis as printed, Section 2.5"),
    ({"l2": [1, 2], "by": "rows"}, "l2: 1, 2 each value is a row"),
    ({"by": "nothing"}, "nothing to tune"),
    ({"beta": [5.0, 50.0], "by": "measure"}, "beta: 5.0, 50.0 by what is measured"),
])  # fmt: skip
def test_the_site_says_it_in_words(tuning, words):
    html = PAGES.get_template("parts.html").module.tuned(tuning)
    assert re.sub("<[^>]*>", "", html) == words


def test_a_method_of_ours_is_named_so():
    methods = {"a": {"name": "Newton", "ours": True}, "b": {"name": "RDA"}, "c_d": {"ours": True}}
    assert [method_name({"methods": methods}, m) for m in methods] == ["Newton, ours", "RDA", "c d, ours"]


def unfair(claim: dict, e: dict) -> list[str]:
    """Methods that a claim compares with one of ours, and of which nothing says how their settings were chosen."""
    if "reference" not in claim:
        return []
    first, second = (_methods(claim[side], e) for side in ("value", "reference"))
    if first == second or not any(e["methods"][m].get("ours") for m in first ^ second):
        return []
    compared = first | second
    lacking = [m for m in sorted(compared) if not tunings(e, m)]
    # a rival that nobody tuned may be compared with what nobody tuned
    chosen = {m for m in compared if any(t["by"] not in ("fixed", "nothing") for t in tunings(e, m))}
    of_ours = {m for m in chosen if e["methods"][m].get("ours")}
    return lacking + [m for m in sorted(compared - chosen) if of_ours and tunings(e, m) and _is_fixed(e, m)]


def _is_fixed(e: dict, m: str) -> bool:
    return not e["methods"][m].get("ours") and any(t["by"] == "fixed" for t in tunings(e, m))


def _methods(selector: dict, e: dict) -> set[str]:
    chosen = selector.get("method", list(e["methods"]))
    return {chosen} if isinstance(chosen, str) else set(chosen)


def test_rivals_of_our_methods_are_tuned_as_these_are():
    config = shipped_config()
    experiments = {n: select_scale(e, "paper") for n, e in config["experiments"].items()}
    lacking = {n: unfair(claim, experiments[claim["experiment"]]) for n, claim in config["claims"].items()}
    assert {name: methods for name, methods in lacking.items() if methods} == {}


@pytest.mark.parametrize(("ours", "rival", "lacking"), [
    ("moments", {}, ["rival"]),
    ("moments", {"params": {"l2": 0.5}}, ["rival"]),
    ("moments", {"tune": {"by": "printed", "place": "Table 4"}}, []),
    ("moments", {"params": {"l2": "held_out"}}, []),
    ("moments", {"tune": {"by": "nothing"}}, []),
    (0.5, {"params": {"l2": 0.5}}, []),  # what nobody tunes may be compared
])  # fmt: skip
def test_a_claim_with_an_untuned_rival_is_refused(ours, rival, lacking):
    walr = WALR | {"observe": "data"}
    e = experiment(walr) | {"methods": {"our": walr | {"ours": True, "params": {"l2": ours}}, "rival": walr | rival}}
    assert unfair({"value": {"method": "our"}, "reference": {"method": "rival"}}, e) == lacking
