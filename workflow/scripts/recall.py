"""Write the recorded measurements of a batch."""

from pathlib import Path

from agglearn.jobs import job_log

with job_log(snakemake):
    from agglearn.workflow import record
    from agglearn.workflow.plan import Plan

    name, batch = snakemake.wildcards.experiment, snakemake.wildcards.batch
    runs = Plan(snakemake.config | {"run": [name]}).runs(name, batch)
    record.write_batch(runs, record.read(snakemake.config["record"], name), snakemake.output.measurements)
    Path(snakemake.output.observations).mkdir(parents=True)
