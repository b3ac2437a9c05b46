"""`agglearn track`: runs of a results folder reach a store, each once, whatever happens on the way."""

import mlflow
import pytest
from cli_calls import call, told, write_runs
from samples import write_empty_store


@pytest.fixture
def copied(tmp_path):
    """A results folder with two experiments, as if copied from another machine."""
    write_runs(tmp_path / "copied", "first", 3)
    write_runs(tmp_path / "copied", "second", 2)
    return tmp_path / "copied"


def seeds(uri: str) -> dict[str, list[str]]:
    """Experiment → seeds of its finished runs, one for each run of the store that is of a seed."""
    client, finished = mlflow.MlflowClient(uri), "attributes.status = 'FINISHED' AND tags.kind = 'seed'"
    return {
        e.name: sorted(r.data.params["seed"] for r in client.search_runs([e.experiment_id], finished))
        for e in client.search_experiments()
        if e.name != "Default"
    }


ALL = {"first": ["0", "1", "2"], "second": ["0", "1"]}


@pytest.mark.slow
def test_each_run_is_sent_once(copied, tmp_path, capsys):
    uri = f"sqlite:///{tmp_path}/store/mlflow.db"
    for expected in ("first: 3 sent, 0 there already\nsecond: 2 sent, 0 there already\n",
                     "first: 0 sent, 3 there already\nsecond: 0 sent, 2 there already\n"):  # fmt: skip
        assert told(capsys, f"track --from {copied} --to {uri}").out == expected
        assert seeds(uri) == ALL
    assert [p.name for p in copied.iterdir()] == ["runs"]  # files stand beside the database
    home = mlflow.MlflowClient(uri).get_experiment_by_name("first")
    assert home.tags["source"] == "maxent"
    assert home.artifact_location == (tmp_path / "store/mlartifacts/first").as_uri()


@pytest.mark.slow
def test_a_store_that_goes_down_half_way_has_each_run_once_in_the_end(copied, tmp_path, capsys, monkeypatch):
    sent, log_batch, uri = [], mlflow.MlflowClient.log_batch, f"sqlite:///{tmp_path}/mlflow.db"
    write_empty_store(tmp_path / "mlflow.db")

    def goes_down(client, *arguments, **more):
        sent.append(arguments)
        if len(sent) == 4:  # the mean comes first; the third run is there, without its metrics and its end
            raise mlflow.exceptions.MlflowException("the store went down")
        return log_batch(client, *arguments, **more)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", goes_down)
    assert call(f"track --from {copied} --to {uri}") == 1
    assert "first was not sent whole" in capsys.readouterr().err
    assert len(seeds(uri)["first"]) == 2
    assert call(f"track --from {copied} --to {uri}") == 0
    assert capsys.readouterr().out == "first: 1 sent, 2 there already\nsecond: 2 sent, 0 there already\n"
    assert seeds(uri) == ALL
