# Measurements from the record, in the place of fits.
#   in: record/      out: measurements/


rule recall:
    output:
        f"{S}/measurements/{{experiment}}/{{batch}}.parquet",
    log:
        f"{S}/logs/recall/{{experiment}}/{{batch}}.log",
    conda:
        "../environment.yml"
    params:
        settings=fit_settings,
        data=fit_data,
        code=fit_code,
        files=recorded_files,
    script:
        "../workflow/scripts/recall.py"
