"""Every option of every command changes what it should and nothing else. An option without a row here fails."""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cli_calls import call, run, state
from option_files import prepare, records, write_recorded

from agglearn.cli import parser
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables
from agglearn_workflow.commands import doctor

WRITES = ("aggregate", "import", "private", "fit", "compress")  # always into what --out names


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """Files that the commands read."""
    folder = tmp_path_factory.mktemp("options")
    prepare(folder)
    return folder


@pytest.fixture(scope="module")
def small(prepared) -> Path:
    """A project whose runs are in its archive."""
    write_recorded(prepared)
    return prepared / "small"


# -- what a command leaves, in parts ------------------------------------------------------------------------------------


def features_of(tables: ContingencyTables) -> dict:
    return {f"feature {f.name}": json.dumps(asdict(f), default=str) for f in tables.encoder.features}


def of_tables(out: Path, said: str) -> dict:
    tables, reading = ContingencyTables.load(out), json.loads((out / "reading.json").read_text())
    found = {"label": tables.label, "schema": tables.encoder.schema}
    found |= {"positives": tables.positives, "records": tables.total}
    found["pairs"] = sorted(tuple(tables.names[i] for i in k) for k in tables.tables if len(k) == 2)
    return found | features_of(tables) | {f"reading {k}": v for k, v in reading.items()}


def of_import(out: Path, said: str) -> dict:
    tables = ContingencyTables.load(out)
    stated = {"label": tables.label, "schema": tables.encoder.schema, "noise": tables.noise and tables.noise.summary}
    cells = tables.to_frame().astype({"count": float, "label_sum": float})
    return features_of(tables) | stated | {"cells": cells.to_json()}


def of_release(out: Path, said: str) -> dict:
    stated = ("epsilon", "delta", "mechanism", "adjacency", "private", "scale", "postprocessing")
    tables = ContingencyTables.load(out)
    dense, noise = [tables.dense(*k)[0] for k in tables.tables], tables.noise
    return {k: getattr(noise, k) for k in stated} | {
        "scales differ": noise.scales is not None and len(set(noise.scales.values())) > 1,
        "exact counts": all((counts == np.round(counts)).all() for counts in dense),
        "below zero": any((counts < 0).any() for counts in dense),
        "features": features_of(tables), "reading": (out / "reading.json").read_text(),
    }  # fmt: skip


def of_model(out: Path, said: str) -> dict:
    model = Estimator.load(out)
    parts = {f"parameter {k}": v for k, v in model.get_params(deep=False).items()}
    predicted = model.predict_proba(records().replace("?", np.nan))[:, 1].tolist()
    return parts | {"class": type(model).__name__, "predictions": predicted}


def of_class(out: Path, said: str) -> dict:
    return {k: v for k, v in of_model(out, said).items() if not k.startswith("parameter ")}


def of_predictions(out: Path, said: str) -> dict:
    return {"predictions": out.read_text() if out.exists() else said, "to a file": out.exists()}


def of_clusters(out: Path, said: str) -> dict:
    frame = pd.read_csv(out, keep_default_na=False)
    if "cluster" not in frame:
        return {"rows": len(frame), "columns": list(frame)}
    frame = frame.sort_values(["feature", "value"])
    clusters = set(zip(frame["feature"], frame["cluster"], strict=True))
    return {k: frame[k].tolist() for k in frame} | {"number": len(clusters)}


def of_curve(out: Path, said: str) -> dict:
    return pd.read_csv(out).to_dict("list")


def of_schema(out: Path, said: str) -> dict:
    schema = yaml.safe_load(out.read_text() if out.exists() else said)
    features = {f"feature {k}": v for k, v in schema["features"].items()}
    whose = {k: schema.get(k) for k in ("unit", "max_rows")}
    return features | whose | {f"label {k}": v for k, v in schema["label"].items()} | {"to a file": out.exists()}


def of_cost(out: Path, said: str) -> dict:
    costs = pd.read_csv(out / "cost.csv")
    return {"scores": costs["nllh"].tolist(), "releases": costs["release"].unique().tolist()}


def of_new(out: Path, said: str) -> dict:
    """The file is deleted: the next call writes it again, and other commands read the project as it was."""
    path = Path(said.splitlines()[0])
    text = path.read_text()
    path.unlink()
    if path.parent.name != "datasets":
        return {"path": str(path), "text": text}
    entry = yaml.safe_load(text)
    label = {f"label {k}": v for k, v in entry.pop("label").items()}
    return {"path": str(path)} | label | entry


