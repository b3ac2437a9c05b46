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


def end(result: str | int | None) -> None:
    """End this process at once: a library whose threads still run at its end would abort it."""
    if isinstance(result, str):
        print(result, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if isinstance(result, str) else result or 0)


if __name__ == "__main__":  # a process that a method spawns imports this file too
    forked = globals().get("forked", False)
    result = main(snakemake, forked)  # noqa: F821
    sys.exit(result) if forked else end(result)
