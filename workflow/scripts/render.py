"""Draw the table and the figure of an experiment beside the numbers that its source printed."""

from agglearn.jobs import job_log

with job_log(snakemake):
    from agglearn.reporting.render import render
    from agglearn.workflow.plan import Plan
    from agglearn.workflow.scales import FROM_RECORD, record_scale

    name, config, folder = snakemake.wildcards.experiment, snakemake.config, snakemake.config["scale_folder"]
    if folder == config["results"]:
        record_scale(folder, FROM_RECORD if config["from"] == FROM_RECORD else config["scale"])
    render(Plan(config | {"run": [name]}), name, snakemake.input, folder)
