"""What the jobs of the workflow hand on."""

from samples import shipped_config

from agglearn_workflow.runs.batches import effective


def test_a_run_records_its_own_part_of_the_configuration():
    """Thousands of runs keep it: no other experiment, data set or paper is in it."""
    config = shipped_config()
    experiment = config["experiments"]["maxent_table4"]
    recorded = effective(config, experiment, ["adult"])
    assert recorded["experiment"] == experiment
    assert list(recorded["datasets"]) == ["adult"]
    assert recorded["references"] == {"papers": {"maxent": config["references"]["papers"]["maxent"]}}
    assert recorded["mirrors"] == config["mirrors"]
    assert not {"experiments", "claims", "digests"} & set(recorded)
