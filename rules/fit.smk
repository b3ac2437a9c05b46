# Fits: one job per batch of runs. It observes the records, and learners see the observations alone. Finished runs lie in runs/
# and are reused while they hold. `snakemake --notemp` keeps the observations. Then a table and a figure of each experiment.
#   in: records/, archive/      out: measurements/, runs/, tables/, figures/


rule fit:
    input:
        records,
    output:
        measurements=f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
        observations=temp(directory(f"{S}/observations/{{experiment}}/{{batch}}")),
    log:
        f"{S}/logs/fit/{{experiment}}/{{batch}}.log",
    priority: precedence
    conda:
        "../environment.yml"
    threads: fit_threads
    resources:
        mem_mb=fitting_memory,
        runtime=fitting_minutes,
    params:
        settings=fit_settings,
        data=fit_data,
        code=fit_code,
        library_threads=library_threads,
    script:
        "../workflow/scripts/fit.py"


rule render:
    input:
        measured,
    output:
        csv=f"{S}/tables/{{experiment}}.csv",
        md=f"{S}/tables/{{experiment}}.md",
        tex=f"{S}/tables/{{experiment}}.tex",
        html=in_report(f"{S}/tables/{{experiment}}.html", "table"),
        svg=in_report(f"{S}/figures/{{experiment}}.svg", "figure"),
        json=f"{S}/tables/{{experiment}}.json",
    log:
        f"{S}/logs/render/{{experiment}}.log",
    priority: 1000
    conda:
        "../environment.yml"
    params:
        settings=lambda wildcards: table_settings(wildcards.experiment),
        code=code_digest("agglearn_workflow.render"),
    script:
        "../workflow/scripts/render.py"
