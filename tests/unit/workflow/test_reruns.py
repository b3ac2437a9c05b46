"""Every input of a rule makes its jobs run again, and no other jobs: keys of the configuration, code, templates, local files.

The parameters of a rule are read from `rules/*.smk` and evaluated by the functions of `rules/common.smk`. A job runs again where
one of its own changes; what follows from it runs through its files.
"""

import contextlib
import copy
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from samples import ROOT, Project, rule_texts

from agglearn_workflow import digests
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.config import models
from agglearn_workflow.config.entries import has_records
from agglearn_workflow.plan import Plan

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
    written = {
        "experiments/trial": TRIAL,
        "experiments/nested": NESTED,
        "datasets/mine": MINE,
        "claims": {"better": CLAIM},
    }
    for name, content in written.items():
        project.path(name).write_text(yaml.safe_dump(content, sort_keys=False))
    for name in ("src/agglearn_workflow/templates", "config/findings", "docs"):
        shutil.copytree(ROOT / name, project.base / name, ignore=shutil.ignore_patterns("*.png", "api", "gallery"))
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


class Wildcards(dict):
    """Wildcards of a job, as Snakemake has them."""

    __getattr__ = dict.__getitem__


def rules() -> dict[str, dict[str, str]]:
    """Expressions of the parameters of every rule, as its file has them."""
    found = {}
    for text in rule_texts():
        for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL):
            params = re.search(r"^    params:\n((?:        .*\n)+)", body, re.MULTILINE)
            found[name] = dict(re.findall(r"^        (\w+)=(.*),$", params[1], re.MULTILINE)) if params else {}
        for old, new in re.findall(r"^use rule (\w+) as (\w+) with:$", text, re.MULTILINE):
            found[new] = found[old]
    return found


def jobs(base: Path, over: dict | None = None) -> dict[str, dict]:
    """The parameters of every job, by `rule wildcards`, for the workflow in the project's folder."""
    with contextlib.chdir(base):
        names, found = common(base, over), {}
        plan, entries = names["plan"], names["config"]["datasets"]
        computes = not names["FROM_THE_ARCHIVE"]
        cells = {
            "prepare": [{"dataset": d} for d in sorted({d for e in plan.experiments for d in plan.datasets(e)}) if has_records(entries[d])],
            "fit": [{"experiment": e, "batch": b} for e in plan.experiments for b in plan.batches(e)] * computes,
            "render": [{"experiment": e} for e in plan.experiments] * computes,
            "recall": [{"source": s} for s in plan.sources()] * (not computes),
            "track": [{"group": s} for s in plan.sources()],
            "site": [{}],
            "page": [{"target": s} for s in plan.sources()],
            "conclude": [{"target": "all"}],
        }  # fmt: skip
        for rule, params in rules().items():
            for wildcards in cells[rule]:
                of_loop = {**wildcards, "names": plan.named(wildcards["source"])} if rule == "recall" else {}
                values = {k: eval(expression, names | of_loop) for k, expression in params.items()}
                key = " ".join([rule, *wildcards.values()])
                # Snakemake compares what it would print of a value
                found[key] = {k: repr(v(Wildcards(wildcards)) if callable(v) else v) for k, v in values.items()}
        return found


def common(base: Path, over: dict | None = None) -> dict[str, object]:
    """The functions of the rules, on the plan of the project in `base`."""
    config = configuration.load(base, copy.deepcopy(over or {}))
    config["scale_folder"] = config["results"]
    text = (ROOT / "rules/common.smk").read_text()
    imports = "\n".join(re.findall(r"^(?:import|from) .*$", text, re.MULTILINE))
    functions = re.sub(r"^wildcard_constraints:\n(    .*\n)+", "", text[text.index("\nR = ") :], flags=re.MULTILINE)
    names = {"config": config, "plan": Plan(config), "workflow": SimpleNamespace(cores=8), "FROM_THE_ARCHIVE": config["from"] == "archive"}  # fmt: skip
    exec(compile(imports + functions, "common.smk", "exec"), names)
    names |= {"TEMPLATES": base / "src/agglearn_workflow/templates", "project_files": lambda: base}
    return names


def changed(before: dict, after: dict) -> set[str]:
    return {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}


def of(rule: str, *names: str) -> set[str]:
    return {f"{rule} {name}" for name in names}


