"""`make prune` and `make clean`: what the configuration no longer names, and everything that was generated. The
configuration names what a plan has at any scale: all experiments, whatever `run` says. Downloads and MLflow's runs
stay."""

import argparse
import shutil
import sys
from pathlib import Path

from agglearn import kernel_cache
from agglearn.errors import ConfigError
from agglearn_workflow.config.loading import load, read_mapping
from agglearn_workflow.config.scales import ORDER, SCALES
from agglearn_workflow.plan import Plan
from agglearn_workflow.project import project_files
from agglearn_workflow.runs import results_lock

GENERATED = (
    "runs", "observations", "measurements", "records", "tables", "figures", "tracking", "claims", "claims.json", "site",
    "pages", "docs", "bench", "logs", "mlflow.db", "mlartifacts", "scale.json", "outcome", *ORDER,
)  # fmt: skip

PAGES = ("docs/api", "docs/gallery")  # sources of pages that `make docs` writes, below the project's root


def surplus(config: dict) -> dict[str, list[Path]]:
    results, plans = Path(config["results"]), [Plan(config | {"run": "all", "scale": scale}) for scale in SCALES]
    keys = {run.key for plan in plans for name in plan.experiments for run in plan.runs(name)}
    observed = [path for scale in ("", *SCALES) for path in (results / scale / "observations").glob("*")]
    kernels = {kernel_cache.today(), kernel_cache.today(map(Path, config["code"]))}
    return {
        "runs": [path for path in (results / "runs").glob("*") if path.name not in keys],
        "observations": [path for path in observed if path.stem not in config["experiments"]],
        "folders of compiled kernels": [p for p in kernel_cache.base().glob("agglearn-*") if p.name not in kernels],
    }


def generated(config: dict) -> dict[str, list[Path]]:
    """What the workflow has written, by its path. Downloads and compiled kernels are not in it."""
    paths = [*(Path(config["results"], name) for name in GENERATED), *map(Path, PAGES)]
    return {str(path): [path] for path in paths if path.exists()}


def size_of(paths: list[Path]) -> int:
    return sum(file.stat().st_size for path in paths for file in (path, *path.rglob("*")) if file.is_file())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="agglearn_workflow.pruning", description=__doc__)
    parser.add_argument("command", choices=("prune", "clean"))
    parser.add_argument("--yes", action="store_true", help="prune: delete; without it, only list")
    parser.add_argument("--configfile", type=Path, help="laid over config/, as in runs")
    args = parser.parse_args(argv)
    try:
        config = load(project_files(), read_mapping(args.configfile) if args.configfile else {}, Path.cwd())
    except ConfigError as error:
        sys.exit(f"agglearn: {error}")
    results_lock.acquire(f"{config['results']}/.lock")
    is_listed_only = args.command == "prune" and not args.yes
    kinds = surplus(config) if args.command == "prune" else generated(config)
    if args.command == "prune":
        print(f"agglearn: not named by config/ at any scale ({', '.join(SCALES)}):")
    for kind, paths in kinds.items():
        print(f"  {kind}: {len(paths)}, {size_of(paths) / 1e6:,.1f} MB")
        for path in () if is_listed_only else paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not any(kinds.values()):
        print("agglearn: nothing to delete")
    elif is_listed_only:
        print("agglearn: nothing is deleted yet; delete it with: make prune ARGS=--yes")
    else:
        print(f"agglearn: deleted; {config['cache']} stays")


if __name__ == "__main__":
    main()
