"""MLflow's database is there whole or not at all; what users delete there, and servers that are away."""

import ast
import contextlib
import io
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path

import mlflow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import write_empty_store

from agglearn import storage
from agglearn.reporting import run_summary
from agglearn.tracking import local, push, receipts, remote
from agglearn.tracking.contents import Contents
from agglearn.tracking.entry import PRINT, Entry
from agglearn.workflow.plan import IDENTITY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

EXPERIMENT = {
    "title": "Table 4: a trial", "source": "maxent", "caption": "Of one method.", "measures": ["nllh"],
    "methods": {"m": {"name": "Maximum entropy"}}, "agreement": {"margins": {"nllh": 0.05}, "reason": "none"},
    "reported": [{"dataset": "d", "method": "m", "measure": "nllh", "value": 0.5, "place": "Table 4"}],
}  # fmt: skip
PAPER = {"short": "Gilotte 2022", "url": "https://example.org/paper"}
CONFIG = {
    "scale": "smoke", "experiment": EXPERIMENT, "references": {"papers": {"maxent": PAPER}},
    "datasets": {"d": {"title": "Data (of 1994)", "class": "agglearn.datasets.Tabular", "doi": "10.1/d"}},
}  # fmt: skip
DATA = {"digest": "0123456789abcdef", "sizes": {"rows": 9, "columns": 2}, "types": {"age": "integer", "job": "text"}}
RECORD = {"run": "0123456789abcdef", "fingerprint": "f", "experiment": "trial", "dataset": "d", "observation": "tables", "method": "m",
          "seed": 3, "status": "ok", "reason": None, "commit": "c", "dataset_params": "{}", "observation_params": "{}", "params": "{}",
          "began": 1700000000.5, "ended": 1700000002.75, "data": DATA, "config": CONFIG}  # fmt: skip


def write_run(results: Path, record: dict, measured: list[tuple]) -> None:
    """Write the folder of a run. `measured`: measure, keys, step, value."""
    own = {f: record[f] for f in ("run", *IDENTITY, "status", "reason")} | {"unit": "s", "tested": "t", "overlap": 0.0}
    rows = [dict(zip(("measure", "keys", "step", "value"), row, strict=True)) for row in measured or [(None,) * 4]]
    numbers = {"seed": pa.int64(), **dict.fromkeys(("step", "value", "overlap"), pa.float64())}
    schema = pa.schema([(name, numbers.get(name, pa.string())) for name in own | rows[0]])
    folder = results / "runs" / record["run"]
    storage.write_json(folder / "run.json", record)
    pq.write_table(pa.Table.from_pylist([own | row for row in rows], schema), folder / "measurements.parquet")


