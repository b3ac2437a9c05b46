"""From public data to the papers' tables: prepare, fit, render, track, site, conclude; from the archive: recall. `docs/architecture.md` has a table of the rules."""

from snakemake.utils import min_version

min_version("9.19")


report: "workflow/report/workflow.rst"


include: "rules/common.smk"


if FROM_THE_ARCHIVE:

    include: "rules/archive.smk"

else:

    include: "rules/data.smk"
    include: "rules/fit.smk"


include: "rules/report.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        everything,


for name in [*plan.sources(), *plan.experiments]:

    rule:
        name:
            name
        input:
            outcome(name),


onstart:
    results_lock.acquire(f"{R}/.lock")


onsuccess:
    print_summary(R, S, plan.experiments, config["show"])


onerror:
    print_summary(R, S, plan.experiments, config["show"])
