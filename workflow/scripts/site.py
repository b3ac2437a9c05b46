"""Judge claims, and write the pages with tables, figures and verdicts."""

from pathlib import Path

from agglearn_workflow.jobs import job_log

with job_log(snakemake):
    from agglearn import storage
    from agglearn_workflow.claims.judging import judge_target
    from agglearn_workflow.plan import Plan
    from agglearn_workflow.project import project_files
    from agglearn_workflow.site import pages

    config, folder = snakemake.config, Path(snakemake.config["scale_folder"])
    plan, address = Plan(config), Path(snakemake.output.site)
    names = plan.named(snakemake.wildcards.get("target", "all"))
    claims = judge_target(plan, names, folder)
    storage.write_json(snakemake.output.claims, claims)
    with storage.atomic_dir(address) as out:
        shown = plan if names == [*plan.experiments] else Plan(config | {"run": names})
        pages.build(shown, claims, folder, out, project_files(), address)