def make_database(folder) -> None:
    """Bring an empty store into a folder."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    push.create_database(folder / "mlflow.db")


def forked(folder) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=make_database, args=(folder,))
    process.start()
    return process


def size(folder) -> int:
    """Bytes of the database that is being made, under whatever name; −1 where there is none."""
    sizes = []
    for path in folder.glob("*mlflow.db*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return max(sizes, default=-1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 600_000])
def test_a_kill_while_it_is_made_costs_nothing(tmp_path, moment):
    """`moment`: the database has that many bytes."""
    killed = forked(tmp_path)
    while size(tmp_path) < moment:
        assert killed.is_alive()
        time.sleep(0.0002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    following = forked(tmp_path)
    following.join(240)
    assert following.exitcode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]


def test_a_database_that_is_there_stays(tmp_path):
    (tmp_path / "mlflow.db").write_text("mine")
    push.create_database(tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_text() == "mine"
    assert os.listdir(tmp_path) == ["mlflow.db"]


@pytest.fixture
def uri(tmp_path) -> str:
    """A store without runs."""
    write_empty_store(tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"


# -- stores that fail -------------------------------------------------------------------------------------------------


def track(uri, folder, name="trial", attempt=0) -> tuple[dict, str]:
    """(receipt, line for the user) of an experiment with a run, in `folder`."""
    keys = [path.name for path in sorted(folder.glob("runs/*"))]
    if not keys:
        write_run(folder, RECORD, [("nllh", None, None, 0.4)])
        keys = [RECORD["run"]]
    receipt, terminal = folder / f"tracking/{name}.json", io.StringIO()
    push.track(uri, [name], lambda n: Contents.read(n, EXPERIMENT, folder, keys), folder, receipt, attempt, terminal)
    return storage.read_json(receipt)["experiments"][name], terminal.getvalue()


def runs_of(client, experiment: str, kind="seed") -> list:
    """Runs of a kind that the store shows."""
    return client.search_runs([experiment], f"tags.kind = '{kind}'")


@pytest.mark.slow
def test_an_experiment_that_somebody_deleted_is_restored(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    said, line = track(uri, tmp_path)
    assert said["status"] == "ok", line
    receipt = tmp_path / "tracking/trial.json"
    client = mlflow.MlflowClient(uri)

    def planned() -> int:
        receipts._active.cache_clear()
        return receipts.attempts(receipt, uri)

    assert planned() == 0  # nothing is left to be sent
    client.delete_experiment(said["experiment_id"])
    assert planned() == 1
    said, line = track(uri, tmp_path, attempt=1)
    assert line == "agglearn: MLflow's experiment trial was deleted; it is restored\n"
    assert (said["status"], planned()) == ("ok", 1)
    assert client.get_experiment(said["experiment_id"]).lifecycle_stage == "active"
    [run] = runs_of(client, said["experiment_id"])
    assert run.data.metrics == {"nllh": 0.4}


@pytest.mark.slow
def test_an_experiment_that_cannot_be_sent_stops_no_other_one(tmp_path, uri):
    receipt, terminal = tmp_path / "tracking/maxent.json", io.StringIO()
    write_run(tmp_path, RECORD, [("nllh", None, None, 0.4)])

    def read(name: str) -> Contents:
        if name == "lost":
            raise FileNotFoundError("its runs are not there")
        return Contents.read(name, EXPERIMENT, tmp_path, [RECORD["run"]])

    push.track(uri, ["lost", "trial"], read, tmp_path, receipt, 0, terminal)
    states = storage.read_json(receipt)["experiments"]
    assert {name: state["status"] for name, state in states.items()} == {"lost": "pending", "trial": "ok"}
    [line] = [line for line in run_summary.summary_lines(tmp_path, tmp_path) if "not tracked" in line]
    assert line.startswith("not tracked: lost: FileNotFoundError")
    receipts._active.cache_clear()
    assert receipts.attempts(receipt, uri) == 1  # so the job runs again
    later = tmp_path / "tracking/lost.json"  # the experiment is asked for alone, and sent
    push.track(uri, ["lost"], lambda name: read("trial"), tmp_path, later, 0, terminal)
    assert not [line for line in run_summary.summary_lines(tmp_path, tmp_path) if "not tracked" in line]


@pytest.mark.slow
def test_the_store_has_each_run_once_as_it_is_today(tmp_path, uri):
    """Edits, other ends under the same fingerprint, curves longer than a request, an interrupted sending."""
    client = mlflow.MlflowClient(uri)

    def sent(steps=(), final=0.5, **changed):
        """(the only run that the store shows, what was sent, what was kept)"""
        curve = [("nllh", None, step, k) for k, step in enumerate(steps)]
        write_run(tmp_path, RECORD | changed, [*curve, ("nllh", None, None, final)])
        said, line = track(uri, tmp_path)
        assert said["status"] == "ok", line
        [run] = runs_of(client, said["experiment_id"])
        [mean] = runs_of(client, said["experiment_id"], "mean")
        assert run.data.tags["mlflow.parentRunId"] == mean.info.run_id
        return run, said["sent"], said["kept"]

    first, *counts = sent()
    assert counts == [1, 0]
    assert (first.data.metrics, first.info.status, first.data.tags["status"]) == ({"nllh": 0.5}, "FINISHED", "ok")
    assert (first.info.start_time, first.info.end_time) == (
        1700000000500,
        1700000002750,
    )  # of the run, not of its sending
    assert first.info.run_name == "Maximum entropy · Data · seed 3"
    tags = {"mlflow.source.name": "trial", "mlflow.source.git.commit": "c", "observation": "tables", "scale": "smoke"}
    assert tags.items() <= first.data.tags.items()
    [used] = first.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest, used.dataset.source) == (
        "d",
        DATA["digest"],
        '{"url": "https://doi.org/10.1/d"}',
    )
    assert json.loads(used.dataset.profile) == {"title": "Data (of 1994)", "num_rows": 9, "num_columns": 2}
    columns = json.loads(used.dataset.schema)["mlflow_colspec"]
    assert [(column["name"], column["type"]) for column in columns] == [("age", "long"), ("job", "string")]
    again, *counts = sent()
    assert (again.info.run_id, *counts) == (first.info.run_id, 0, 1)
    later, *counts = sent(began=1700000001.5)  # tried again, with the same end
    assert (later.info.start_time, *counts) == (1700000001500, 1, 0)
    edited, *counts = sent(final=0.75, fingerprint="g")
    assert (edited.data.metrics, *counts) == ({"nllh": 0.75}, 1, 0)
    assert client.get_run(later.info.run_id).info.lifecycle_stage == "deleted"
    for status, shown in (("failed", "FAILED"), ("stopped", "FINISHED"), ("unavailable", "FAILED"), ("ok", "FINISHED")):
        run, *counts = sent(fingerprint="g", status=status, reason=None if status == "ok" else f"it {status}")
        assert (run.info.status, run.data.tags["status"], *counts) == (shown, status, 1, 0)
        assert run.data.tags["mlflow.note.content"] == ("" if status == "ok" else f"it {status}")
    client.update_run(run.info.run_id, status="RUNNING")  # as a sender that was killed leaves it
    assert sent(fingerprint="g")[0].info.status == "FINISHED"
    steps = range(10, 910)
    curve, *_ = sent(steps, final=0.25, fingerprint="h")
    history = client.get_metric_history(curve.info.run_id, "nllh")
    assert sorted((m.step, m.value) for m in history) == sorted([(909, 0.25), *((s, s - 10.0) for s in steps)])
    assert curve.data.metrics == {"nllh": 0.25}  # the number of the tables, and not the end of the curve


@pytest.mark.slow
@pytest.mark.parametrize("points", [0, remote.MAX_METRICS, 2 * remote.MAX_METRICS + 100])
def test_a_server_is_sent_every_point_of_a_curve_once(uri, points):
    client = mlflow.MlflowClient(uri)
    metrics = [mlflow.entities.Metric("nllh", float(k), 0, k) for k in range(points)]
    entry = Entry("key", "Run", {}, "f", "FINISHED", 0, 1000, {"l2": "1"}, metrics=lambda: metrics)
    number = remote.send_entry(client, client.create_experiment("curves"), entry, None)
    history = client.get_metric_history(number, "nllh") if points else []
    assert sorted((m.step, m.value) for m in history) == [(k, float(k)) for k in range(points)]
    run = client.get_run(number)
    assert (run.info.status, run.data.params, run.data.tags[PRINT]) == ("FINISHED", {"l2": "1"}, "f")


@pytest.mark.slow
def test_a_mean_follows_its_seeds(tmp_path, uri):
    """Seeds are sent, planned no more, planned again, computed again, and the printed number is mended."""
    client, values = mlflow.MlflowClient(uri), [0.4, 0.5, 0.6]

    def sent(seeds, experiment=EXPERIMENT, **changed):
        """(the only mean, its children by seed, number in MLflow by seed)"""
        for seed in seeds:
            write_run(
                tmp_path, RECORD | {"run": f"run{seed}", "seed": seed} | changed, [("nllh", None, None, values[seed])]
            )
        home = push.send(uri, Contents.read("trial", experiment, tmp_path, [f"run{seed}" for seed in seeds]))[
            "experiment_id"
        ]
        [mean], runs = runs_of(client, home, "mean"), runs_of(client, home)
        numbers = {int(run.data.params["seed"]): run.info.run_id for run in runs}
        assert len(numbers) == len(runs)  # none twice
        parents = {int(run.data.params["seed"]): run.data.tags.get("mlflow.parentRunId") for run in runs}
        assert set(parents.values()) <= {mean.info.run_id, None}
        return mean, sorted(seed for seed, parent in parents.items() if parent), numbers

    first, children, numbers = sent([0, 1, 2])
    half = 4.302652729911275 * 0.1 / 3**0.5  # quantile of Student's t with 2 degrees of freedom
    assert first.data.metrics == pytest.approx(
        {"nllh_mean": 0.5, "nllh_low": 0.5 - half, "nllh_high": 0.5 + half, "n_seeds": 3}
    )
    assert (first.info.run_name, first.data.tags["seeds"]) == ("Maximum entropy · Data · mean of 3 seeds", "0, 1, 2")
    assert first.data.tags["printed"] == "undecided"
    assert {run.data.tags["units"] for run in [first, *runs_of(client, first.info.experiment_id)]} == {"nllh: s"}
    assert "| `nllh` | 500 ± 248 ms | 3 | 0.5 (Table 4): undecided |" in first.data.tags["mlflow.note.content"]
    assert children == [0, 1, 2]
    again, *same = sent([0, 1, 2])
    assert (again.info.run_id, *same) == (first.info.run_id, children, numbers)
    fewer, children, left = sent([0, 1])
    assert (fewer.data.metrics["n_seeds"], children, left) == (2, [0, 1], numbers)
    more, children, back = sent([0, 1, 2])
    assert (more.data.metrics["n_seeds"], children, back) == (3, [0, 1, 2], numbers)
    values[2] = 0.7
    edited, children, computed = sent([0, 1, 2], fingerprint="g")
    assert edited.data.metrics["nllh_mean"] == pytest.approx(1.6 / 3)
    assert (children, set(computed.values()) & set(numbers.values())) == ([0, 1, 2], set())
    printed = [EXPERIMENT["reported"][0] | {"value": 0.9}]
    mended, children, stayed = sent([0, 1, 2], EXPERIMENT | {"reported": printed}, fingerprint="g")
    assert (mended.data.tags["printed"], children, stayed) == ("undecided", [0, 1, 2], computed)
    assert "0.9 (Table 4)" in mended.data.tags["mlflow.note.content"]


@pytest.mark.slow
def test_names_hold_what_is_varied(tmp_path, uri):
    """Runs that stay have their new names when one more setting is added."""
    for key, params in (("a", {"l2": 1.0, "quantizer": {"budget": 5}}), ("b", {"l2": 1.0, "quantizer": {"budget": 9}})):
        write_run(tmp_path, RECORD | {"run": key, "params": json.dumps(params)}, [("nllh", None, None, 0.4)])

    def names(keys) -> dict[str, str]:
        home = push.send(uri, Contents.read("trial", EXPERIMENT, tmp_path, keys))["experiment_id"]
        return {run.info.run_id: run.info.run_name for run in runs_of(mlflow.MlflowClient(uri), home)}

    [(number, name)] = names(["a"]).items()
    assert name == "Maximum entropy · Data · seed 3"
    later = names(["a", "b"])
    assert later.pop(number) == "Maximum entropy · Data · budget = 5 · seed 3"
    assert list(later.values()) == ["Maximum entropy · Data · budget = 9 · seed 3"]


@pytest.mark.slow
def test_an_experiment_leads_to_its_table_and_figure(tmp_path, uri):
    keys = write_runs(tmp_path)
    client = mlflow.MlflowClient(uri)

    def sent():
        home = client.get_experiment(
            push.send(uri, Contents.read("trial", EXPERIMENT, tmp_path, keys))["experiment_id"]
        )
        [overview] = runs_of(client, home.experiment_id, "overview")
        return home, overview

    home, first = sent()
    assert {k: home.tags[k] for k in ("source", "place", "scale")} == {
        "source": "maxent",
        "place": "Table 4",
        "scale": "smoke",
    }
    text = home.tags["mlflow.note.content"]
    assert (
        f"(#/experiments/{home.experiment_id}/runs/{first.info.run_id}/artifacts?workflowType=machine_learning)" in text
    )
    assert "[Page with the verdicts](/agglearn/maxent.html#trial)" in text
    assert "[Gilotte 2022](https://example.org/paper)" in text
    assert [f.path for f in client.list_artifacts(first.info.run_id)] == ["trial.html"]
    assert client.search_runs([home.experiment_id], order_by=["start_time DESC"])[0].info.run_id == first.info.run_id
    assert sent()[1].info.run_id == first.info.run_id
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/trial.svg").write_text("<svg/>")
    home, later = sent()
    assert {f.path for f in client.list_artifacts(later.info.run_id)} == {"trial.html", "trial.svg"}
    assert later.info.run_id in home.tags["mlflow.note.content"]


def write_runs(folder) -> list[str]:
    """Keys of four runs, two of each cell: with a curve, equal and infinite values; failed; without a measure."""
    infinite = float("inf")
    curve = [("nllh", None, 1, 0.5), ("nllh", None, 2, 0.25), ("nllh", None, 2, 0.25), ("nllh", None, None, 0.75)]
    measured = (
        [*curve, ("loss", None, None, infinite), ("time", None, None, None)],
        [("nllh", "0", None, 1.0), ("rmse", None, None, -1.0)],
        [],
        [("nllh", None, None, 0.5)],
    )
    other = {"params": '{"lambda": 0.1, "nested": {"norm": null}}'}
    ends = ({}, {"status": "failed", "reason": "it broke", "data": None}, other, other)
    for number, (rows, end) in enumerate(zip(measured, ends, strict=True)):
        write_run(folder, RECORD | {"run": f"run{number}", "seed": number} | end, rows)
        if end.get("status") == "failed":
            (folder / f"runs/run{number}/traceback.txt").write_text("it broke")
    (folder / "tables").mkdir()
    (folder / "tables/trial.html").write_text("<table></table>")
    return [f"run{number}" for number in range(4)]


def rows(database) -> dict[str, list]:
    """All rows of the tables of runs, with our key in place of MLflow's random ones."""
    tables = (
        "runs",
        "tags",
        "params",
        "metrics",
        "latest_metrics",
        "datasets",
        "inputs",
        "input_tags",
        "experiment_tags",
    )
    with contextlib.closing(sqlite3.connect(database)) as store:
        keys = dict(store.execute("SELECT run_uuid, value FROM tags WHERE key = 'agglearn.run'"))
        keys |= dict(store.execute("SELECT dataset_uuid, digest FROM datasets"))
        keys |= dict(store.execute("SELECT input_uuid, 'use of ' || source_id || ' by ' || destination_id FROM inputs"))
        content = {table: store.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    plain = {}
    for table, lines in content.items():
        text = repr(sorted(lines, key=repr))
        for number, key in reversed(keys.items()):  # what stands for a use holds other numbers
            text = text.replace(number, key)
        plain[table] = sorted(ast.literal_eval(text), key=repr)
    return plain


@pytest.mark.slow
def test_rows_written_at_once_are_those_of_the_client(tmp_path, monkeypatch):
    keys = write_runs(tmp_path)
    by_client, at_once = tmp_path / "client.db", tmp_path / "rows.db"
    for store in (by_client, at_once):
        write_empty_store(store)
    contents = Contents.read("trial", EXPERIMENT, tmp_path, keys)
    assert push.send(f"sqlite:///{at_once}", contents)["sent"] == 4
    monkeypatch.setattr(push, "insert_runs", lambda *_: {})  # all that it leaves goes through the client
    home = push.send(f"sqlite:///{by_client}", contents)["experiment_id"]
    written = rows(at_once)
    assert written == rows(by_client)
    assert len(written["runs"]) == 4 + 2 + 1  # with the means of two cells, and the overview
    assert len(written["metrics"]) == 6 + 4  # equal ones once, none without a value
    assert (len(written["datasets"]), len(written["inputs"])) == (1, 3 + 2)  # one run has no data
    [first] = mlflow.MlflowClient(f"sqlite:///{at_once}").search_runs([home], "tags.`agglearn.run` = 'run1'")
    files = mlflow.artifacts.list_artifacts(first.info.artifact_uri)
    assert sorted(Path(f.path).name for f in files) == ["measurements.parquet", "run.json", "traceback.txt"]


@pytest.mark.slow
def test_a_kill_while_runs_are_written_leaves_none_half_written(tmp_path, uri):
    keys = write_runs(tmp_path)

    def send_until_killed():
        copy = local._copy_files
        copied = []

        def copy_or_die(*args):
            copied.append(args)
            if len(copied) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            copy(*args)

        local._copy_files = copy_or_die
        push.send(uri, Contents.read("trial", EXPERIMENT, tmp_path, keys))

    killed = multiprocessing.get_context("fork").Process(target=send_until_killed)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert rows(tmp_path / "mlflow.db")["runs"] == []
    contents = Contents.read("trial", EXPERIMENT, tmp_path, keys)
    assert [push.send(uri, contents)["sent"] for _ in range(2)] == [4, 0]
    sent = {row[0] for row in rows(tmp_path / "mlflow.db")["runs"]}
    assert sent == {entry.key for entry in contents.entries} > set(keys)


@pytest.mark.slow
def test_after_repeated_failure_a_line_states_what_to_delete(tmp_path):
    (tmp_path / "mlflow.db").write_text("no database\n" * 100)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    lines = [track(uri, tmp_path, attempt=n)[1] for n in range(4)]
    assert ["the next run sends it" in line for line in lines] == [True, True, False, False]
    assert f"delete {tmp_path}/mlflow.db" in lines[2]
    assert any(f"delete {tmp_path}/mlflow.db" in line for line in run_summary.summary_lines(tmp_path, tmp_path))


def test_a_server_that_does_not_answer_is_asked_once_in_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        server.setblocking(False)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"

        def asked() -> int:
            count = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.accept()[0].close()
                    count += 1
            return count

        assert "first is not tracked: MlflowException" in track(uri, tmp_path, "first")[1]
        assert asked() > 0
        said, line = track(uri, tmp_path, "second")
        assert said["status"] == "pending"
        assert "did not answer earlier in this run" in line
        assert asked() == 0
        receipts.away_mark(tmp_path).unlink()  # as the next run does
        track(uri, tmp_path, "second")
        assert asked() > 0
