"""Observe the data sets of a batch, then fit and measure its runs."""

from agglearn_workflow.jobs import job_log

if __name__ == "__main__":  # a process that a method spawns imports this file too
    with job_log(snakemake, snakemake.params.library_threads) as terminal:
        from agglearn_workflow.plan import Plan
        from agglearn_workflow.runs.batches import fit

        name, out = snakemake.wildcards.experiment, snakemake.output
        plan = Plan(snakemake.config | {"run": [name]})
        fit(plan, name, snakemake.wildcards.batch, out.measurements, out.observations, terminal)
