"""`snakemake --lint`, but for the lint that wants a conda environment or a container image for each rule.

Whoever starts this workflow has installed it: the scripts of all rules run in that one environment (see `config/README.md`).
"""

from snakemake.cli import main
from snakemake.linting.rules import RuleLinter

del RuleLinter.lint_missing_software_definition

main(["--lint"])
