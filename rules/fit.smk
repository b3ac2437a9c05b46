# Fits: one job per batch of runs. It observes the records, and learners see the observations alone. Finished runs lie in runs/
# and are reused while they hold. `snakemake --notemp` keeps the observations. From the archive a job takes what that has, and
# computes nothing.
#   in: records/, archive/      out: measurements/, runs/


rule fit:
    input:
        records,
    output:
        measurements=f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
        observations=temp(directory(f"{S}/observations/{{experiment}}/{{batch}}")),
    log:
        f"{S}/logs/fit/{{experiment}}/{{batch}}.log",
    priority: budget
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
        archive=archived_files,
        library_threads=library_threads,
    script:
        "../workflow/scripts/fit.py"
