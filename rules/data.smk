# Data: files are fetched and records parsed. What cannot be had is a status in the product, which always comes out. `update`
# leaves a product in place until its successor is complete.
#   in: mirrors, package index, hosts      out: records/


rule prepare:
    output:
        update(directory(f"{R}/records/{{dataset}}")),
    log:
        f"{R}/logs/prepare/{{dataset}}.log",
    priority: 1000
    conda:
        "../environment.yml"
    resources:
        mem_mb=parsing_memory,
    params:
        entry=dataset_entry,
        code=dataset_code,
        files=local_files,
    script:
        "../workflow/scripts/prepare.py"
