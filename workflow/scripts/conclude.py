"""Write the outcome of a target, or fail where something that it stands for has failed."""

from agglearn.jobs import job_log

with job_log(snakemake):
    from agglearn.reporting.run_summary import conclude
    from agglearn.workflow.plan import Plan

    names = Plan(snakemake.config).named(snakemake.wildcards.target)
    conclude(snakemake.config["results"], snakemake.config["scale_folder"], names, snakemake.output[0])
