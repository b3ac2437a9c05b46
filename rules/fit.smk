# Fits: one job per batch of runs. Finished runs lie in runs/ and are reused while they hold. Where results are shown from the
# record, a job writes the recorded measurements of its batch, and needs no input.
#   in: observations/      out: measurements/, runs/


rule fit:
    input:
        observed=observations,
        manifests=[] if RECORDED else f"{S}/observations/{{experiment}}.json",
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
        recorded=recorded_files,
        library_threads=library_threads,
    script:
        "../workflow/scripts/stage.py"