BATCHES = ("trial fair-naive_bayes", "trial fair-logistic", "trial loglinear-naive_bayes", "trial loglinear-logistic")
FITS = of("fit", *BATCHES)
PAGES = {"site", "page maxent", "page vocabulary"}
TEXTS = {"render trial", "site", "page maxent"}
AGREEMENT = {"margins": {"nllh": 0.1}, "reason": "nobody cares about less"}
PRINTED = {"dataset": "fair", "method": "logistic", "measure": "nllh", "value": 0.1, "place": "Table 1"}
REPORTED = {"reported": [PRINTED], "agreement": AGREEMENT}
OBSERVERS = {"prepare mine", "fit nested all"}
CLAIMED = {"site", "page maxent", "render trial"}  # a figure begins with a claim


def trial(changes: dict) -> dict:
    return {"experiments": {"trial": changes}}


def better(changes: dict) -> dict:
    return {"claims": {"better": changes}}


# Model → where its keys stand, and rows: changes of a key, jobs, and what is laid over the project before.
KEYS = {
    models.Experiment: (trial, [
        ({"source": "another"}, {"page maxent", "page another", "track maxent", "track another", "site"}, better(None)),
        ({"title": "Other"}, TEXTS),
        ({"order": 1}, {"site"}),
        ({"caption": "Read it so."}, TEXTS),
        ({"code": ["config/findings"]}, set()),  # jobs follow the code of the classes, wherever it lies
        ({"datasets": {"loglinear": {"n": 200}}}, FITS),
        ({"observe": {"tables": {"binning": "deciles"}}}, FITS),
        ({"seeds": [0, 2]}, FITS),
        ({"methods": {"naive_bayes": {"params": {"smoothing": 2.0}}}}, FITS),
        ({"ablate": {"base": "naive_bayes", "changes": {"params.smoothing": [2.0]}}},
         FITS | of("fit", "trial fair-smoothing_2_0", "trial loglinear-smoothing_2_0") | {"render trial"}),
        ({"measures": ["nllh"]}, FITS),
        ({"baseline": "logistic"}, {"render trial"}),
        ({"exclude": [{"dataset": "fair", "method": "naive_bayes", "seed": 1}]}, FITS),
        ({"batch_by": ["dataset"]}, FITS | of("fit", "trial fair", "trial loglinear")),
        ({"time_limit": 7}, FITS),
        ({"budget": 9}, TEXTS),
        ({"timed": True}, FITS),
        ({"threads": 2}, FITS, trial({"timed": True})),
        ({"keep_model": "all"}, FITS),
        ({"table": {"rows": ["method"], "columns": ["dataset"], "measure": "auc"}}, {"render trial"}),
        ({"words": {"l2": "ridge"}}, {"render trial"}),
        ({"figure": {"kind": "dots", "y": "auc"}}, {"render trial"}),
        (REPORTED, {"render trial"}),
        *(({"reported": [PRINTED | other]}, {"render trial"}, trial(REPORTED))
          for other in ({"value": 0.2}, {"printed": "0.10"}, {"place": "Table 2"})),
        ({"agreement": AGREEMENT | {"margins": {"nllh": 0.3}}}, {"render trial"}, trial(REPORTED)),
    ]),
    models.Method: (lambda changes: trial({"methods": {"naive_bayes": changes}}), [
        ({"class": "agglearn.maxent.BestPairClassifier"}, FITS),
        ({"observe": "more"}, FITS, trial({"observe": {"more": TRIAL["observe"]["tables"]}})),
        ({"name": "Naive"}, {"render trial"}),
        ({"ours": True}, {"render trial"}),
        ({"tune": {"by": "nothing"}}, {"site", "page maxent"}),
        ({"ignore_noise": True}, FITS),
        ({"params": {"smoothing": 3.0}}, FITS),
        ({"change": "params.smoothing = 3.0"}, set()),  # a tag of runs that are sent
    ]),
    models.Dataset: (lambda changes: {"datasets": {"mine": changes}}, [
        ({"title": "Other"}, {"render nested"} | PAGES),
        ({"licence": "MIT"}, PAGES),
        ({"citation": "Me (2020). Mine."}, PAGES),
        ({"doi": "10.1234/mine"}, PAGES),
        ({"homepage": "https://example.org"}, PAGES),
        ({"note": "Beware."}, PAGES),
        ({"mirror": "elsewhere"}, OBSERVERS | PAGES),
        ({"files": {"a.csv": {"sha256": "0" * 64}}}, OBSERVERS | PAGES),
        ({"format": {"separator": ";"}}, OBSERVERS | PAGES),
        ({"label": {"positive": "yes"}}, OBSERVERS | PAGES),
        ({"features": {"drop": ["b"]}}, OBSERVERS | PAGES),
        ({"split": 0.3}, OBSERVERS | PAGES),
        ({"split_like": "fair"}, OBSERVERS | PAGES),
        ({"encoding": {"target": {"holdout": 0.5, "above": 9, "modalities": 9}}}, OBSERVERS | PAGES),
        ({"binning": "width"}, OBSERVERS | PAGES),
        ({"unit": "b"}, OBSERVERS | PAGES),
    ]),
    models.Claim: (better, [
        *(({key: value}, CLAIMED) for key, value in {
            "claim": "B is better", "place": "p. 2", "predicate": "less", "value": {"measure": "auc"}, "reference": {"measure": "auc"},
            "each": ["dataset"], "tolerance": 0.1, "margin": 0.2, "min_pairs": 2, "replicates": "part", "note": "Read it.",
        }.items()),
        *(({key: "for the sake of this test"}, CLAIMED) for key in ("deterministic", "weak", "why")),
        ({"bound": 0.2}, CLAIMED, better({"reference": None, "predicate": "at_least", "bound": 0.1})),
        ({"bound": [0, 2]}, CLAIMED, better({"reference": None, "predicate": "slope_between", "x": "seed", "bound": [0, 1]})),
    ]),
}  # fmt: skip
ELSEWHERE = {  # keys with a test of their own, or that need others beside them
    models.Experiment: {"extends", "task"},
    models.Method: set(),
    models.Dataset: {"class", "params"},
    models.Claim: {"source", "experiment", "x", "cases", "tested_by"},
}
CONFIG_KEYS = {
    "scale": ("smoke", set()),
    "run": (["trial"], {"prepare mine", "fit nested all", "render nested", "track vocabulary", "page vocabulary", "site"}),
    "show": (["trial"], set()),
    "from": ("both", set()),
    "archive": ("another", set()),
    "reuse": (False, set()),
    "mirrors": (["another"], {"prepare mine"}),
    "cache": ("another", set()),
    "on_missing": ("fail", set()),
    "on_failure": ("fail", set()),
    "results": ("others", set()),  # other files
    "code": ([], set()),  # what lies there is below
    "tracking": ({"uri": "http://127.0.0.1:9"}, of("track", "maxent", "vocabulary")),
}  # fmt: skip


