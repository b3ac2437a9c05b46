"""Hand a job of the workflow over to the package: threads first, then the stage that bears the rule's name."""

import os
import sys
from pathlib import Path


def main(job, forked: bool) -> str | int | None:
    """Run a job, and return None or an error's line.

    A child of the prefork server leaves the job to another process where its libraries may use more threads.
    """
    sources = [Path(job.scriptdir, "../../src"), *map(Path, job.config["code"])]
    sys.path[:0] = [str(folder.resolve()) for folder in sources if folder.is_dir()]

    from agglearn import launcher, prefork
    from agglearn.workflow import lifeline

    threads = prefork.library_threads(job)
    if forked and threads != prefork.THREADS:
        return launcher.ALONE
    lifeline.follow()
    os.environ |= prefork.limited(threads)

    from agglearn import jobs

    return jobs.run(job)


if __name__ == "__main__":  # a process that a method spawns imports this file too
    sys.exit(main(snakemake, globals().get("forked", False)))  # noqa: F821
