# From the archive: its measurements, and their tables and figures. A source is one job, since the import of libraries takes
# a process longer than a table and a figure.
#   in: archive/      out: archived/, tables/, figures/

for source in plan.sources():
    names = plan.named(source)

    rule:
        name:
            f"recall_{source}"
        output:
            measurements(source),
            [f"{S}/tables/{n}.{kind}" for n in names for kind in ("csv", "md", "tex", "json")],
            [in_report(f"{S}/tables/{n}.html", "table", n, source_title(source), "archived") for n in names],
            [in_report(f"{S}/figures/{n}.svg", "figure", n, source_title(source), "archived") for n in names],
        log:
            f"{S}/logs/recall/{source}.log",
        priority: sum(Path(file).stat().st_size for file in archived_files(names))  # the longest job first
        conda:
            "../environment.yml"
        params:
            experiments=names,
            settings={n: table_settings(n) for n in names},
            archive=archived_files(names),
            code=code_digest("agglearn_workflow.render", "agglearn_workflow.archive.store"),
        script:
            "../workflow/scripts/recall.py"
