"""Kept models in MLflow: bound to their run and their data, and loaded."""

import json
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from test_tracking import DATA, EXPERIMENT, RECORD, write_run

from agglearn.datasets.facts import types
from agglearn.maxent import NaiveBayesClassifier
from agglearn.observations import ContingencyTables
from agglearn_workflow.tracking import push
from agglearn_workflow.tracking.entry import read_contents

pytestmark = pytest.mark.slow


def people(n: int) -> pd.DataFrame:
    """Records with an integer, a number and a text."""
    rng = np.random.default_rng(0)
    age, job = rng.integers(18, 80, n), rng.choice(["cook", "nurse", "smith"], n)
    return pd.DataFrame({"age": age, "pay": rng.random(n), "job": job})


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(URI of the store, number of the experiment, the model that was kept)"""
    folder, frame = tmp_path_factory.mktemp("kept"), people(400)
    label = ((frame["age"] > 40) ^ (frame["job"] == "cook")).astype(int)
    model = NaiveBayesClassifier().fit(ContingencyTables.from_records(frame.assign(y=label), "y"))
    record = RECORD | {"data": DATA | {"types": types(frame)}}
    write_run(folder, record, [("nllh", None, 1, 0.3), ("nllh", None, None, 0.4)])
    model.save(folder / "runs" / RECORD["run"] / "model")
    uri = f"sqlite:///{folder}/mlflow.db"
    home = push.send(uri, read_contents("trial", EXPERIMENT, folder, [RECORD["run"]]))["experiment_id"]
    return uri, home, model


def test_a_model_belongs_to_its_run_and_its_data(kept):
    uri, home, model = kept
    client = mlflow.MlflowClient(uri)
    [logged], [run] = client.search_logged_models([home]), client.search_runs([home], "tags.kind = 'seed'")
    assert (logged.source_run_id, logged.status) == (run.info.run_id, "READY")
    assert [output.model_id for output in run.outputs.model_outputs] == [logged.model_id]
    metrics = {(m.key, m.value, m.dataset_name, m.dataset_digest) for m in logged.metrics}
    assert ("nllh", 0.4, "d", DATA["digest"]) in metrics
    assert run.data.metrics == {"nllh": 0.4}
    mlflow.set_tracking_uri(uri)
    loaded = mlflow.pyfunc.load_model(f"models:/{logged.model_id}")
    columns = [(c["name"], c["type"], c["required"]) for c in loaded.metadata.signature.inputs.to_dict()]
    assert columns == [("age", "long", True), ("pay", "double", True), ("job", "string", True)]
    assert np.array_equal(loaded.predict(people(50)), model.predict_proba(people(50))[:, 1])
    [example] = loaded.input_example.to_dict("records")
    assert example["job"] in ("cook", "nurse", "smith")
    assert 18 < example["age"] < 80


def test_a_model_whose_run_was_not_sent_whole_is_replaced(kept, monkeypatch):
    """The model ends the run before its numbers are there, so the next sending replaces both."""
    uri, home, _ = kept
    client = mlflow.MlflowClient(uri)
    folder = Path(uri.removeprefix("sqlite:///")).parent
    path = folder / f"runs/{RECORD['run']}/run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fingerprint": "edited"}))
    contents = read_contents("trial", EXPERIMENT, folder, [RECORD["run"]])

    def breaks(*arguments, **more):
        raise ConnectionError("on the way")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "log_batch", breaks)
        with pytest.raises(ConnectionError):
            push.send(uri, contents)
    assert [push.send(uri, contents)["sent"] for _ in range(2)] == [1, 0]
    [run], [logged] = client.search_runs([home], "tags.kind = 'seed'"), client.search_logged_models([home])
    assert run.data.tags["agglearn.fingerprint"] == "edited"
    assert (run.info.end_time, run.data.metrics) == (1700000002750, {"nllh": 0.4})
    assert logged.source_run_id == run.info.run_id