def of_words(out: Path, said: str) -> dict:
    return {"words": said}


@dataclass
class Row:
    """What an option does: a call without it and with it, and the parts of what they leave that differ.

    `{name}` in a call is a prepared file. `status`: of both calls; a call that fails leaves nothing. `against`: a call to
    compare the second one with where the first one fails. `before`: a call whose output the others find. `folder`: the
    fixture of the folder in which the calls are made; else it is a project of two experiments.
    """

    without: str
    given: str
    changes: set[str]
    parts: Callable = of_tables
    status: tuple[int, int] = (0, 0)
    against: str = ""
    before: str = ""
    folder: str = ""


def forced(line: str, other: str, parts: Callable) -> Row:
    """`--force` where another output is there: refused without it, and else what a call without the other leaves."""
    here, fresh, before = f"{line} --out {{here}}", f"{line} --out {{fresh}}", f"{other} --out {{here}}"
    return Row(here, f"{here} --force", set(), parts, (2, 0), fresh, before)


def in_small(without: str, given: str) -> Row:
    """A row of calls in the small project, which say other words."""
    return Row(without, given, {"words"}, of_words, folder="small")


LABEL = "--label y --positive yes"
A, F = f"aggregate {{data.csv}} {LABEL}", "fit {tables} --method naive_bayes"
P, LEARNED = (f"private {{{folder}}} --epsilon 1 --delta 1e-6" for folder in ("declared", "tables"))
M = "fit {tables} --set n_chains=50 --set max_iter=3"
C, S = "compress {pages} --budget 9 --min-count 3 --no-shrink", "schema draft {data.csv}"
N, Q = "import {cells.csv}", "schema query {schema.yaml}"
D, T = (f"cost {{half.csv}} {how} --epsilon 9 --splits 2" for how in (LABEL, "--schema {schema.yaml}"))
L, U = "cost --rows 500 --features 2 --values 4 --base-rate .3 --epsilon 1", f"{D} --unit page --max-rows 2"
SEMICOLONS, LARGE = T.replace("half", "semicolons") + " --out {a}", P.replace("epsilon 1", "epsilon 30")
NOISY, CELLS, V = M.replace("tables", "noisy"), "import {cells_semicolons.csv}", "predict {model} {data.csv}"
W = "new dataset mine --csv {data.csv} --label y"
ADD, G = "archive add --scale {} --configfile {{{}.yaml}}", "archive merge {small/archive}"
X, K = "reproduce maxent_xor", "archive check --scale default --seed 0"
CLUSTERS = {"feature", "value", "cluster", "count", "label_sum"}
CURVE = {"budget", "clusters", "held_out_information", "training_information"}
ROWS = {
    "aggregate data": Row(A, f"aggregate {{half.csv}} {LABEL}", {"records", "positives", "feature age", "feature zone"}),
    "aggregate --label": Row(A, A.replace("label y", "label z"), {"label", "positives", "feature y", "feature z", "pairs"}),
    "aggregate --schema": Row(A + " --features age,job,zone", A.replace(LABEL, "--schema {schema.yaml}"),
                              {"schema", "feature age", "feature job", "feature zone"}),
    "aggregate --positive": Row(A, A.replace("yes", "no"), {"positives", "reading positive"}),
    "aggregate --features": Row(A, A + " --features age,job,home,zone,page", {"feature z", "pairs"}),
    "aggregate --pairs": Row(A, A + " --pairs age:job,home:zone", {"pairs"}),
    "aggregate --binning": Row(A, A + " --binning width", {"feature age", "feature zone"}),
    "aggregate --categorical": Row(A, A + " --categorical zone", {"feature zone"}),
    "aggregate --hash": Row(A, A + " --hash job:2", {"feature job"}),
    "aggregate --hash-above": Row(A, A + " --hash-above 20:7", {"feature page"}),
    "aggregate --memory": Row(A, A + " --memory 1e-6", set(), status=(0, 1)),
    "aggregate --unit": Row(A, A + " --unit page --max-rows 1", {"records", "positives", "feature page", "pairs"}),
    "aggregate --max-rows": Row(A + " --unit page --max-rows 1", A + " --unit page --max-rows 2", {"records", "positives"}),
    "aggregate --missing": Row(A, A + " --missing ?", {"feature job", "reading missing"}),
    "aggregate --separator": Row(A, A.replace("data.csv", "semicolons.csv") + " --separator ;", {"reading separator"}),
    "aggregate --force": forced(A, A.replace("data", "half"), of_tables),
    "import cells": Row(N, "import {fewer.csv}", {"feature age", "feature job", "feature zone", "feature home", "cells"}, of_import),
    "import --noise": Row(N, N + " --noise gaussian:20", {"noise"}, of_import),
    "import --threshold": Row(N, N + " --threshold 1", {"noise"}, of_import),
    "import --schema": Row(N, N + " --schema {schema.yaml}", {"schema", "label", "feature age", "feature zone"}, of_import),
    "import --count": Row("import {cells_n.csv}", "import {cells_n.csv} --count n", set(), of_import, (1, 0), N),
    "import --label-sum": Row("import {cells_ones.csv}", "import {cells_ones.csv} --label-sum ones", set(), of_import, (1, 0), N),
    "import --repeated": Row("import {cells_twice.csv}", "import {cells_twice.csv} --repeated mean", set(), of_import, (1, 0), N),
    "import --separator": Row(CELLS, CELLS + " --separator ;", set(), of_import, (1, 0), N),
    "import --force": forced(N, "import {fewer.csv}", of_import),
    "private tables": Row(P, LEARNED + " --accept-learned-schema", {"features", "private"}, of_release),
    "private --epsilon": Row(P, P.replace("epsilon 1", "epsilon 2"), {"epsilon", "scale"}, of_release),
    "private --delta": Row(P, P.replace("1e-6", "1e-3"), {"delta", "scale"}, of_release),
    "private --mechanism": Row(P, P + " --mechanism discrete_gaussian", {"mechanism", "scale", "exact counts"}, of_release),
    "private --split": Row(P, P + " --split cells", {"scale", "scales differ"}, of_release),
    "private --adjacency": Row(P, P + " --adjacency label", {"adjacency", "scale", "exact counts", "below zero"}, of_release),
    "private --unit": Row(P, P + " --unit page", set(), of_release, (0, 2)),
    "private --max-rows": Row(P, P + " --max-rows 2", set(), of_release, (0, 2)),
    "private --accept-learned-schema": Row(
        LEARNED, LEARNED + " --accept-learned-schema", {"features", "private"}, of_release, (2, 0), P,
    ),
    "private --allow-large-epsilon": Row(LARGE, LARGE + " --allow-large-epsilon", {"epsilon", "scale"}, of_release, (2, 0), P),
    "private --post": Row(P, P + " --post clip", {"postprocessing", "below zero"}, of_release),
    "private --force": forced(P, P.replace("epsilon 1", "epsilon 3"), of_release),
    "private --ledger": Row(P, P + " --ledger {spent.csv}", {"words"}, of_words),
    "cost data": Row(T + " --out {a}", T.replace("half", "data") + " --out {b}", {"scores"}, of_cost),
    "cost --label": Row(D + " --out {a}", D.replace("label y", "label z") + " --out {b}", {"scores"}, of_cost),
    "cost --positive": Row(D + " --out {a}", D.replace("yes", "no") + " --out {b}", {"scores"}, of_cost),
    "cost --schema": Row(D + " --out {a}", T + " --out {b}", {"scores"}, of_cost),
    "cost --unit": Row(D + " --out {a}", U + " --out {b}", {"scores", "releases"}, of_cost),
    "cost --max-rows": Row(U + " --out {a}", U.replace("rows 2", "rows 3") + " --out {b}", {"scores"}, of_cost),
    "cost --missing": Row(T + " --out {a}", T + " --missing ? --out {b}", {"scores"}, of_cost),
    "cost --separator": Row(
        SEMICOLONS, SEMICOLONS + " --separator ;", set(), of_cost, (1, 0), T.replace("half", "data") + " --out {b}",
    ),
    "cost --splits": Row(T + " --out {a}", T.replace("splits 2", "splits 3") + " --out {b}", {"scores"}, of_cost),
    "cost --out": Row(T, T + " --out {a}", set(), of_cost, (2, 0)),
    "cost --force": forced(T, T.replace("half", "data"), of_cost),
    "cost --epsilon": Row(L, L.replace("epsilon 1", "epsilon 2"), {"words"}, of_words),
    "cost --delta": Row(L, L + " --delta 1e-6", {"words"}, of_words),
    "cost --rows": Row(L, L.replace("500", "900"), {"words"}, of_words),
    "cost --features": Row(L, L.replace("features 2", "features 5"), {"words"}, of_words),
    "cost --values": Row(L, L.replace("values 4", "values 9"), {"words"}, of_words),
    "cost --base-rate": Row(L, L.replace(".3", ".2"), {"words"}, of_words),
    "cost --auc": Row(L, L + " --auc .7", {"words"}, of_words),
    "fit tables": Row(F, F.replace("tables", "others"), {"predictions"}, of_model),
    "fit --method": Row(F, F.replace("naive_bayes", "best_pair"), {"class", "predictions"}, of_class),
    "fit --ignore-noise": Row(NOISY, NOISY + " --ignore-noise", {"class", "parameter posterior", "predictions"}, of_model),
    "fit --tune": Row(M, M + " --tune", {"parameter l2_theta"}, of_model),
    "fit --sample": Row(F, F + " --sample {half.csv}", {"class", "predictions"}, of_class),
    "fit --positive": Row(F + " --sample {half.csv}", F + " --sample {half.csv} --positive no", {"predictions"}, of_class),
    "fit --set": Row(M, M.replace("max_iter=3", "max_iter=4"), {"parameter max_iter", "predictions"}, of_model),
    "fit --seed": Row(M, M + " --seed 1", {"parameter random_state", "predictions"}, of_model),
    "fit --force": forced(F, F.replace("tables", "others"), of_model),
    "predict model": Row(V, "predict {another} {data.csv}", {"predictions"}, of_predictions),
    "predict data": Row(V, "predict {model} {half.csv}", {"predictions"}, of_predictions),
    "predict --missing": Row(V, V + " --missing nurse", {"predictions"}, of_predictions),
    "predict --separator": Row(V.replace("data", "semicolons"), V.replace("data", "semicolons") + " --separator ;", set(), of_predictions, (1, 0), V),
    "predict --out": Row(V, V + " --out {p.csv}", {"to a file"}, of_predictions),
    "predict --force": forced(V, "predict {another} {data.csv}", of_predictions),
    "compress tables": Row(C, C.replace("pages", "tables"), CLUSTERS, of_clusters),
    "compress --budget": Row(C, C.replace("9", "12"), {"cluster", "number"}, of_clusters),
    "compress --method": Row(C, C + " --method bucketing", {"cluster", "number"}, of_clusters),
    "compress --budgets": Row(C.replace("budget 9", "budgets 9,12"), C.replace("budget 9", "budgets 9,15"), CURVE, of_curve),
    "compress --min-count": Row(C, C.replace("count 3", "count 6"), {"cluster"}, of_clusters),
    "compress --no-shrink": Row(C.replace("no-shrink", "shrink"), C, {"cluster"}, of_clusters),
    "compress --apply": Row(C, C + " --apply {half.csv}", CLUSTERS | {"number", "rows", "columns"}, of_clusters),
    "compress --seed": Row(C + " --method submodular", C + " --method submodular --seed 2", {"cluster"}, of_clusters),
    "compress --force": forced(C, C.replace("9", "12"), of_clusters),
    "schema action": Row(S, S.replace("draft", "final"), set(), of_schema, (0, 2)),
    "schema data": Row(S, S.replace("data", "dashes"), {"feature job"}, of_schema),
    "schema --label": Row(S, S + " --label y", {"label column", "feature y"}, of_schema),
    "schema --positive": Row(S + " --label y --positive yes", S + " --label y --positive no", {"label positive", "label negative"}, of_schema),
    "schema --unit": Row(S, S + " --unit home", {"feature home", "unit", "max_rows"}, of_schema),
    "schema --max-rows": Row(S + " --unit home", S + " --unit home --max-rows 2", {"max_rows"}, of_schema),
    "schema --categorical": Row(S, S + " --categorical zone", {"feature zone"}, of_schema),
    "schema --missing": Row(S, S + " --missing ?", {"feature job"}, of_schema),
    "schema --separator": Row(S, S.replace("data", "semicolons") + " --separator ;", set(), of_schema),
    "schema --dialect": Row(Q, Q + " --dialect oracle", set(), of_words, (0, 2)),
    "schema --threshold": Row(Q, Q + " --threshold 5", {"words"}, of_words),
    "schema --table": Row(Q, Q + " --table shop.visits", {"words"}, of_words),
    "schema --out": Row(S, S + " --out {s.yaml}", {"to a file"}, of_schema),
    "schema --force": forced(S, S + " --label y", of_schema),
    "data action": Row("data list", "data show fair", {"words"}, of_words),
    "data name": Row("data show fair", "data show xor", {"words"}, of_words),
    "data --configfile": Row("data show fair", "data show fair --configfile {over.yaml}", {"words"}, of_words),
    "cite results": Row("cite {first}", "cite {second}", {"words"}, of_words),
    "cite --configfile": Row("cite {first}", "cite {first} --configfile {over.yaml}", {"words"}, of_words),
    "track --from": Row("track --from {few} --to sqlite:///{a.db}", "track --from {many} --to sqlite:///{b.db}", {"words"}, of_words),
    "track --to": Row("track --from {few} --to sqlite:///{a.db}", "track --from {few} --to file:///{b.db}", set(), of_words, (0, 2)),
    "reproduce targets": Row("reproduce maxent_xor", "reproduce labelsums", {"words"}, of_words),
    "reproduce --cores": Row(X, X + " --cores 3", {"words"}, of_words),
    "reproduce --scale": Row(X, X + " --scale smoke", {"words"}, of_words),
    "reproduce --configfile": Row(X, X + " --configfile {over.yaml}", {"words"}, of_words),
    "reproduce --set": Row(X, X + " --set maxent_xor.seeds=[0]", {"words"}, of_words),
    "reproduce --dry-run": Row(X, X + " --dry-run", {"words"}, of_words),
    "reproduce --list": Row(X, X + " --list", {"words"}, of_words),
    "plan experiments": Row("plan maxent_xor", "plan labelsums_equality", {"words"}, of_words),
    "plan --scale": Row("plan maxent_xor", "plan maxent_xor --scale smoke", {"words"}, of_words),
    "plan --hours": Row("plan maxent_xor", "plan maxent_xor --hours 8", {"words"}, of_words),
    "plan --configfile": Row("plan maxent_xor", "plan maxent_xor --configfile {seed.yaml}", {"words"}, of_words),
    "archive action": Row("archive list", "archive last", set(), of_words, (0, 2)),
    "archive --scale": Row("archive", "archive --scale smoke", {"words"}, of_words),
    "archive --configfile": Row("archive", "archive --configfile {seed.yaml}", {"words"}, of_words),
    "archive list --scale": in_small("archive list --scale smoke", "archive list --scale default"),
    "archive list --configfile": in_small("archive list", "archive list --configfile {part.yaml}"),
    "archive add --scale": in_small(ADD.format("smoke", "new1"), ADD.format("default", "new2")),
    "archive add --configfile": in_small("archive add", "archive add --configfile {new3.yaml}"),
    "archive merge folder": in_small("archive merge {small/part} --configfile {new4.yaml}", G + " --configfile {new5.yaml}"),
    "archive merge --scale": in_small(G + " --scale smoke --configfile {old1.yaml}", G + " --scale default --configfile {old2.yaml}"),
    "archive merge --configfile": in_small(G, G + " --configfile {new6.yaml}"),
    "archive check --sample": in_small(K + " --sample 1", K + " --sample 2"),
    "archive check --seconds": in_small(K, K + " --seconds 9"),
    "archive check --seed": in_small(K + " --sample 1", K.replace("seed 0", "seed 1") + " --sample 1"),
    "archive check --scale": in_small(K, K.replace("default", "smoke")),
    "archive check --configfile": in_small(K, K + " --configfile {part.yaml}"),
    "new kind": Row("new method mine", "new experiment mine", {"path", "text"}, of_new),
    "new experiment name": Row("new experiment mine", "new experiment other", {"path", "text"}, of_new),
    "new dataset name": Row(W, W.replace("mine", "other"), {"path", "title"}, of_new),
    "new dataset --csv": Row(W, W.replace("data.csv", "half.csv"), {"files"}, of_new),
    "new dataset --label": Row(W, W.replace("label y", "label z"), {"label column"}, of_new),
    "new dataset --positive": Row(W, W + " --positive yes", {"label positive"}, of_new),
    "new method name": Row("new method mine", "new method other", {"path", "text"}, of_new),
    "doctor --offline": Row("doctor", "doctor --offline", {"words"}, of_words),
    "doctor --timeout": Row("doctor", "doctor --timeout 7", {"words"}, of_words),
}  # fmt: skip
ALWAYS = {f"{command} --out" for command in WRITES}  # which differs in all calls