def test_every_key_has_a_row():
    def keys_of(model) -> set[str]:
        return {field.alias or name for name, field in model.model_fields.items()}

    for model, (_, rows) in KEYS.items():
        assert {key for over, *_ in rows for key in over} | ELSEWHERE[model] == keys_of(model)
    assert set(CONFIG_KEYS) == keys_of(models.Configuration)


def test_rules_are_read(base, before):
    archived = base / "archive/other/0.parquet"
    archived.parent.mkdir(parents=True)
    archived.write_bytes(b"one")
    assert {k.split()[0] for k in [*before, *jobs(base, {"from": "archive"})]} == {*rules()}
    pages = {"settings", "claims", "archive", "code"}
    assert {rule: set(params) for rule, params in rules().items() if params} == {
        "prepare": {"entry", "code", "files"}, "fit": {"settings", "data", "code", "library_threads"},
        "recall": {"experiments", "settings", "archive", "code"}, "render": {"settings", "code"}, "track": {"uri", "attempt"},
        "site": pages, "page": pages,
    }  # fmt: skip
    assert jobs(base) == before


def test_a_target_waits_for_the_receipts_of_its_groups(base):
    """The experiments of a source are sent together. An experiment that is asked for alone needs no other one of its source."""
    with contextlib.chdir(base):
        names = common(base, {"experiments": {n: {"source": "maxent"} for n in ("trial", "nested")}})

    def receipts(target: str) -> list[str]:
        return [Path(path).stem for path in names["receipts"](target)]

    assert receipts("all") == receipts("maxent") == ["maxent"]
    assert receipts("trial") == ["trial"]
    assert {Path(path).parent.name for path in names["measurements"]("maxent")} == {"trial", "nested"}
    assert {Path(path).parent.name for path in names["measurements"]("trial")} == {"trial"}


@pytest.mark.parametrize(
    ("over", "expected", "start"),
    [(place(over), expected, *(start or [{}])) for place, rows in KEYS.values() for over, expected, *start in rows],
    # a set has another order in each process
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value)[:60],
)
def test_a_key(base, before, over, expected, start, monkeypatch):
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))
    first = jobs(base, start) if start else before
    assert changed(first, jobs(base, configuration.stack(start, over))) == expected


