"""Write the measurements that the archive has of some experiments, and draw their tables and figures."""

from pathlib import Path

from agglearn_workflow.jobs import job_log

with job_log(snakemake):
    from agglearn_workflow.archive import store
    from agglearn_workflow.config.scales import FROM_ARCHIVE, measured_folder, note_scale
    from agglearn_workflow.plan import Plan
    from agglearn_workflow.render import render

    config, folder = snakemake.config, snakemake.config["scale_folder"]
    if folder == config["results"]:
        note_scale(folder, FROM_ARCHIVE)
    measured = Path(folder, measured_folder(config))
    for name in snakemake.params.experiments:
        plan, archived = Plan(config | {"run": [name]}), store.read(config["archive"], name)
        paths = {batch: measured / f"{name}/{batch}.parquet" for batch in plan.batches(name)}
        for batch, path in paths.items():
            store.recall(plan.runs(name, batch), archived, path)
        render(plan, name, paths.values(), folder)