def options(command: argparse.ArgumentParser, name: str = "") -> set[str]:
    """`command option` of every option and positional argument of the commands of a parser, nested ones included."""
    found = set()
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, nested in action.choices.items():
                found |= options(nested, f"{name} {word}".strip())
        if name and not isinstance(action, argparse._HelpAction):
            found.add(f"{name} {(action.option_strings or [action.dest])[-1]}")
    return found


def test_every_option_has_a_row():
    assert set(ROWS) | ALWAYS == options(parser())


@pytest.fixture(scope="module")
def known() -> dict:
    """What calls without `--out` have left: many options are compared with one call."""
    return {}


@pytest.fixture
def called(prepared, known, tmp_path, capsys, monkeypatch):
    """`called(text, row, status)`: the parts of what a call leaves; None where it fails, and leaves nothing."""
    monkeypatch.setattr(doctor, "sources", lambda folder, timeout: [f"each host is asked for {timeout:g} s"])
    monkeypatch.setattr(os, "execv", lambda program, arguments: print(*arguments))
    monkeypatch.chdir(prepared / "project")

    def left_by(text: str, parts: Callable, status: int = 0) -> dict | None:
        if "--out" in text:
            return carry_out(text, parts, status)
        if (text, parts, status) not in known:
            known[text, parts, status] = carry_out(text, parts, status)
        return known[text, parts, status]

    def carry_out(text: str, parts: Callable, status: int) -> dict | None:
        arguments = [place(a, prepared, tmp_path) for a in text.split()]
        if "--out" not in arguments and arguments[0] in WRITES:
            arguments += ["--out", str(tmp_path / f"out{len(list(tmp_path.iterdir()))}")]
        out = Path(arguments[arguments.index("--out") + 1]) if "--out" in arguments else tmp_path / "nowhere"
        before = state(tmp_path)
        capsys.readouterr()
        assert run(*arguments) == status, capsys.readouterr().err
        if status:
            assert state(tmp_path) == before
            return None
        return parts(out, capsys.readouterr().out)

    return left_by


