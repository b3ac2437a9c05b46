"""Write the outcome of a target, or fail where something that it stands for has failed."""

from agglearn_workflow.jobs import job_log

with job_log(snakemake):
    from agglearn_workflow.plan import Plan
    from agglearn_workflow.run_summary import conclude

    names = Plan(snakemake.config).named(snakemake.wildcards.target)
    conclude(snakemake.config["results"], snakemake.config["scale_folder"], names, snakemake.output[0])
