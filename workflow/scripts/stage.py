"""Hand a job of the workflow over to the package: threads first, then the stage that bears the rule's name."""

import os
import sys
from pathlib import Path


def main(job) -> str | None:
    """Run a job; returns None or an error's line."""
    root = Path(job.scriptdir, "../..").resolve()
    sys.path[:0] = [str(root / "src"), *(str(root / folder) for folder in job.config["code"])]

    from agglearn import lifeline, nursery

    lifeline.follow()
    os.environ |= nursery.limited(nursery.library_threads(job))
    line = nursery.hand_over(job, root=root)
    if line is False:
        from agglearn import stages

        line = stages.run(job, root=root)
    return line


if __name__ == "__main__":  # a process that a method spawns imports this file too
    sys.exit(main(snakemake))  # noqa: F821
