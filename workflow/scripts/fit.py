"""Observe the data sets of a batch, then fit and measure its runs, or write the measurements that the archive has of them."""

from pathlib import Path

from agglearn_workflow.jobs import job_log

if __name__ == "__main__":  # a process that a method spawns imports this file too
    with job_log(snakemake, snakemake.params.library_threads) as terminal:
        from agglearn_workflow.archive import store
        from agglearn_workflow.plan import Plan

        name, batch, config = snakemake.wildcards.experiment, snakemake.wildcards.batch, snakemake.config
        plan, out = Plan(config | {"run": [name]}), snakemake.output
        if config["from"] == "archive":
            store.recall(plan.runs(name, batch), store.read(config["archive"], name), out.measurements)
            Path(out.observations).mkdir(parents=True)
        else:
            from agglearn_workflow.runs.batches import fit  # which imports learners

            fit(plan, name, batch, out.measurements, out.observations, terminal)
