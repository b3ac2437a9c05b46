"""`agglearn track`: runs of a results folder reach a store, each once, also after a sending that broke off."""

import mlflow
import pytest
from cli_calls import call, told, write_runs


def seeds(uri: str, experiment: str) -> list[str]:
    """Seeds of the finished runs of an experiment in a store."""
    client, finished = mlflow.MlflowClient(uri), "attributes.status = 'FINISHED' AND tags.kind = 'seed'"
    number = client.get_experiment_by_name(experiment).experiment_id
    return sorted(run.data.params["seed"] for run in client.search_runs([number], finished))


@pytest.mark.slow
def test_each_run_is_sent_once(tmp_path, capsys, monkeypatch):
    """Two experiments, as if copied from another machine."""
    uri, copied = f"sqlite:///{tmp_path}/store/mlflow.db", tmp_path / "copied"
    write_runs(copied, "first", 3)
    write_runs(copied, "second", 2)
    with monkeypatch.context() as patch:
        patch.delattr(mlflow.MlflowClient, "log_batch")
        assert call(f"track --from {copied} --to {uri}") == 1
    assert "first was not sent whole: " in capsys.readouterr().err
    for expected in ("first: 3 sent, 0 there already\nsecond: 2 sent, 0 there already\n",
                     "first: 0 sent, 3 there already\nsecond: 0 sent, 2 there already\n"):  # fmt: skip
        assert told(capsys, f"track --from {copied} --to {uri}").out == expected
        assert (seeds(uri, "first"), seeds(uri, "second")) == (["0", "1", "2"], ["0", "1"])
    assert [p.name for p in copied.iterdir()] == ["runs"]  # files stand beside the database
    home = mlflow.MlflowClient(uri).get_experiment_by_name("first")
    assert home.tags["source"] == "maxent"
    assert home.artifact_location == (tmp_path / "store/mlartifacts/first").as_uri()
