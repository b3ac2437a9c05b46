"""Judge claims, and write the pages with tables, figures and verdicts."""

from pathlib import Path

from agglearn.jobs import job_log

with job_log(snakemake):
    from agglearn import storage
    from agglearn.local_files import project_files
    from agglearn.reporting import site
    from agglearn.reporting.judging import judge_target
    from agglearn.workflow.plan import Plan

    config, folder = snakemake.config, Path(snakemake.config["scale_folder"])
    plan, address = Plan(config), Path(snakemake.output.site)
    names = plan.named(snakemake.wildcards.get("target", "all"))
    claims = judge_target(plan, names, folder)
    storage.write_json(snakemake.output.claims, claims)
    with storage.atomic_dir(address) as out:
        site.build(Plan(config | {"run": names}), claims, folder, out, project_files(), address)
