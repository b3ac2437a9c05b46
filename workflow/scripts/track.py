"""Send runs with their means, tables and figures to MLflow."""

from pathlib import Path

from agglearn_workflow.jobs import job_log

with job_log(snakemake) as terminal:
    from agglearn_workflow.plan import Plan
    from agglearn_workflow.tracking.entry import Contents, read_contents
    from agglearn_workflow.tracking.push import track

    config, folder = snakemake.config, snakemake.config["scale_folder"]
    results, plan = Path(config["results"]), Plan(config)

    def read(name: str) -> Contents:
        keys = [run.key for run in plan.runs(name)]
        return read_contents(name, plan.experiments[name], results, keys, Path(folder))

    names = plan.named(snakemake.wildcards.group)
    track(snakemake.params.uri, names, read, snakemake.output[0], snakemake.params.attempt, terminal)
