"""The verdicts of a run. Each claim is judged once, from the measurements of its experiment, and then read from a file."""

import tempfile
import traceback
from pathlib import Path

import pandas as pd

from agglearn.errors import describe
from agglearn_workflow.archive import store
from agglearn_workflow.claims.predicates import FAILED, NOT_JUDGED, judge
from agglearn_workflow.claims.rows import Rows
from agglearn_workflow.plan import Plan
from agglearn_workflow.tables.summary import load_rows

# Keys of a claim that are copied to its verdict.
COPIED = ("source", "claim", "place", "experiment", "predicate", "note", "why", "deterministic", "weak")


def judge_all(claims: dict, plan: Plan, results: str | Path) -> list[dict]:
    """One entry per claim: name, source, claim, place, verdict, detail, cases. It is `failed` where judging itself fails."""
    rows: dict[str, Rows] = {}
    verdicts = []
    for name, claim in claims.items():
        experiment = claim["experiment"]
        try:
            if experiment not in rows:
                paths = [f"{results}/measurements/{experiment}/{b}.parquet" for b in plan.batches(experiment)]
                rows[experiment] = Rows(load_rows(paths, plan, experiment))
            outcome = _with_mark(judge(claim, rows[experiment]), rows[experiment].frame)
        except Exception as error:
            traceback.print_exc()
            outcome = {"verdict": FAILED, "detail": describe(error), "cases": []}
        verdicts.append(_entry(name, claim, outcome))
    return verdicts


def judge_archive(claims: dict, plan: Plan, folder: str | Path) -> dict[str, str]:
    """Claim → its verdict at scale paper, where the archive has all runs of its experiment and the plan has others."""
    names = {claim["experiment"] for claim in claims.values()} & set(store.experiments(folder))
    paper = Plan(plan.config | {"scale": "paper", "run": sorted(names)})
    complete = set()
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            archived, keys = store.read(folder, name), {run.key for run in paper.runs(name)}
            if keys <= set(archived) and keys != {run.key for run in plan.runs(name)}:
                complete.add(name)
                for batch in paper.batches(name):
                    store.write_batch(paper.runs(name, batch), archived, f"{work}/measurements/{name}/{batch}.parquet")
        archived_claims = {name: claim for name, claim in claims.items() if claim["experiment"] in complete}
        return {entry["name"]: entry["verdict"] for entry in judge_all(archived_claims, paper, work)}


def judge_target(plan: Plan, names: list[str], folder: Path | str) -> list[dict]:
    """One entry per claim on some experiments of a plan. The verdict of the archive stands beside that of a smaller scale.

    A claim on an experiment that the plan lacks is not judged.
    """
    claims = plan.config["claims"]
    planned = {name: claim for name, claim in claims.items() if claim["experiment"] in names}
    computes = plan.config["scale"] != "paper" and plan.config["from"] != "archive"
    archived = judge_archive(planned, plan, plan.config["archive"]) if computes else {}
    entries = {entry["name"]: entry for entry in judge_all(planned, plan, folder)}
    for name in entries.keys() & archived.keys():
        entries[name]["archived"] = archived[name]
    entries |= {name: _absent(name, c) for name, c in claims.items() if c["experiment"] not in plan.experiments}
    return [entries[name] for name in claims if name in entries]


def _with_mark(outcome: dict, frame: pd.DataFrame) -> dict:
    """The outcome, with a sentence where runs of the experiment have a mark."""
    if "mark" not in frame or outcome["verdict"] == NOT_JUDGED:
        return outcome
    marks = frame.drop_duplicates("run")["mark"]
    sentence = f"{marks.count()} of {len(marks)} runs of the experiment were {marks.dropna().iloc[0]}"
    return outcome | {"detail": f"{outcome['detail']}; {sentence}"}


def _entry(name: str, claim: dict, outcome: dict) -> dict:
    return {"name": name, **{key: claim.get(key) for key in COPIED}, **outcome}


def _absent(name: str, claim: dict) -> dict:
    detail = f"experiment {claim['experiment']} is not in this run"
    command = f"make reproduce ARGS={claim['experiment']}"
    return _entry(name, claim, {"verdict": NOT_JUDGED, "detail": detail, "cases": [], "command": command})
