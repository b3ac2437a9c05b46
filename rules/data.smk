# Data: files are fetched, records parsed, observations made. A product of each always comes out; what cannot be had
# is a status in it. Observations can be made again in seconds and are large: once the fits that need them are done, only
# their manifests stay (snakemake --notemp keeps them). `update` leaves a product in place until its successor is whole.
#   in: mirrors, package index, hosts      out: sources/, records/, observations/


rule fetch:
    input:
        nothing,
    output:
        update(directory(f"{R}/sources/{{dataset}}")),
    log:
        f"{R}/logs/fetch/{{dataset}}.log",
    priority: urgency
    resources:
        mem_mb=memory.FLOOR,
    params:
        recipe=entry_digest,
        local=local_files,
    script:
        "../workflow/scripts/stage.py"


rule prepare:
    input:
        f"{R}/sources/{{dataset}}",
    output:
        update(directory(f"{R}/records/{{dataset}}")),
    log:
        f"{R}/logs/prepare/{{dataset}}.log",
    priority: urgency
    resources:
        mem_mb=parsing_memory,
    params:
        recipe=parsing_recipe,
    script:
        "../workflow/scripts/stage.py"


rule observe:
    input:
        observed_records,
    output:
        folder=temp(directory(f"{S}/observations/{{experiment}}")),
        manifests=f"{S}/observations/{{experiment}}.json",
    log:
        f"{S}/logs/observe/{{experiment}}.log",
    priority: urgency
    resources:
        mem_mb=observing_memory,
    params:
        slots=observed_slots,
        recipes=observing_recipes,
    script:
        "../workflow/scripts/stage.py"
