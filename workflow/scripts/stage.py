"""Hand a job of the workflow over to the package: threads first, then the stage that bears the rule's name."""

import contextlib
import os
import sys
import traceback
from pathlib import Path

job = snakemake  # noqa: F821
for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{name}_NUM_THREADS"] = str(job.threads)
os.environ["NUMBA_CACHE_DIR"] = str(Path(job.config["cache"]).resolve() / "numba")
root = Path(job.scriptdir, "../..").resolve()
sys.path[:0] = [str(root / "src"), *(str(root / folder) for folder in job.config["code"])]

from agglearn import source, stages  # noqa: E402
from agglearn.errors import AgglearnError  # noqa: E402

for folder in job.config["code"]:
    source.add_root(root / folder)

terminal = sys.stderr
with open(job.log[0], "w") as log:
    try:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            getattr(stages, job.rule)(job, terminal)
    except AgglearnError as error:
        line = f"error: {' '.join(job.wildcards)}: {error}"
        log.write(line + "\n")
        sys.exit(f"agglearn: {line}")
    except Exception as error:
        traceback.print_exc(file=log)
        line = (
            f"error: {job.rule} {' '.join(job.wildcards)}: {type(error).__name__}: {error} (traceback in {job.log[0]})"
        )
        log.write(line + "\n")
        sys.exit(f"agglearn: {line}")
