"""`make prune` and `make clean`: what the configuration no longer names, and everything that was generated.

Named is what a plan of today's configuration has at any scale: all experiments, whatever `run` says. Downloads stay.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agglearn import kernel_cache
from agglearn.errors import ConfigError
from agglearn.local_files import project_files
from agglearn.tracking.receipts import KEY, SQLITE, overview_key
from agglearn.workflow import results_lock
from agglearn.workflow.config import deep_merge, load, read_mapping
from agglearn.workflow.plan import Plan
from agglearn.workflow.scales import ORDER, SCALES

GENERATED = (
    "runs", "observations", "measurements", "records", "sources", "tables", "figures", "tracking", "claims", "claims.json", "site",
    "quick.html", "docs", "bench", "logs", "mlflow.db", "mlartifacts", "scale.json", "outcome", "forced", *ORDER,
)  # fmt: skip

PAGES = ("docs/api", "docs/gallery")  # sources of pages that `make docs` writes, below the project's root


@dataclass
class Surplus:
    """Things of one kind to delete."""

    kind: str
    paths: list[Path] = field(default_factory=list)
    total: int = 0  # how many there are of this kind

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(size_of(p) for p in self.paths)

    def __str__(self) -> str:
        return f"{len(self.paths)} of {self.total} {self.kind}, {self.size / 1e6:,.1f} MB"


def size_of(path: Path) -> int:
    """Bytes on disk. A file with several names counts once."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum({(s.st_dev, s.st_ino): s.st_size for s in (p.stat() for p in files)}.values())


def plans(config: dict) -> list[Plan]:
    """Plans of all experiments, one per scale."""
    return [Plan(config | {"run": "all", "scale": scale}) for scale in SCALES]


def stale(config: dict) -> tuple[list[Surplus], list[str]]:
    """(what to delete from disk, ids of MLflow's runs to delete)."""
    results, planned = Path(config["results"]), plans(config)
    runs = [run for plan in planned for name in plan.experiments for run in plan.runs(name)]
    keys = {run.key for run in runs}
    observed = [p for scale in ("", *SCALES) for p in (results / scale / "observations").glob("*")]
    return [
        _unnamed("runs", sorted((results / "runs").glob("*")), lambda p: p.name in keys),
        _unnamed("observations", observed, lambda p: p.stem in planned[0].experiments),
        kernel_folders(config),
    ], tracked(
        config["tracking"]["uri"],
        keys | {run.cell for run in runs} | {overview_key(n) for n in planned[0].experiments},
    )


def _unnamed(kind: str, paths: list[Path], named: Callable[[Path], bool]) -> Surplus:
    return Surplus(kind, [p for p in paths if not named(p)], len(paths))


def kernel_folders(config: dict) -> Surplus:
    """Folders of compiled kernels."""
    today = kernel_cache.today(), kernel_cache.today(map(Path, config["code"]))
    folders = sorted(kernel_cache.base().glob("agglearn-*"))
    return _unnamed("folders of compiled kernels", folders, lambda path: path.name in today)


# -- MLflow -----------------------------------------------------------------------------------------------------------


def tracked(uri: str, keys: set[str]) -> list[str]:
    """Ids of the runs that this project sent to a SQLite store and that no plan names, deleted ones included.

    Runs that somebody else put there bear no key and stay. Stores behind a server are left alone.
    """
    if not uri.startswith(SQLITE) or not Path(uri.removeprefix(SQLITE)).exists():
        return []
    import mlflow
    from mlflow.entities import ViewType

    client = mlflow.MlflowClient(uri)
    experiments = [e.experiment_id for e in client.search_experiments(view_type=ViewType.ALL)]
    ids, token = [], None
    while experiments:
        page = client.search_runs(experiments, run_view_type=ViewType.ALL, max_results=1000, page_token=token)
        for run in page:
            key, deleted = run.data.tags.get(KEY), run.info.lifecycle_stage == "deleted"
            if key and (deleted or key not in keys):
                ids.append(run.info.run_id)
        token = page.token
        if not token:
            break
    return ids


def delete_tracked(uri: str, ids: list[str]) -> None:
    """Delete runs from MLflow's store for good, with their models and files."""
    import mlflow

    from agglearn.tracking.push import delete_run

    client = mlflow.MlflowClient(uri)
    for run in (client.get_run(i) for i in ids):
        if run.info.lifecycle_stage != "deleted":
            delete_run(client, run)
    command = [sys.executable, "-m", "mlflow", "gc", "--backend-store-uri", uri, "--tracking-uri", uri]
    for first in range(0, len(ids), 500):
        done = subprocess.run(
            [*command, "--run-ids", ",".join(ids[first : first + 500])], capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"agglearn: {uri}: MLflow did not delete the runs: {done.stderr.strip().splitlines()[-1]}")


# -- commands ---------------------------------------------------------------------------------------------------------


def prune(config: dict, delete: bool) -> None:
    """Print what no plan names, and delete it where that is asked for."""
    uri = config["tracking"]["uri"]
    surplus, ids = stale(config)
    print(f"agglearn: not named by config/ at any scale ({', '.join(SCALES)}):")
    for kind in surplus:
        print(f"  {kind}")
    print(f"  {len(ids)} of MLflow's runs")
    if not ids and not any(kind.paths for kind in surplus):
        print("agglearn: nothing to delete")
        return
    if not delete:
        print("agglearn: nothing is deleted yet; delete it with: make prune ARGS=--yes")
        return
    for path in (p for kind in surplus for p in kind.paths):
        remove(path)
    if ids:
        delete_tracked(uri, ids)
    print("agglearn: deleted")


def clean(config: dict) -> None:
    """Delete everything generated, with a line for each. Downloads and compiled kernels stay."""
    results = Path(config["results"])
    for path in [*(results / name for name in GENERATED), *map(Path, PAGES)]:
        if path.exists():
            print(f"agglearn: {path} ({size_of(path) / 1e6:,.1f} MB) deleted")
            remove(path)
    print(f"agglearn: {config['cache']} stays: downloads and compiled kernels")


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def main(argv: list[str] | None = None) -> None:
    """`python -m agglearn.pruning prune|clean`, in the project's folder."""
    parser = argparse.ArgumentParser(prog="agglearn.pruning", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    pruning = commands.add_parser("prune")
    pruning.add_argument("--yes", action="store_true", help="delete; without it, only list")
    for command in (pruning, commands.add_parser("clean")):
        command.add_argument(
            "--configfile", action="append", type=Path, default=[], help="laid over config/, as in runs"
        )
    arguments = parser.parse_args(argv)
    overlay: dict = {}
    try:
        for path in arguments.configfile:
            overlay = deep_merge(overlay, read_mapping(path))
        config = load(project_files(), overlay, Path.cwd())
    except ConfigError as error:
        sys.exit(f"agglearn: {error}")
    results_lock.acquire(f"{config['results']}/.lock")
    prune(config, arguments.yes) if arguments.command == "prune" else clean(config)


if __name__ == "__main__":
    main()
