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
        mem_mb=lambda w: memory.for_parsing(config["datasets"][w.dataset]),
    params:
        entry=lambda w: essence(config["datasets"][w.dataset]),
        code=lambda w: code_digest(config["datasets"][w.dataset]["class"]),
        files=local_files,
    script:
        "../workflow/scripts/prepare.py"
