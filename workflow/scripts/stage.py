"""Hand a job of the workflow over to the package: threads first, then the stage that bears the rule's name."""

import os
import sys
from pathlib import Path

job = snakemake  # noqa: F821
root = Path(job.scriptdir, "../..").resolve()
sys.path[:0] = [str(root / "src"), *(str(root / folder) for folder in job.config["code"])]

from agglearn import nursery  # noqa: E402

os.environ |= nursery.limited(job.threads)
said = nursery.hand_over(job, root=root)
if said is False:
    from agglearn import stages

    said = stages.run(job, root=root)
sys.exit(said)
