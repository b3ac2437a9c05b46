"""The archive: its files, what is merged, what is shown from it, and what is marked."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import ROOT, Project

from agglearn.cli import main
from agglearn.errors import ConfigError, DataError
from agglearn_workflow import render, run_summary
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import ArchivedRun, table_of, write_batch
from agglearn_workflow.claims import judging
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan, Run
from agglearn_workflow.tables import summary

DAY = 1.7e9  # 2023-11-14


@pytest.fixture
def plan(tmp_path) -> Plan:
    return Plan(load(Project(tmp_path).base, {"scale": "smoke"}))


def measured(run: Run, shift: float = 0.0) -> list[dict]:
    """Rows of a run: two measures, the time, and a curve."""
    rng = np.random.default_rng(int(run.key, 16))
    own = {"run": run.key, **run.identity, "status": "ok", "tested": "t", "overlap": 0.25}
    rows = [{"measure": m, "value": rng.normal() + shift, "unit": ""} for m in ("nllh", "auc")]
    rows += [{"measure": "nllh", "value": rng.normal(), "unit": "", "step": k} for k in range(3)]
    rows += [{"measure": m, "value": rng.random(), "unit": "s"} for m in ("seconds", "elapsed")]
    return [own | row for row in rows]


def archived(run: Run, shift: float = 0.0, **changes) -> ArchivedRun:
    facts = dict.fromkeys(store.FACTS.names) | {
        **run.identity, "recipe": run.recipe, "code": "c" * 12, "fingerprint": "f", "observed": "o", "machine": "a machine",
        "data": {"digest": "d"}, "spec": run.settings, "versions": {"numpy": "2.0"}, "commit": "abcdef",
        "began": DAY - 2, "ended": DAY, "cpu_seconds": 2.0, "peak_memory": 4e8,
    }  # fmt: skip
    return ArchivedRun(facts | changes, table_of(measured(run, shift)))


def as_archive(runs) -> dict:
    return {run.key: archived(run) for run in runs}


def files(folder) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


# -- files ------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again_and_has_equal_bytes_in_whatever_order(plan, tmp_path):
    runs = as_archive(plan.runs("trial"))
    store.write(tmp_path / "a", "trial", runs)
    store.write(tmp_path / "b", "trial", dict(reversed(runs.items())))
    assert files(tmp_path / "a") == files(tmp_path / "b")
    again = store.read(tmp_path / "a", "trial")
    assert again.keys() == runs.keys()
    assert all(again[key].facts == run.facts and again[key].rows.equals(run.rows) for key, run in runs.items())
    assert store.experiments(tmp_path / "a") == ["trial"]
    assert store.read(tmp_path / "a", "other") == {}


@pytest.mark.parametrize(("limit", "least"), [(15_000, 3), (9_000, 12)])
def test_no_file_is_larger_than_the_limit(plan, tmp_path, monkeypatch, limit, least):
    """Runs are cut at the ends of files. From the eleventh file on the order of names is not that of numbers."""
    runs = as_archive(plan.runs("trial"))
    rng = np.random.default_rng(0)
    for key, run in runs.items():
        many = pa.concat_tables([run.rows] * 50)
        noise = pa.array(rng.random(many.num_rows))
        runs[key] = ArchivedRun(run.facts, many.set_column(many.schema.get_field_index("value"), "value", noise))
    monkeypatch.setattr(store, "MAX_BYTES", limit)
    store.write(tmp_path, "trial", runs)
    contents = files(tmp_path)
    assert len(contents) >= least
    assert max(map(len, contents.values())) <= limit
    again = store.read(tmp_path, "trial")
    assert again.keys() == runs.keys()
    assert all(again[key].rows.equals(run.rows) for key, run in runs.items())


def test_facts_are_read_without_measurements(plan, tmp_path):
    runs = as_archive(plan.runs("trial"))
    store.write(tmp_path, "trial", runs)
    names = ["recipe", "cpu_seconds", "ended"]
    facts = store.read_facts(tmp_path, "trial", names).set_index("run")
    assert facts[names].T.to_dict() == {k: {n: run.facts[n] for n in names} for k, run in runs.items()}
    assert facts.loc[list(runs), "method"].tolist() == [run.facts["method"] for run in runs.values()]
    none = store.read_facts(tmp_path, "nothing", names)
    assert none.empty
    assert list(none) == list(facts.reset_index())


def test_a_damaged_file_and_other_columns_are_refused_in_a_line(plan, tmp_path):
    store.write(tmp_path, "trial", as_archive(plan.runs("trial")[:1]))
    path = tmp_path / "trial/0.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["unit"]), path)
    with pytest.raises(DataError, match=r"0\.parquet: its columns are not today's \(unit\)"):
        store.read(tmp_path, "trial")
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"0\.parquet: not a file of the archive"):
        store.read(tmp_path, "trial")


# -- merging ----------------------------------------------------------------------------------------------------------


def test_of_two_records_the_current_run_counts_then_the_newer(plan):
    runs = plan.runs("trial")[:4]
    recipes = {run.key: run.recipe for run in runs}
    old = {"recipe": "another"}
    ours, theirs = ({}, old, {"ended": DAY + 9}, {}), ({"ended": DAY + 5, **old}, {"ended": DAY - 5}, {})
    a = {run.key: archived(run, 1, **facts) for run, facts in zip(runs, ours, strict=True)}
    b = {run.key: archived(run, 2, **facts) for run, facts in zip(runs, theirs, strict=False)}
    merged = store.merge(a, b, recipes)
    assert [merged[run.key] is a[run.key] for run in runs] == [True, False, True, True]
    assert merged[runs[1].key] is b[runs[1].key]
    assert store.merge(b, a, recipes) == merged


def test_adding_keeps_what_is_there(plan, tmp_path):
    runs = plan.runs("trial")
    recipes = {run.key: run.recipe for run in runs}
    assert store.add(tmp_path, "trial", as_archive(runs[:3]), recipes) == 3
    before = files(tmp_path)
    assert store.add(tmp_path, "trial", as_archive(runs[:2]), recipes) == 0
    assert files(tmp_path) == before
    assert store.add(tmp_path, "trial", as_archive(runs[2:]), recipes) == len(runs) - 3
    store.write(tmp_path / "whole", "trial", as_archive(runs))
    assert files(tmp_path / "trial") == files(tmp_path / "whole/trial")


def test_the_command_merges_what_the_other_archive_lacks(plan, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs = as_archive(plan.runs("trial"))
    store.write(tmp_path / "archive", "trial", runs)
    (tmp_path / "other.yaml").write_text("archive: merged\n")
    for told in (f"trial: {len(runs)} runs added\n", ""):
        assert main(["archive", "merge", "archive", "--scale", "smoke", "--configfile", "other.yaml"]) == 0
        assert capsys.readouterr().out == told
        assert files(tmp_path / "merged") == files(tmp_path / "archive")
    assert main(["archive", "merge", "nowhere"]) == 2
    assert "'nowhere' holds no archive" in capsys.readouterr().err


# -- showing ----------------------------------------------------------------------------------------------------------


def rendered(plan, folder, batches) -> dict[str, str]:
    render.render(plan, "trial", batches, folder)
    return {path.name: path.read_text() for path in sorted(folder.glob("tables/*"))}


def recalled(plan, runs, path) -> pd.DataFrame:
    """The summary of what an archive has, which is written as a batch."""
    store.recall(plan.runs("trial"), runs, path)
    return summary.summarise(summary.load_rows([path], plan, "trial"), plan.experiments["trial"])


def test_a_table_from_the_archive_is_the_computed_one(plan, tmp_path):
    runs = plan.runs("trial")
    write_batch({run: table_of(measured(run)) for run in runs}, tmp_path / "computed.parquet")
    store.write(tmp_path / "archive", "trial", as_archive(runs))
    store.recall(runs, store.read(tmp_path / "archive", "trial"), tmp_path / "archived.parquet")
    computed = rendered(plan, tmp_path / "a", [tmp_path / "computed.parquet"])
    assert rendered(plan, tmp_path / "b", [tmp_path / "archived.parquet"]) == computed
    assert "nllh" in computed["trial.csv"]


def test_runs_of_other_code_are_shown_and_marked(plan, tmp_path):
    first, *others = plan.runs("trial")
    runs = as_archive(others) | {first.key: archived(first, recipe="of other code")}
    table = recalled(plan, runs, tmp_path / "b.parquet")
    marked = table[table["reason"].notna()]
    assert marked["mean"].notna().all()
    reason = "1 of 1 seed archived with other code, settings or packages than today's (commit abcdef, 2023-11-14)"
    found = marked[["reason", "status", "method", "params"]].drop_duplicates()
    assert found.to_numpy().tolist() == [[reason, "ok", first.method, first.params]]
    texts = rendered(plan, tmp_path, [tmp_path / "b.parquet"])
    for name in ("trial.csv", "trial.md", "trial.html", "trial.tex"):
        assert "archived with other code, settings or packages" in texts[name], name
    assert run_summary.problems(tmp_path, tmp_path)["failed"] == []


def test_a_run_that_the_archive_lacks_states_the_command(plan, tmp_path):
    first, *others = plan.runs("trial")
    table = recalled(plan, as_archive(others), tmp_path / "b.parquet")
    [row] = table[table["status"] != "ok"].to_dict("records")
    assert (row["status"], row["reason"]) == ("not archived", "make archive ARGS=trial computes it")
    assert row["method"] == first.method
    rendered(plan, tmp_path, [tmp_path / "b.parquet"])
    problems = run_summary.problems(tmp_path, tmp_path)
    assert problems["failed"] == []
    assert problems["not archived"] == [
        "not archived: 1 cell of 1 experiment; agglearn plan lists them with prices, make archive computes them"
    ]


def test_the_verdict_of_the_archive_is_that_at_scale_paper(plan, tmp_path):
    """Claims of a whole archive have one. At scale smoke, with its one seed, they are not decided."""
    bound = {"source": "world", "predicate": "at_least", "value": {"measure": "nllh"}, "experiment": "trial"}
    claims = {"small": bound | {"claim": "small", "bound": -1e9}, "large": bound | {"claim": "large", "bound": 1e9}}
    paper = Plan(plan.config | {"scale": "paper"}).runs("trial")
    assert len(paper) > len(plan.runs("trial"))
    assert judging.judge_archive(claims, plan, tmp_path / "archive") == {}
    store.write(tmp_path / "archive", "trial", as_archive(paper[1:]))
    assert judging.judge_archive(claims, plan, tmp_path / "archive") == {}
    store.write(tmp_path / "archive", "trial", as_archive(paper))
    assert judging.judge_archive(claims, plan, tmp_path / "archive") == {"small": "holds", "large": "fails"}
    same = Plan(plan.config | {"scale": "paper"})
    assert judging.judge_archive(claims, same, tmp_path / "archive") == {}, "its own verdicts are those"
    assert judging.judge_archive({}, plan, tmp_path / "archive") == {}


# -- configuration ----------------------------------------------------------------------------------------------------


def test_from_archive_is_refused_without_an_archive(tmp_path):
    base = Project(tmp_path).base
    with pytest.raises(ConfigError, match=r"config/config\.yaml: archive: 'archive' holds no archive; `make archive` "):
        load(base, {"from": "archive"})
    plan = Plan(load(base, {"scale": "smoke"}))
    store.write(base / "archive", "trial", as_archive(plan.runs("trial")))
    assert load(base, {"from": "archive"})["from"] == "archive"
    with pytest.raises(ConfigError, match="from: 'thin air' is not allowed; it must be 'data', 'archive' or 'both'"):
        load(base, {"from": "thin air"})


def test_the_archive_of_the_project_is_small_and_complete():
    """Files of at most 400 kB, 20 MB in all, and every run with its code, machine and cost, of a clean working tree."""
    sizes = [path.stat().st_size for path in (ROOT / "archive").glob("*/*.parquet")]
    assert max(sizes) <= store.MAX_BYTES
    assert sum(sizes) < 20_000_000
    known = {path.stem for path in (ROOT / "config/experiments").glob("[!_]*.yaml")}
    for name in store.experiments(ROOT / "archive"):
        assert name in known
        for run in store.read(ROOT / "archive", name).values():
            assert all(run.facts[f] for f in ("recipe", "code", "fingerprint", "observed", "machine", "commit"))
            assert not run.facts["commit"].endswith("-dirty"), name
            assert run.facts["cpu_seconds"] > 0
            assert run.facts["ended"] >= run.facts["began"]