def test_parameters_of_a_simulated_data_set(base, before):
    after = jobs(base, {"datasets": {"loglinear": {"params": {"strength": 0.5}}}})
    assert changed(before, after) == of("fit", *BATCHES[2:]) | PAGES


def test_a_file_of_the_archive(base, before):
    """Its verdicts stand beside those of a smaller scale. From the archive its source is drawn again, and nothing else runs."""
    assert before["site"]["archive"] == "{}"
    other, path = (base / f"archive/{name}/0.parquet" for name in ("other", "trial"))
    for file in (other, path):
        file.parent.mkdir(parents=True)
    other.write_bytes(b"one")  # of an experiment that nothing is claimed on
    recalled = jobs(base, {"from": "archive"})
    assert jobs(base) == before
    path.write_bytes(b"one")
    first = jobs(base)
    assert changed(before, first) == {"site", "page maxent"}
    assert changed(recalled, jobs(base, {"from": "archive"})) == {"recall maxent"}
    path.write_bytes(b"other")
    assert changed(first, jobs(base)) == {"site", "page maxent"}
    assert jobs(base, {"scale": "paper"})["site"]["archive"] == "{}"


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
    assert changed(before, there) == {"prepare mine"}
    os.utime(path, (1, 1))
    touched = jobs(base)
    assert changed(there, touched) == {"prepare mine"}
    path.write_text("a,y\n1,0\n2,1\n")
    os.utime(path, (1, 1))
    assert changed(touched, jobs(base)) == {"prepare mine"}
    file = base / "config/references.yaml"
    file.write_text(file.read_text().replace("title: ", "title: Another ", 1))
    assert changed(there, jobs(base)) - {"prepare mine"} == PAGES


# -- code ---------------------------------------------------------------------------------------------------------------

ALL = {"nested all", *BATCHES}
RENDERED = {"render trial", "render nested"}
EDITED = {  # module → jobs
    "agglearn.maxent.naive_bayes": of("fit", BATCHES[0], BATCHES[2]),
    "agglearn.maxent.skyline": of("fit", BATCHES[1], BATCHES[3]),
    "agglearn.vocabulary.baselines": of("fit", "nested all"),  # the nested class
    "agglearn.tasks.classification": of("fit", *ALL),
    "agglearn.tasks.splitting": of("fit", *ALL),
    "agglearn.evaluation.metrics": of("fit", *ALL),  # measures
    "agglearn.datasets.simulated": of("fit", *BATCHES[2:]),
    "agglearn.datasets.tabular": {"prepare fair", "prepare mine"} | of("fit", *BATCHES[:2], "nested all"),
    "agglearn_workflow.tables.printed_table": RENDERED | PAGES,
    "agglearn_workflow.figures.points": RENDERED | PAGES,  # pages cut figures by what draws them
    "agglearn_workflow.figures.drawing": RENDERED | PAGES,
    "agglearn_workflow.claims.judging": RENDERED | PAGES,
    "agglearn_workflow.claims.samples": RENDERED | PAGES,
    "agglearn_workflow.site.pages": PAGES,
    "agglearn.evaluation.verdicts": RENDERED | PAGES,
}


@pytest.fixture
def edited(monkeypatch):
    """`edited(module)`: the module reads otherwise from now on."""
    read = digests.read

    def forget():
        for cached in digests.CACHED:
            cached.cache_clear()

    def edit(edited):
        def read_edited(module):
            found = read(module)
            return found._replace(digest=found.digest + " edited" * (module == edited))

        monkeypatch.setattr(digests, "read", read_edited)
        forget()

    yield edit
    monkeypatch.undo()
    forget()


@pytest.mark.slow
@pytest.mark.parametrize("module", EDITED)
def test_an_edit_of_code(base, before, edited, module):
    edited(module)
    assert changed(before, jobs(base)) == EDITED[module]


@pytest.mark.parametrize("file", [
    "src/agglearn_workflow/templates/base.html", "src/agglearn_workflow/templates/style.css", "config/findings/maxent.md", "docs/verdicts.md",
    "src/agglearn_workflow/templates/table.md",
])  # fmt: skip
def test_an_edit_of_a_template_or_of_the_words_on_verdicts(base, before, file):
    (base / file).write_text((base / file).read_text() + " ")
    assert changed(before, jobs(base)) == PAGES | (RENDERED if file.endswith("table.md") else set())


def test_a_number_in_the_docs(base, before):
    page = base / "docs/maxent.md"
    page.write_text(page.read_text() + "\n<!-- trial: {measure: nllh, method: logistic, dataset: fair} -->.42\n")
    assert jobs(base) == before
