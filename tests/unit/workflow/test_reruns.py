"""Every input of a rule makes its jobs run again, and no other jobs: keys of the configuration, code, templates, local files.

The parameters of a rule are read from `rules/*.smk` and evaluated by the functions of `rules/wiring.py`. A job runs again where
one of its own changes; what follows from it runs through its files.
"""

import contextlib
import copy
import dataclasses
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from samples import ROOT, Project

from agglearn.inspection import modules
from agglearn.workflow import config as configuration
from agglearn.workflow import models, runs
from agglearn.workflow.plan import IDENTITY, Plan, Run, Settings, Slot, canonical, classes_in

CLAIM = {
    "source": "maxent", "claim": "A is better", "place": "p. 1", "experiment": "trial", "predicate": "greater",
    "value": {"measure": "nllh", "method": "logistic"}, "reference": {"measure": "nllh", "method": "naive_bayes"},
}  # fmt: skip
QUANTIZER = {"class": "agglearn.vocabulary.BucketingQuantizer", "params": {"budget": 0.3}}
TRIAL = {
    "source": "maxent", "title": "Trial", "task": "agglearn.tasks.Classification", "datasets": {"fair": {}, "loglinear": {"n": 100}},
    "observe": {
        "tables": {"type": "agglearn.observations.ContingencyTables", "binning": "width"},
        "records": {"type": "agglearn.observations.Records"},
    },
    "seeds": [0, 1],
    "methods": {
        "naive_bayes": {"class": "agglearn.maxent.NaiveBayesClassifier", "observe": "tables"},
        "logistic": {"class": "agglearn.maxent.LogisticSkyline", "observe": "records"},
    },
    "measures": ["nllh", "auc"], "batch_by": ["dataset", "method"],
}  # fmt: skip
NESTED = {
    "source": "vocabulary", "title": "Nested", "task": "agglearn.tasks.Classification", "datasets": {"mine": {}},
    "observe": {"records": {"type": "agglearn.observations.Records"}}, "seeds": [0], "measures": ["nllh"],
    "methods": {"compressed": {
        "class": "agglearn.vocabulary.LogisticOnClusters", "observe": "records", "params": {"quantizer": QUANTIZER}}},
}  # fmt: skip
MINE = {
    "title": "Mine", "class": "agglearn.datasets.Tabular", "label": {"column": "y"}, "split": 0.2,
    "files": {"a.csv": {"sha256": "unknown"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A project with two experiments on three data sets, and a claim."""
    project = Project(tmp_path_factory.mktemp("reruns") / "template")
    for path in (project.base / "config/datasets").glob("*.yaml"):
        if path.stem not in ("fair", "loglinear", "digits"):
            path.unlink()
    write = lambda name, content: project.path(name).write_text(yaml.safe_dump(content, sort_keys=False))  # noqa: E731
    write("experiments/trial", TRIAL)
    write("experiments/nested", NESTED)
    write("datasets/mine", MINE)
    write("claims", {"better": CLAIM})
    for name in ("src/agglearn/reporting/templates", "config/findings", "docs"):
        shutil.copytree(ROOT / name, project.base / name, ignore=shutil.ignore_patterns("*.png"))
    project.edit("config", lambda c: c.update(run=["trial", "nested"], mirrors=["mirror"]))
    return project.base


def copied(template: Path) -> Path:
    """The project, in the same folder for every test, so that `before` holds for all."""
    shutil.rmtree(template.parent / "project", ignore_errors=True)
    return shutil.copytree(template, template.parent / "project")


@pytest.fixture(scope="module")
def before(template) -> dict[str, list]:
    """Jobs of the project as it is."""
    return jobs(copied(template))


@pytest.fixture
def base(before, template) -> Path:
    """The project, to be edited."""
    return copied(template)


def rules() -> dict[str, dict[str, str]]:
    """Expressions of the parameters of every rule, as its file has them."""
    found = {}
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(), re.MULTILINE | re.DOTALL):
            params = re.search(r"^    params:\n((?:        .*\n)+)", body, re.MULTILINE)
            found[name] = dict(re.findall(r"^        (\w+)=(.*),$", params[1], re.MULTILINE)) if params else {}
    return found


def jobs(base: Path, over: dict | None = None) -> dict[str, list]:
    """The parameters of every job, by `rule wildcards`, for the workflow in the project's folder."""
    with contextlib.chdir(base):
        return _jobs(base, over)


def wiring(base: Path, over: dict | None = None) -> dict[str, object]:
    """The functions of the rules, on the plan of the project in `base`."""
    config = configuration.load(base, copy.deepcopy(over or {}))
    config["scale_folder"] = config["results"]
    plan = Plan(config)
    names = {"config": config, "plan": plan, "R": config["results"], "S": config["results"], "FILES": base, "Path": Path,
             "workflow": SimpleNamespace(cores=8), "start_run": lambda: None, "DELETES": False, "RECORDED": False}  # fmt: skip
    exec(compile((ROOT / "rules/wiring.py").read_text(), "wiring.py", "exec"), names)
    names["PACKAGE"] = base / "src/agglearn"
    return names


def _jobs(base: Path, over: dict | None) -> dict[str, list]:
    names = wiring(base, over)
    plan = names["plan"]
    datasets = sorted({d for e in plan.experiments for d in plan.datasets(e)})
    cells = {
        "fetch": [{"dataset": d} for d in datasets],
        "prepare": [{"dataset": d} for d in datasets],
        "observe": [{"experiment": e} for e in plan.experiments],
        "fit": [{"experiment": e, "batch": b} for e in plan.experiments for b in plan.batches(e)],
        "render": [{"experiment": e} for e in plan.experiments],
        "track": [{"group": g} for g in plan.groups()],
        "judge": [{"group": g} for g in plan.groups()],
        "collect": [{}],
        "page": [{"source": s} for s in plan.sources()],
        "site": [{}],
        "conclude": [{"target": "all"}],
    }
    found = {}
    for rule, params in rules().items():
        for wildcards in cells[rule]:
            of = SimpleNamespace(**wildcards)
            values = {k: eval(expression, names) for k, expression in params.items()}
            key = " ".join([rule, *wildcards.values()])
            found[key] = {k: v(of) if callable(v) else v for k, v in values.items()}
    return found


def changed(before: dict, after: dict) -> set[str]:
    return {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}


def of(rule: str, *names: str) -> set[str]:
    return {f"{rule} {name}" for name in names}


BATCHES = ("trial fair-naive_bayes", "trial fair-logistic", "trial loglinear-naive_bayes", "trial loglinear-logistic")
FITS, OBSERVED = of("fit", *BATCHES), {"observe trial"}
TEXTS = {"render trial", "site"}
AGREEMENT = {"margins": {"nllh": 0.1}, "reason": "nobody cares about less"}
PRINTED = {"dataset": "fair", "method": "logistic", "measure": "nllh", "value": 0.1, "place": "Table 1"}
EXPERIMENT_KEYS = {
    "extends": ({"extends": "nested"}, None),  # the parent's keys have rows of their own
    "source": (
        {"source": "another"},
        {"page maxent", "page another", "judge maxent", "judge another", "track maxent", "track another", "site"},
    ),
    "title": ({"title": "Other"}, TEXTS),
    "order": ({"order": 1}, {"site"}),
    "caption": ({"caption": "Read it so."}, TEXTS),
    "task": (None, None),  # an edit of its code is below
    "datasets": ({"datasets": {"loglinear": {"n": 200}}}, of("fit", *BATCHES[2:]) | {"observe trial"}),
    "observe": ({"observe": {"tables": {"binning": "deciles"}}}, of("fit", BATCHES[0], BATCHES[2]) | OBSERVED),
    "seeds": ({"seeds": [0, 2]}, FITS | OBSERVED),
    "methods": ({"methods": {"naive_bayes": {"params": {"smoothing": 2.0}}}}, of("fit", BATCHES[0], BATCHES[2])),
    "ablate": (
        {"ablate": {"base": "naive_bayes", "changes": {"params.smoothing": [2.0]}}},
        of("fit", BATCHES[1], BATCHES[3], "trial fair-smoothing_2_0", "trial loglinear-smoothing_2_0")
        | OBSERVED
        | {"render trial"},
    ),
    "measures": ({"measures": ["nllh"]}, FITS),
    "baseline": ({"baseline": "logistic"}, {"render trial"}),
    "exclude": (
        {"exclude": [{"dataset": "fair", "method": "naive_bayes", "seed": 1}]},
        of("fit", BATCHES[0]) | {"observe trial"},
    ),
    "batch_by": ({"batch_by": ["dataset"]}, FITS | of("fit", "trial fair", "trial loglinear")),
    "time_limit": ({"time_limit": 7}, FITS),
    "budget": ({"budget": 9}, TEXTS),
    "timed": ({"timed": True}, FITS),
    "threads": ({"threads": 2}, FITS),
    "keep_model": ({"keep_model": "all"}, FITS),
    "table": ({"table": {"rows": ["method"], "columns": ["dataset"], "measure": "auc"}}, {"render trial"}),
    "figure": ({"figure": {"kind": "dots", "y": "auc"}}, {"render trial"}),
    "reported": ({"reported": [PRINTED], "agreement": AGREEMENT}, {"render trial"}),
    "agreement": ({"agreement": AGREEMENT}, {"render trial"}),
}
METHOD_KEYS = {
    "class": ({"class": "agglearn.maxent.BestPairClassifier"}, of("fit", BATCHES[0], BATCHES[2])),
    "observe": ({"observe": "more"}, of("fit", BATCHES[0], BATCHES[2]) | OBSERVED),
    "name": ({"name": "Naive"}, {"render trial"}),
    "ignore_noise": ({"ignore_noise": True}, of("fit", BATCHES[0], BATCHES[2])),
    "params": ({"params": {"smoothing": 3.0}}, of("fit", BATCHES[0], BATCHES[2])),
    "change": ({"change": "params.smoothing = 3.0"}, set()),  # a tag of runs that are sent
}
OBSERVERS = {"fetch mine", "prepare mine", "observe nested"}
DATASET_KEYS = {
    "title": ("Other", {"render nested", "site"}),
    "class": ("agglearn.datasets.Packaged", None),  # its code is below
    "licence": ("MIT", {"site"}),
    "citation": ("Me (2020). Mine.", {"site"}),
    "doi": ("10.1234/mine", {"site"}),
    "homepage": ("https://example.org", {"site"}),
    "note": ("Beware.", {"site"}),
    "params": (None, None),  # of a simulated data set, below
    "mirror": ("elsewhere", OBSERVERS | {"site"}),
    "files": ({"a.csv": {"sha256": "0" * 64}}, OBSERVERS | {"site"}),
    "format": ({"separator": ";"}, OBSERVERS | {"site"}),
    "label": ({"positive": "yes"}, OBSERVERS | {"site"}),
    "features": ({"drop": ["b"]}, OBSERVERS | {"site"}),
    "split": (0.3, OBSERVERS | {"site"}),
    "split_like": ("fair", OBSERVERS | {"site"}),
    "encoding": ({"target": {"holdout": 0.5, "above": 9, "modalities": 9}}, OBSERVERS | {"site"}),
    "binning": ("width", OBSERVERS | {"site"}),
}
CLAIM_KEYS = {
    "source": None, "claim": "B is better", "place": "p. 2", "experiment": None, "predicate": "less",
    "value": {"measure": "auc"}, "reference": {"measure": "auc"}, "each": ["dataset"], "x": None, "cases": None, "tolerance": 0.1,
    "margin": 0.2, "deterministic": "for the sake of this test", "min_pairs": 2, "replicates": "part",
    "weak": "for the sake of this test", "bound": None, "note": "Read it.",
    "why": "for the sake of this test",
}  # fmt: skip
CONFIG_KEYS = {
    "scale": ("smoke", set()),
    "run": (["trial"], {"fetch mine", "prepare mine", "observe nested", "fit nested all", "render nested",
                        "track vocabulary", "judge vocabulary", "page vocabulary", "site"}),
    "show": (["trial"], set()),
    "from": ("both", {"site"}),
    "record": ("another", set()),
    "mirrors": (["another"], {"fetch mine"}),
    "cache": ("another", set()),
    "on_missing": ("fail", set()),
    "on_failure": ("fail", set()),
    "results": ("others", set()),  # other files
    "code": ([], set()),  # what lies there is below
    "tracking": ({"uri": "http://127.0.0.1:9"}, of("track", "maxent", "vocabulary")),
}  # fmt: skip


def keys_of(model) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_every_key_has_a_row():
    assert set(EXPERIMENT_KEYS) == keys_of(models.Experiment)
    assert set(METHOD_KEYS) == keys_of(models.Method)
    assert set(DATASET_KEYS) == keys_of(models.Dataset)
    assert set(CLAIM_KEYS) == keys_of(models.Claim)
    assert set(CONFIG_KEYS) == keys_of(models.Configuration)


def test_rules_are_read(base, before):
    assert {k.split()[0] for k in before} == {*rules()}
    assert {rule: set(params) for rule, params in rules().items() if params} == {
        "fetch": {"recipe", "local"}, "prepare": {"recipe"}, "observe": {"slots", "recipes"}, "fit": {"recipes", "recorded", "library_threads"},
        "render": {"shown", "code"}, "track": {"uri", "attempt"}, "judge": {"claims", "record", "code"}, "collect": {"claims"}, "conclude": {"code"}, "site": {"shown", "code", "templates"},
    }  # fmt: skip
    assert jobs(base) == before


def test_a_target_waits_for_the_receipts_of_its_groups(base):
    """A group of a source is sent together. An experiment that is asked for alone needs no other one of its source."""
    with contextlib.chdir(base):
        names = wiring(base, {"experiments": {n: {"source": "maxent"} for n in ("trial", "nested")}})
        alone = wiring(base, {"run": ["trial"]})

    def receipts(names, target: str) -> list[str]:
        return [Path(path).stem for path in names["receipts"](target)]

    assert receipts(names, "all") == receipts(names, "maxent") == ["maxent"]
    assert receipts(names, "trial") == ["trial"]
    assert receipts(alone, "trial") == ["maxent"]
    both, one = (SimpleNamespace(group=group) for group in ("maxent", "trial"))
    assert {Path(path).parent.name for path in names["tracked_measurements"](both)} == {"trial", "nested"}
    assert {Path(path).parent.name for path in names["tracked_measurements"](one)} == {"trial"}


@pytest.mark.parametrize("key", [k for k, (_, jobs) in EXPERIMENT_KEYS.items() if jobs is not None])
def test_a_key_of_an_experiment(base, before, key):
    over, expected = EXPERIMENT_KEYS[key]
    start = {"timed": True} if key == "threads" else {}
    start |= {"reported": [PRINTED], "agreement": AGREEMENT | {"margins": {"nllh": 0.3}}} if key == "agreement" else {}
    claims = {"claims": {"better": None}} if key == "source" else {}
    first = jobs(base, {"experiments": {"trial": start}} | claims) if start or claims else before
    assert changed(first, jobs(base, {"experiments": {"trial": start | over}} | claims)) == expected


@pytest.mark.parametrize("key", METHOD_KEYS)
def test_a_key_of_a_method(base, before, key):
    over, expected = METHOD_KEYS[key]
    more = {"observe": {"more": dict(TRIAL["observe"]["tables"])}} if key == "observe" else {}
    first = jobs(base, {"experiments": {"trial": more}}) if more else before
    after = jobs(base, {"experiments": {"trial": more | {"methods": {"naive_bayes": over}}}})
    assert changed(first, after) == expected


@pytest.mark.parametrize("field", ["value", "printed", "place"])
def test_a_printed_number(base, field):
    other = PRINTED | {field: {"value": 0.2, "printed": "0.10", "place": "Table 2"}[field]}
    before, after = (
        jobs(base, {"experiments": {"trial": {"reported": [r], "agreement": AGREEMENT}}}) for r in (PRINTED, other)
    )
    assert changed(before, after) == {"render trial"}


@pytest.mark.parametrize("key", [k for k, (_, jobs) in DATASET_KEYS.items() if jobs is not None])
def test_a_key_of_a_data_set(base, before, key):
    over, expected = DATASET_KEYS[key]
    assert changed(before, jobs(base, {"datasets": {"mine": {key: over}}})) == expected


def test_parameters_of_a_simulated_data_set(base, before):
    after = jobs(base, {"datasets": {"loglinear": {"params": {"strength": 0.5}}}})
    assert changed(before, after) == {"fetch loglinear", "prepare loglinear", "observe trial", "site"}


def test_a_file_of_the_record(base, before):
    """Its verdicts stand beside those of a smaller scale, and nowhere else."""
    assert not before["judge maxent"]["record"]
    path = base / "record/trial/0.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one")
    first = jobs(base)
    assert changed(before, first) == {"judge maxent"}
    path.write_bytes(b"other")
    assert changed(first, jobs(base)) == {"judge maxent"}
    second = jobs(base)
    (base / "record/other").mkdir()
    (base / "record/other/0.parquet").write_bytes(b"one")  # of no experiment that is claimed on
    assert jobs(base) == second
    assert not jobs(base, {"scale": "paper"})["judge maxent"]["record"]


@pytest.mark.parametrize("key", [k for k, value in CLAIM_KEYS.items() if value is not None])
def test_a_key_of_a_claim(base, before, key):
    after = jobs(base, {"claims": {"better": {key: CLAIM_KEYS[key]}}})
    assert changed(before, after) == {"judge maxent", "collect"}


@pytest.mark.parametrize("bounds", [(0.1, 0.2), ([0, 1], [0, 2])])
def test_a_bound_of_a_claim(base, bounds):
    more = {"predicate": "at_least"} if bounds[0] == 0.1 else {"predicate": "slope_between", "x": "seed"}
    before, after = (jobs(base, {"claims": {"better": {"reference": None, "bound": b} | more}}) for b in bounds)
    assert changed(before, after) == {"judge maxent", "collect"}


@pytest.mark.parametrize("key", CONFIG_KEYS)
def test_a_key_of_the_configuration(base, key):
    value, expected = CONFIG_KEYS[key]
    for folder in ("mirror/mine", "another/mine", "results/cache/mine"):
        if key not in ("cache", "mirrors") or folder.split("/")[0] == {"cache": "results", "mirrors": "mirror"}[key]:
            (base / folder).mkdir(parents=True)
            (base / folder / "a.csv").write_text("a,y\n1,0\n")
    assert changed(jobs(base), jobs(base, {key: value})) == expected


def test_local_files_and_references(base, before):
    path = base / "mirror/mine/a.csv"
    path.parent.mkdir(parents=True)
    path.write_text("a,y\n1,0\n")
    there = jobs(base)
    assert changed(before, there) == {"fetch mine"}
    os.utime(path, (1, 1))
    touched = jobs(base)
    assert changed(there, touched) == {"fetch mine"}
    path.write_text("a,y\n1,0\n2,1\n")
    os.utime(path, (1, 1))
    assert changed(touched, jobs(base)) == {"fetch mine"}
    file = base / "config/references.yaml"
    file.write_text(file.read_text().replace("title: ", "title: Another ", 1))
    assert changed(there, jobs(base)) - {"fetch mine"} == {"site"}


# -- code ---------------------------------------------------------------------------------------------------------------

ALL = {"nested all", *BATCHES}
EVERY_OBSERVE = OBSERVED | {"observe nested"}
RENDERED, JUDGED = {"render trial", "render nested"}, of("judge", "maxent", "vocabulary")
EDITED = {  # module → jobs
    "maxent.naive_bayes": of("fit", BATCHES[0], BATCHES[2]),
    "maxent.skyline": of("fit", BATCHES[1], BATCHES[3]),
    "vocabulary.baselines": of("fit", "nested all"),  # the nested class
    "tasks.classification": of("fit", *ALL) | EVERY_OBSERVE,
    "tasks.splitting": of("fit", *ALL) | EVERY_OBSERVE,
    "evaluation.metrics": of("fit", *ALL) | EVERY_OBSERVE,  # measures
    "datasets.simulated": {"prepare loglinear", "observe trial"},
    "datasets.tabular": {"prepare fair", "prepare mine", "observe trial", "observe nested"},
    "reporting.printed_table": RENDERED | {"site"},
    "reporting.writers": RENDERED | {"site"},
    "reporting.figures": RENDERED,
    "reporting.lines": RENDERED,
    "reporting.svg": RENDERED | {"site"},
    "reporting.claims": JUDGED,
    "reporting.predicates": JUDGED | {"site"},
    "reporting.samples": JUDGED | {"site"},
    "reporting.site": {"site"},
    "evaluation.verdicts": RENDERED | JUDGED | {"site"},
}


@pytest.fixture
def edited(monkeypatch):
    """`edited(module)`: the module reads otherwise from now on."""
    edits, summary = set(), modules.summary_of

    def forget():
        for cached in modules.CACHED:
            cached.cache_clear()

    def edit(module):
        edits.add(f"agglearn.{module}")
        forget()

    def summarised(module):
        found = summary(module)
        return found._replace(digest=found.digest + " edited" * (module in edits))

    monkeypatch.setattr(modules, "summary_of", summarised)
    yield edit
    monkeypatch.undo()
    forget()


@pytest.mark.slow
@pytest.mark.parametrize("module", EDITED)
def test_an_edit_of_code(base, before, edited, module):
    edited(module)
    assert changed(before, jobs(base)) == EDITED[module]


@pytest.mark.parametrize(
    "file",
    [
        "src/agglearn/reporting/templates/base.html",
        "src/agglearn/reporting/templates/style.css",
        "config/findings/maxent.md",
        "docs/verdicts.md",
    ],
)
def test_an_edit_of_a_template_or_of_the_words_on_verdicts(base, before, file):
    (base / file).write_text((base / file).read_text() + " ")
    assert changed(before, jobs(base)) == {"site"}


def test_a_number_in_the_docs(base, before):
    page = base / "docs/maxent.md"
    page.write_text(page.read_text() + "\n<!-- trial: {measure: nllh, method: logistic, dataset: fair} -->.42\n")
    assert jobs(base) == before


# -- identity, recipe and fingerprint of a run --------------------------------------------------------------------------

SLOT = Slot("d", "{}", "tables", "{}", 0)
SPEC = {"class": "agglearn.maxent.NaiveBayesClassifier", "task": "agglearn.tasks.Classification",
        "type": "agglearn.observations.ContingencyTables", "measures": ["nllh"], "keep_model": "none", "ignore_noise": False}  # fmt: skip
SETTINGS = Settings(SPEC["class"], SPEC["task"], SPEC["type"], ("nllh",))
RUN = Run("e", "d", "{}", "tables", "{}", "m", "{}", 0, SETTINGS)


def with_other(name: str) -> Run:
    """The run with another value of one part of its identity."""
    other = {"seed": 1}.get(name, '{"k": 1}' if name.endswith("params") else "other")
    return dataclasses.replace(RUN, **{name: other})


def test_every_part_of_the_identity_makes_another_run():
    others = [with_other(name) for name in IDENTITY]
    assert len({RUN.key, *(r.key for r in others)}) == len(IDENTITY) + 1
    assert len({RUN.recipe, *(r.recipe for r in others)}) == len(IDENTITY) + 1
    slots = [r.slot.key for r in others if r.slot != SLOT]
    assert len({SLOT.key, *slots}) == len(Slot.__dataclass_fields__) + 1


@pytest.mark.parametrize(("key", "value"), [
    ("class", "agglearn.maxent.BestPairClassifier"), ("task", "agglearn.tasks.Compression"), ("type", "agglearn.observations.Records"),
    ("measures", ["nllh", "auc"]), ("keep_model", "all"), ("ignore_noise", True),
])  # fmt: skip
def test_every_part_of_what_computes_a_run_changes_its_recipe(key, value):
    assert SETTINGS.record() == SPEC
    field = {"class": "method_class", "type": "observation_class"}.get(key, key)
    value = tuple(value) if key == "measures" else value
    other = dataclasses.replace(RUN, settings=dataclasses.replace(SETTINGS, **{field: value}))
    assert other.key == RUN.key
    assert other.recipe != RUN.recipe


def test_code_behind_a_run_is_that_of_its_classes():
    nested = dataclasses.replace(RUN, params=canonical({"quantizer": QUANTIZER, "k": [{"class": "a.B", "params": {}}]}))
    assert sorted(nested.code) == sorted([SPEC["class"], SPEC["task"], QUANTIZER["class"], "a.B"])
    assert classes_in({"x": {"y": [QUANTIZER]}}) == [QUANTIZER["class"]]


def test_a_fingerprint_is_of_the_recipe_and_of_its_own_observation():
    content = {
        f"{SLOT.key}/observation/t.parquet": "1",
        f"{SLOT.key}/truth/y.npz": "2",
        "other/observation/t.parquet": "3",
    }
    mine = runs.fingerprint(RUN, {"content": content})
    assert mine == runs.fingerprint(RUN, {"content": content | {"other/observation/t.parquet": "4"}})
    others = [{"content": content | {name: "5"}} for name in list(content)[:2]]
    others += [{"content": content, "reason": "no file"}, {"content": {}}]
    prints = [runs.fingerprint(RUN, manifest) for manifest in others] + [
        runs.fingerprint(with_other("method"), {"content": content})
    ]
    assert len({mine, *prints}) == len(prints) + 1


def test_parameters_are_written_in_one_way():
    assert canonical({"b": 1, "a": [1.0, None, True, "ä"]}) == '{"a": [1.0, null, true, "ä"], "b": 1}'
    assert json.loads(canonical({"a": {"c": 1, "b": 2}})) == {"a": {"b": 2, "c": 1}}
