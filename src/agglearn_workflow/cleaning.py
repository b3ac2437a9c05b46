"""`make clean`: deletes what the workflow has written. Downloads, compiled kernels and all other files stay."""

import argparse
import shutil
import sys
from pathlib import Path

from agglearn.errors import ConfigError
from agglearn_workflow.config.loading import load, read_mapping
from agglearn_workflow.config.scales import ORDER
from agglearn_workflow.project import project_files
from agglearn_workflow.runs import results_lock

GENERATED = (
    "runs", "observations", "measurements", "archived", "records", "tables", "figures", "tracking", "claims", "claims.json", "site",
    "pages", "docs", "bench", "logs", "mlflow.db", "mlartifacts", "scale.json", "outcome", *ORDER,
)  # fmt: skip
PAGES = ("docs/api", "docs/gallery", "docs/drawn")  # sources of pages that `make docs` writes, below the project's root


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="agglearn_workflow.cleaning", description=__doc__)
    parser.add_argument("--configfile", type=Path, help="laid over config/, as in runs")
    args = parser.parse_args(argv)
    try:
        config = load(project_files(), read_mapping(args.configfile) if args.configfile else {}, Path.cwd(), targets=())
    except ConfigError as error:
        sys.exit(f"agglearn: {error}")
    results_lock.acquire(f"{config['results']}/.lock")
    paths = [*(Path(config["results"], name) for name in GENERATED), *map(Path, PAGES)]
    for path in (path for path in paths if path.exists()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        print(f"agglearn: deleted {path}")
    print(f"agglearn: {config['cache']} stays")


if __name__ == "__main__":
    main()