def place(argument: str, prepared: Path, tmp_path: Path) -> str:
    """An argument with its file: a prepared one, or one that the test writes."""
    before, brace, rest = argument.partition("{")
    if not brace:
        return argument
    name, _, end = rest.partition("}")
    return before + str((prepared if (prepared / name).exists() and not end else tmp_path) / f"{name}{end}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_an_option_changes_what_it_should_and_nothing_else(called, request, monkeypatch, name):
    row = ROWS[name]
    if row.folder:
        monkeypatch.chdir(request.getfixturevalue(row.folder))
    if row.before:
        called(row.before, row.parts)
    before, after = called(row.without, row.parts, row.status[0]), called(row.given, row.parts, row.status[1])
    if row.against:
        before = called(row.against, row.parts)
    if before is not None and after is not None:
        assert {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)} == row.changes


# -- more than one command ----------------------------------------------------------------------------------------------


def test_missing_marks_of_csv_and_parquet_are_the_same(prepared, tmp_path):
    frame = records()
    frame.to_parquet(tmp_path / "data.parquet")
    for file in (prepared / "data.csv", tmp_path / "data.parquet"):
        assert call(f"aggregate {file} {LABEL} --missing ? --missing p07 --out {tmp_path}/{file.suffix[1:]}") == 0
    first, second = (ContingencyTables.load(tmp_path / kind) for kind in ("csv", "parquet"))
    assert first.digest == second.digest
    sizes = {f.name: (f.size, f.has_missing) for f in second.encoder.features}
    assert (sizes["job"], sizes["page"]) == ((4, True), (40, True))
    counts, _ = second.dense(second.names.index("job"))
    assert counts[-1] == (frame["job"] == "?").sum()


def test_how_records_are_written_is_kept_from_tables_to_predictions(prepared, tmp_path, monkeypatch):
    """Separator and missing marks of `aggregate` hold for `predict`, also after `private`."""
    monkeypatch.chdir(tmp_path)
    data, how = prepared / "semicolons.csv", "--separator ; --missing ?"
    assert call(f"aggregate {data} --schema {prepared}/schema.yaml {how} --out tables") == 0
    assert call("private tables --epsilon 5 --delta 1e-5 --out noisy") == 0
    for tables, more in (("tables", ""), ("noisy", "--ignore-noise")):
        assert call(f"fit {tables} --set n_chains=50 --set max_iter=2 {more} --out model --force") == 0
        for name, given in (("kept", ""), ("given", how)):
            assert call(f"predict model {data} {given} --out {tables}.{name}") == 0
        assert Path(f"{tables}.kept").read_text() == Path(f"{tables}.given").read_text()
        reading = json.loads(Path("model/reading.json").read_text())
        assert reading == {"missing": ["?"], "separator": ";", "positive": "yes"}
