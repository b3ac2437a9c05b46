# Measurements from the archive, in the place of fits. The outputs are those of fits, so that Snakemake compares their parameters.
#   in: archive/      out: measurements/


rule recall:
    output:
        measurements=f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
        observations=temp(directory(f"{S}/observations/{{experiment}}/{{batch}}")),
    log:
        f"{S}/logs/recall/{{experiment}}/{{batch}}.log",
    conda:
        "../environment.yml"
    params:
        settings=fit_settings,
        data=fit_data,
        code=lambda w: code_digest(*plan.code(w.experiment, w.batch)),
        files=archived_files,
    script:
        "../workflow/scripts/recall.py"
