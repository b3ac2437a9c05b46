"""What MLflow is sent; what users delete there, and servers that are away."""

import functools
import io
import itertools
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import mlflow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import write_empty_store

from agglearn import storage
from agglearn_workflow import run_summary
from agglearn_workflow.plan import IDENTITY, cell_key
from agglearn_workflow.tracking import push, receipts
from agglearn_workflow.tracking.entry import PRINT, Contents, Entry, read_contents
from agglearn_workflow.tracking.receipts import KEY

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


@pytest.fixture
def uri(tmp_path) -> str:
    """A store without runs."""
    write_empty_store(tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"


# -- stores that fail -------------------------------------------------------------------------------------------------


def track(uri, folder) -> tuple[dict, str]:
    """(receipt, line for the user) of an experiment with a run, in `folder`."""
    keys = [path.name for path in sorted(folder.glob("runs/*"))]
    if not keys:
        write_run(folder, RECORD, [("nllh", None, None, 0.4)])
        keys = [RECORD["run"]]
    receipt, terminal = folder / "tracking/trial.json", io.StringIO()
    push.track(uri, ["trial"], lambda name: read_contents(name, EXPERIMENT, folder, keys), receipt, 0, terminal)
    return storage.read_json(receipt)["experiments"]["trial"], terminal.getvalue()


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

    assert receipts.attempts(receipt, uri) == 0  # nothing is left to be sent
    client.delete_experiment(said["experiment_id"])
    said, line = track(uri, tmp_path)
    assert line == "agglearn: MLflow's experiment trial was deleted; it is restored\n"
    assert (said["status"], receipts.attempts(receipt, uri)) == ("ok", 0)
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
        return read_contents(name, EXPERIMENT, tmp_path, [RECORD["run"]])

    push.track(uri, ["lost", "trial"], read, receipt, 0, terminal)
    states = storage.read_json(receipt)["experiments"]
    assert {name: state["status"] for name, state in states.items()} == {"lost": "pending", "trial": "ok"}
    [line] = [line for line in run_summary.summary_lines(tmp_path, tmp_path) if "not tracked" in line]
    assert line.startswith("not tracked: lost: FileNotFoundError")
    assert receipts.attempts(receipt, uri) == 1  # so the job runs again
    later = tmp_path / "tracking/lost.json"  # the experiment is asked for alone, and sent
    push.track(uri, ["lost"], lambda name: read("trial"), later, 0, terminal)
    assert not [line for line in run_summary.summary_lines(tmp_path, tmp_path) if "not tracked" in line]


@pytest.mark.slow
def test_the_store_has_each_run_once_as_it_is_today(tmp_path, uri):
    """Edits, other ends under the same fingerprint, an interrupted sending."""
    client = mlflow.MlflowClient(uri)

    def sent(final=0.5, **changed):
        """(the only run that the store shows, what was sent, what was kept)"""
        write_run(tmp_path, RECORD | changed, [("nllh", None, None, final)])
        said, line = track(uri, tmp_path)
        assert said["status"] == "ok", line
        [run] = runs_of(client, said["experiment_id"])
        [mean] = runs_of(client, said["experiment_id"], "mean")
        assert run.data.tags["mlflow.parentRunId"] == mean.info.run_id
        return run, said["sent"], said["kept"]

    first, *counts = sent()
    assert counts == [1, 0]
    again, *counts = sent()
    assert (again.info.run_id, *counts) == (first.info.run_id, 0, 1)
    later, *counts = sent(began=1700000001.5)  # tried again, with the same end
    assert (later.info.start_time, *counts) == (1700000001500, 1, 0)
    edited, *counts = sent(final=0.75, fingerprint="g")
    assert (edited.data.metrics, *counts) == ({"nllh": 0.75}, 1, 0)
    assert client.get_run(later.info.run_id).info.lifecycle_stage == "deleted"
    states = {"failed": "FAILED", "stopped": "FINISHED", "unavailable": "SCHEDULED", "ok": "FINISHED"}
    for status, shown in states.items():
        run, *counts = sent(fingerprint="g", status=status, reason=None if status == "ok" else f"it {status}")
        assert (run.info.status, run.data.tags["status"], *counts) == (shown, status, 1, 0)
        assert run.data.tags["mlflow.note.content"] == ("" if status == "ok" else f"it {status}")
    client.update_run(run.info.run_id, status="RUNNING")  # as a sender that was killed leaves it
    assert sent(fingerprint="g")[0].info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.parametrize("points", [0, push.MAX_METRICS, 2 * push.MAX_METRICS + 100])
def test_a_server_is_sent_every_point_of_a_curve_once(uri, points):
    client = mlflow.MlflowClient(uri)
    metrics = [mlflow.entities.Metric("nllh", float(k), 0, k) for k in range(points)]
    entry = Entry("Run", {KEY: "key", PRINT: "f"}, "FINISHED", (0, 1000), {"l2": "1"}, metrics=lambda: metrics)
    number = push._send_entry(client, client.create_experiment("curves"), entry, None)
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
        keys = {f"run{seed}": seed for seed in seeds}
        for key, seed in keys.items():
            record = RECORD | {"run": key, "seed": seed} | changed
            write_run(tmp_path, record, [("nllh", None, None, values[seed])])
        home = push.send(uri, read_contents("trial", experiment, tmp_path, list(keys)))["experiment_id"]
        [mean], runs = runs_of(client, home, "mean"), runs_of(client, home)
        numbers = {int(run.data.params["seed"]): run.info.run_id for run in runs}
        assert len(numbers) == len(runs)  # none twice
        parents = {int(run.data.params["seed"]): run.data.tags.get("mlflow.parentRunId") for run in runs}
        assert set(parents.values()) <= {mean.info.run_id, None}
        return mean, sorted(seed for seed, parent in parents.items() if parent), numbers

    first, children, numbers = sent([0, 1, 2])
    assert first.data.metrics["nllh_mean"] == pytest.approx(0.5)
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
        home = push.send(uri, read_contents("trial", EXPERIMENT, tmp_path, keys))["experiment_id"]
        return {run.info.run_id: run.info.run_name for run in runs_of(mlflow.MlflowClient(uri), home)}

    [(number, name)] = names(["a"]).items()
    assert name == "Maximum entropy · Data · seed 3"
    later = names(["a", "b"])
    assert later.pop(number) == "Maximum entropy · Data · budget = 5 · seed 3"
    assert list(later.values()) == ["Maximum entropy · Data · budget = 9 · seed 3"]


@pytest.mark.slow
def test_an_experiment_leads_to_its_table_and_figure(tmp_path, uri):
    contents = functools.partial(read_contents, "trial", EXPERIMENT, tmp_path, write_irregular_runs(tmp_path))
    client = mlflow.MlflowClient(uri)

    def sent():
        home = client.get_experiment(push.send(uri, contents())["experiment_id"])
        [overview] = runs_of(client, home.experiment_id, "overview")
        return home, overview

    home, first = sent()
    assert {"source": "maxent", "place": "Table 4", "scale": "smoke"}.items() <= home.tags.items()
    text = home.tags["mlflow.note.content"]
    assert f"(#/experiments/{home.experiment_id}/runs/{first.info.run_id})" in text
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


PARAMS = '{"l2": 1.0}', '{"l2": 0.25, "nested": {"norm": null}}'
T0, T1 = 1700000000500, 1700000002750  # begin and end of every run, in milliseconds


def write_irregular_runs(folder) -> list[str]:
    """Keys of four runs, three of one cell: a curve with a point twice and an infinite value; a failure; a number. One of another."""
    curve = [("nllh", None, 7, 0.5), ("nllh", None, 9, 0.25), ("nllh", None, 9, 0.25), ("nllh", None, None, 0.4)]
    wide, narrow = ({"params": text} for text in PARAMS)
    runs = (
        ("a0", wide, [*curve, ("loss", None, None, float("inf")), ("rmse", '{"part": "1"}', None, 3.0)]),
        ("a1", wide | {"status": "failed", "reason": "it broke", "data": None, "commit": "older"}, [("rmse", None, None, -1.0)]),
        ("a2", wide, [("nllh", None, None, 0.7)]),
        ("b5", narrow, [("nllh", None, None, 0.5), ("rmse", None, None, None)]),
    )  # fmt: skip
    for key, changes, measured in runs:
        write_run(folder, RECORD | {"run": key, "seed": int(key[1:])} | changes, measured)
    (folder / "runs/a1/traceback.txt").write_text("it broke")
    (folder / "tables").mkdir()
    (folder / "tables/trial.html").write_text("<table></table>")
    return [key for key, *_ in runs]


def content(client, home: str) -> dict[str, dict]:
    """All that MLflow shows of the runs of an experiment, by our key, with keys in place of its random numbers."""
    runs = [run for run in mlflow.search_runs([home], output_format="list") if KEY in run.data.tags]
    keys = {run.info.run_id: run.data.tags[KEY] for run in runs}
    assert len(set(keys.values())) == len(runs)  # none twice
    return {keys[run.info.run_id]: fields(client, run, keys) for run in runs}


def fields(client, run, keys: dict[str, str]) -> dict:
    """All fields of a run."""
    number, parent = run.info.run_id, keys.get(run.data.tags.get("mlflow.parentRunId"))
    tags = run.data.tags | {"mlflow.parentRunId": parent}
    points = {name: client.get_metric_history(number, name) for name in run.data.metrics}
    used = [(i.dataset, {tag.key: tag.value for tag in i.tags}) for i in run.inputs.dataset_inputs]
    return {
        "name": run.info.run_name, "status": run.info.status, "times": (run.info.start_time, run.info.end_time),
        "tags": {name: value for name, value in tags.items() if value is not None and name != "agglearn.fingerprint"},
        "params": run.data.params, "last": {name: round(value, 9) for name, value in run.data.metrics.items()},
        "metrics": {name: sorted((m.timestamp, m.step, round(m.value, 9)) for m in history) for name, history in points.items()},
        "inputs": [(d.name, d.digest, d.source_type, d.source, json.loads(d.schema), json.loads(d.profile), tag) for d, tag in used],
        "files": sorted(file.path for file in client.list_artifacts(number)), "outputs": run.outputs and run.outputs.model_outputs,
    }  # fmt: skip


COLUMNS = [{"name": "age", "type": "long", "required": True}, {"name": "job", "type": "string", "required": True}]
USED = ("d", DATA["digest"], "http", '{"url": "https://doi.org/10.1/d"}', {"mlflow_colspec": COLUMNS},
        {"title": "Data (of 1994)", "num_rows": 9, "num_columns": 2}, {"mlflow.data.context": "train"})  # fmt: skip
SHARED = {"dataset": "d", "observation": "tables", "method": "m", "mlflow.source.name": "trial", "scale": "smoke", "units": "loss: s, nllh: s, rmse: s"}  # fmt: skip
WIDE, NARROW = {"l2": "1.0"}, {"l2": "0.25", "nested.norm": "None"}
TABLE = "Its table, while make ui runs: http://127.0.0.1:5000/agglearn/maxent.html#trial"


def by_hand(
    key, name, kind, metrics, params=(), note="", status="ok", files=(), inputs=(USED,), commit="c", **tags
) -> dict:
    """A run as it should be. `metrics`: name → (time after the end, step, value), the last of which MLflow shows."""
    own = {KEY: key, "kind": kind, "status": status, "mlflow.source.git.commit": commit}
    own |= {"mlflow.runName": name, "mlflow.note.content": note}
    cell = {"dataset": "d", "method": "m"} if params else {}
    return {
        "name": name, "status": "FAILED" if status == "failed" else "FINISHED", "times": (T1 if kind == "mean" else T0, T1), "tags": SHARED | own | tags,
        "params": cell | dict(params), "last": {name: points[-1][2] for name, points in metrics.items()},
        "metrics": {name: [(T1 + late, step, value) for late, step, value in points] for name, points in metrics.items()},
        "inputs": list(inputs), "files": sorted(files), "outputs": [],
    }  # fmt: skip


def expected() -> dict[str, dict]:
    """The runs of `write_irregular_runs`."""
    a, b = "Maximum entropy · Data · λ = 1", "Maximum entropy · Data · λ = 0.25"
    wide, narrow = (cell_key(RECORD | {"params": text}) for text in PARAMS)
    half = 12.706204736 * 0.15  # quantile of Student's t with 1 degree of freedom; 0.15 is half of 0.7 − 0.4
    bounds = {"nllh_mean": 0.55, "nllh_low": round(0.55 - half, 9), "nllh_high": round(0.55 + half, 9)}
    wide_note = f"{TABLE}\n\n1 seed failed: it broke\n\nnllh: 550 ± 1,906 ms, 2 seeds; printed 0.5 (Table 4): undecided\n\nloss: ok, 1 seed"
    narrow_note = f"{TABLE}\n\nnllh: 500 ms, 1 seed; printed 0.5 (Table 4): undecided\n\nrmse: ok, 0 seeds"
    huge = 1.7976931348623157e308  # what MLflow has for infinity
    both, of_seed = ["measurements.parquet", "run.json"], {"mlflow.parentRunId": wide}
    curve = [(0, 7, 0.5), (0, 9, 0.25), (1, 9, 0.4)]
    key = receipts.overview_key("trial")
    overview = by_hand(key, "Table and figure", "overview", {}, files=["trial.html"], inputs=())
    overview["times"] = T1 + 1, T1 + 1
    own_tags = (KEY, "kind", "mlflow.runName", "mlflow.source.name", "scale")
    overview["tags"] = {name: overview["tags"][name] for name in own_tags}
    runs = (
        by_hand("a0", f"{a} · seed 0", "seed", {"nllh": curve, "loss": [(1, 0, huge)]}, WIDE | {"seed": "0"}, files=both, **of_seed),
        by_hand("a1", f"{a} · seed 1", "seed", {"rmse": [(1, 0, -1.0)]}, WIDE | {"seed": "1"}, "it broke", "failed",
                [*both, "traceback.txt"], (), "older", **of_seed),
        by_hand("a2", f"{a} · seed 2", "seed", {"nllh": [(1, 0, 0.7)]}, WIDE | {"seed": "2"}, files=both, **of_seed),
        by_hand("b5", f"{b} · seed 5", "seed", {"nllh": [(1, 0, 0.5)]}, NARROW | {"seed": "5"}, files=both, **{"mlflow.parentRunId": narrow}),
        by_hand(wide, f"{a} · mean of 3 seeds", "mean", {name: [(0, 0, v)] for name, v in (bounds | {"n_seeds": 2.0}).items()}, WIDE,
                wide_note, commit="c, older", seeds="0, 1, 2", printed="undecided"),
        by_hand(narrow, f"{b} · mean of 1 seed", "mean", {"nllh_mean": [(0, 0, 0.5)], "n_seeds": [(0, 0, 1.0)]}, NARROW,
                narrow_note, seeds="5", printed="undecided"),
        overview,
    )  # fmt: skip
    return {run["tags"][KEY]: run for run in runs}


@pytest.mark.slow
def test_every_field_of_every_run_is_that_computed_by_hand(tmp_path, uri):
    """Unequal numbers of seeds, two statuses, an infinite value, a point twice; then the same among a thousand runs of others."""
    keys = write_irregular_runs(tmp_path)
    contents = read_contents("trial", EXPERIMENT, tmp_path, keys)
    home, client = push.send(uri, contents)["experiment_id"], mlflow.MlflowClient(uri)
    assert content(client, home) == expected()
    # MLflow shows a page of 1,000 runs, the newest first: ours come after those of others.
    newer = [client.create_run(home, start_time=T1 + 1).info.run_id for _ in range(1001)]
    means = {run.data.tags["agglearn.run"]: run.info.run_id for run in runs_of(client, home, "mean")}
    assert push.send(uri, contents) == {"sent": 0, "kept": 4, "experiment_id": home, "means": means}
    double = client.get_run(runs_of(client, home)[0].info.run_id)
    again = client.create_run(home, double.info.start_time, double.data.tags).info.run_id
    client.set_terminated(again, double.info.status, double.info.end_time)
    assert push.send(uri, contents)["sent"] == 1
    assert content(client, home) == expected()
    assert client.get_run(newer[0]).info.status == "RUNNING"  # those of others stay


@pytest.mark.slow
@pytest.mark.parametrize("call", ["create_run", "log_artifact", "log_inputs", "log_batch", "set_terminated"])
def test_after_a_kill_the_store_has_every_run_once_and_whole(tmp_path, uri, call):
    """The process is killed before and after that call for its third run."""
    keys = write_irregular_runs(tmp_path)
    contents = read_contents("trial", EXPERIMENT, tmp_path, keys)

    def send_until_killed(before: bool):
        method, count = getattr(mlflow.MlflowClient, call), itertools.count(1)

        def call_or_die(*arguments, **more):
            if (is_third := next(count) == 3) and before:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = method(*arguments, **more)
            if is_third:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        setattr(mlflow.MlflowClient, call, call_or_die)
        push.send(uri, contents)

    for before in (True, False):
        killed = multiprocessing.get_context("fork").Process(target=send_until_killed, args=(before,))
        killed.start()
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
    push.send(uri, contents)
    client = mlflow.MlflowClient(uri)
    [home] = [e.experiment_id for e in client.search_experiments() if e.name == "trial"]
    assert content(client, home) == expected()
    assert push.send(uri, contents)["sent"] == 0


def test_where_the_store_is_broken_a_line_states_what_to_delete(tmp_path):
    (tmp_path / "mlflow.db").write_text("no database\n" * 100)
    advice = f"the next run sends it; if that fails again, delete {tmp_path}/mlflow.db, and a new one is filled"
    reason = f"{tmp_path}/mlflow.db is no SQLite database"[:200]
    state, line = track(f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    assert line == f"agglearn: trial is not tracked: {reason}; {advice}\n"
    assert state == {"status": "pending", "reason": reason, "todo": advice}
    assert any(advice in line for line in run_summary.summary_lines(tmp_path, tmp_path))


@pytest.mark.slow
def test_a_store_that_is_lost_or_replaced_is_filled_again(tmp_path, uri):
    """The parameter of the rule changes, and the experiment is sent."""
    receipt, database = tmp_path / "tracking/trial.json", tmp_path / "mlflow.db"
    assert receipts.attempts(receipt, uri) == 0
    track(uri, tmp_path)
    assert receipts.attempts(receipt, uri) == 0
    database.rename(tmp_path / "old.db")
    assert receipts.attempts(receipt, uri) == 1
    push.create_database(database)
    assert receipts.attempts(receipt, uri) == 1  # another store
    (tmp_path / "old.db").replace(database)
    assert receipts.attempts(receipt, uri) == 0
    for text in ("", "{", "[]", '{"attempts": 1}'):
        receipt.write_text(text)
        assert receipts.attempts(receipt, uri) == 0
