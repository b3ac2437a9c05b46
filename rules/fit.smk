# Fits: one job per batch of runs. Finished runs lie in runs/ and are reused while they hold.
#   in: observations/      out: measurements/, runs/


rule fit:
    input:
        observed=observations,
        manifests=f"{S}/observations/{{experiment}}.json",
    output:
        f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
    log:
        f"{S}/logs/fit/{{experiment}}/{{batch}}.log",
    priority: urgency
    threads: fit_threads
    resources:
        mem_mb=fitting_memory,
    params:
        recipes=recipes,
        library_threads=library_threads,
    script:
        "../workflow/scripts/stage.py"
