"""Write the archived measurements of a batch."""

from pathlib import Path

from agglearn_workflow.jobs import job_log

with job_log(snakemake):
    from agglearn_workflow.archive import store
    from agglearn_workflow.plan import Plan

    name, batch = snakemake.wildcards.experiment, snakemake.wildcards.batch
    runs = Plan(snakemake.config | {"run": [name]}).runs(name, batch)
    store.recall(runs, store.read(snakemake.config["archive"], name), snakemake.output.measurements)
    Path(snakemake.output.observations).mkdir(parents=True)
