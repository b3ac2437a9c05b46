"""Verdicts in files: pages show those of the sources that are done, and judge nothing."""

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import ROOT

from agglearn import jobs
from agglearn.reporting import claims, judging, run_summary
from agglearn.storage import read_json, write_json
from agglearn.workflow import config as configuration
from agglearn.workflow.plan import Plan

RUN = ["maxent_table4", "maxent_scaling_rows", "vocabulary_figure3", "labelsums_equality"]


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A configuration of three sources, one with a timed experiment; judging raises."""

    def judge(*arguments):
        raise AssertionError("a page has judged")

    monkeypatch.setattr(claims, "judge", judge)
    monkeypatch.setattr(judging, "judge", judge)
    places = {"results": str(tmp_path), "scale_folder": str(tmp_path)}
    return configuration.load(ROOT, {"scale": "smoke", "run": RUN}) | places


@pytest.fixture
def shown(config, monkeypatch, tmp_path):
    """A function that makes pages; returns the names of the claims with verdicts, and the sources at work."""
    monkeypatch.setattr(
        "agglearn.reporting.site.build",
        lambda plan, verdicts, results, out, base, unfinished=(): made.append((verdicts, list(unfinished))),
    )
    made = []

    def make(rule: str):
        getattr(jobs, rule)(SimpleNamespace(config=config, output=[tmp_path / "site/page.html"]))
        verdicts, unfinished = made.pop()
        assert {v["verdict"] for v in verdicts if v["experiment"] in RUN} == {"holds"}
        return [v["name"] for v in verdicts], unfinished

    return make


def judged(config, group: str) -> list[str]:
    """Write the file of a group, as its job does, and return the names of its claims."""
    names = of(config, *Plan(config).members(group))
    entries = [{**config["claims"][n], "name": n, "verdict": "holds", "detail": "", "cases": []} for n in names]
    write_json(f"{config['scale_folder']}/claims/{group}.json", entries)
    return names


def rendered(config, name: str) -> None:
    """Write the files of an experiment that its fits and its table end with."""
    plan = Plan(config)
    for batch in plan.batches(name):
        path = Path(config["scale_folder"], "measurements", name, f"{batch}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        recipes = {"recipes": json.dumps({r.key: r.recipe for r in plan.runs(name, batch)})}
        marks = {"marks": "{}"} if config["from"] == "record" else {}
        pq.write_table(pa.table({}).replace_schema_metadata(recipes | marks), path)
    write_json(f"{config['scale_folder']}/tables/{name}.json", [])


def of(config, *experiments: str) -> list[str]:
    return [name for name, claim in config["claims"].items() if claim["experiment"] in experiments]


def test_timed_experiments_are_judged_apart(config):
    assert Plan(config).groups() == {
        "maxent": ["maxent_table4"],
        "maxent_timed": ["maxent_scaling_rows"],
        "vocabulary": ["vocabulary_figure3"],
        "labelsums": ["labelsums_equality"],
    }


def test_a_page_shows_the_verdicts_of_the_sources_that_are_done(config, shown, tmp_path):
    for name in ("maxent_table4", "vocabulary_figure3"):
        rendered(config, name)
    maxent = judged(config, "maxent")
    assert len(maxent) > 2
    (tmp_path / "tables/vocabulary_figure3.json").rename(tmp_path / "tables/vocabulary_figure3.csv")
    judged(config, "vocabulary")
    assert shown("page") == (maxent, ["maxent", "vocabulary", "labelsums"])  # its table is being rendered
    (tmp_path / "tables/vocabulary_figure3.csv").rename(tmp_path / "tables/vocabulary_figure3.json")
    (tmp_path / "claims/vocabulary.json").unlink()
    assert shown("page") == (maxent, ["maxent", "vocabulary", "labelsums"])  # vocabulary is not judged yet
    vocabulary = judged(config, "vocabulary")
    judged(config, "labelsums")  # without its tables
    names, _ = shown("page")
    assert sorted(names) == sorted(maxent + vocabulary)
    rendered(config, "maxent_scaling_rows")
    late = judged(config, "maxent_timed")
    assert sorted(shown("page")[0]) == sorted(maxent + late + vocabulary)
    next((tmp_path / "measurements/vocabulary_figure3").iterdir()).unlink()  # it is computed again
    assert sorted(shown("page")[0]) == sorted(maxent + late)


@pytest.mark.parametrize("earlier", [{"scale": "quick"}, {"scale": "paper", "from": "record"}, {"from": "record"}])
def test_a_page_shows_nothing_of_another_scale_or_of_the_record(config, shown, earlier):
    """One target after `make quick`, or after `make reproduce FROM=record`: the folder is the same."""
    rendered(config | earlier, "vocabulary_figure3")
    judged(config | earlier, "vocabulary")
    rendered(config, "maxent_table4")
    maxent = judged(config, "maxent")
    assert shown("page") == (maxent, ["maxent", "vocabulary", "labelsums"])
    rendered(config, "vocabulary_figure3")
    assert len(shown("page")[0]) > len(maxent)


def test_a_page_looks_again_where_a_file_goes_away_while_it_is_written(config, shown, tmp_path, monkeypatch):
    for name, group in (("maxent_table4", "maxent"), ("vocabulary_figure3", "vocabulary")):
        rendered(config, name)
        judged(config, group)
    both, real = shown("page")[0], jobs._pages

    def goes_away(job, plan, *rest):
        if "vocabulary_figure3" in plan.experiments:
            path = next((tmp_path / "measurements/vocabulary_figure3").iterdir())
            path.unlink()
            raise FileNotFoundError(path)
        real(job, plan, *rest)

    monkeypatch.setattr(jobs, "_pages", goes_away)
    left = shown("page")[0]
    assert left
    assert len(left) < len(both)

    def never_there(*_):
        raise FileNotFoundError("x")

    monkeypatch.setattr(jobs, "_pages", never_there)
    with pytest.raises(FileNotFoundError, match="x"):
        shown("page")


def test_one_file_has_every_claim_once(config, shown, tmp_path):
    files = [tmp_path / f"claims/{group}.json" for group in Plan(config).groups()]
    names = [name for file in files for name in judged(config, file.stem)]
    jobs.collect(SimpleNamespace(config=config, output=[tmp_path / "claims.json"], input=files))
    entries = read_json(tmp_path / "claims.json")
    assert [e["name"] for e in entries] == list(config["claims"])
    assert {e["name"] for e in entries if e["verdict"] == "holds"} == set(names)
    assert {e["detail"].split()[-1] for e in entries if e["verdict"] == "not judged"} == {"run"}
    assert shown("site") == (list(config["claims"]), [])


@pytest.mark.parametrize(("digest", "verdict"), [("d", "fails"), ("", None)])
def test_the_verdict_of_the_record_stands_beside(config, tmp_path, monkeypatch, digest, verdict):
    """Where the record has something, and the results are smaller than its own: the parameter of the rule states it."""
    monkeypatch.setattr(
        judging, "judge_all", lambda claims, *_: [{"name": name, "verdict": "holds"} for name in claims]
    )
    monkeypatch.setattr(judging, "judge_record", lambda claims, *_: dict.fromkeys(list(claims)[:1], "fails"))
    job = SimpleNamespace(
        config=config | {"record": "record"},
        wildcards=SimpleNamespace(group="maxent"),
        params=SimpleNamespace(record=digest),
        output=[tmp_path / "claims.json"],
    )
    jobs.judge(job)
    entries = read_json(tmp_path / "claims.json")
    assert [e.get("recorded") for e in entries] == [verdict] + [None] * (len(entries) - 1)
    assert {e["verdict"] for e in entries} == {"holds"}


def test_a_claim_that_failed_is_tried_again_with_its_group(tmp_path):
    for part, verdict in (("maxent", "failed"), ("labelsums", "holds")):
        write_json(tmp_path / f"claims/{part}.json", [{"name": part, "verdict": verdict}])
    assert run_summary.retry_targets(tmp_path) == [str(tmp_path / "claims/maxent.json")]
