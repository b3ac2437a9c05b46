"""Draw the table and the figure of an experiment beside the numbers that its source printed."""

from agglearn_workflow.jobs import job_log

with job_log(snakemake):
    from agglearn_workflow.config.scales import note_scale
    from agglearn_workflow.plan import Plan
    from agglearn_workflow.render import render

    name, config, folder = snakemake.wildcards.experiment, snakemake.config, snakemake.config["scale_folder"]
    if folder == config["results"]:
        note_scale(folder, config["scale"])
    render(Plan(config | {"run": [name]}), name, snakemake.input, folder)
