# Fits: one job per batch of runs. Finished runs lie in runs/ and are reused while they hold.
#   in: observations/      out: measurements/, runs/


rule fit:
    input:
        observations,
    output:
        f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
    log:
        f"{R}/logs/fit/{{experiment}}/{{batch}}.log",
    conda:
        "../environment.yml"
    threads: fit_threads
    params:
        recipes=recipes,
    script:
        "../workflow/scripts/stage.py"
