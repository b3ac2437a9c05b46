"""Get the files of a data set and parse its records: features and labels apart."""

import sys
from pathlib import Path

from agglearn_workflow.jobs import error_line, job_log

with job_log(snakemake) as terminal:
    from agglearn import storage
    from agglearn.datasets.fetching import obtain
    from agglearn.registry import resolve
    from agglearn_workflow import memory
    from agglearn_workflow.runs import products

    name, config = snakemake.wildcards.dataset, snakemake.config
    entry = config["datasets"][name]

    def parse(out: Path) -> dict:
        files = obtain(name, entry, config, Path.cwd(), terminal)
        paths = {file: Path(facts["path"]) for file, facts in files.items()}
        fields = resolve(entry["class"]).from_entry(entry).parse(paths, out) or {}
        origins = {file: facts["origin"] for file, facts in files.items()}
        return fields | {"memory": memory.unpacked(out), "origins": origins}

    def report(error: Exception) -> None:
        print(f"agglearn: {error_line(snakemake, error, sys.stderr)}", file=terminal)

    products.build_product(
        snakemake.output[0],
        parse,
        on_missing=config["on_missing"],
        on_failure=report if config["on_failure"] == "report" else None,
        terminal=terminal,
        recipe=storage.digest([snakemake.params.entry, snakemake.params.code]),
        bytes=memory.size_of_files(entry),
    )
