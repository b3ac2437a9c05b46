"""Archived runs, computed again and compared with the archive."""

import random
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa

from agglearn import storage
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import ArchivedRun
from agglearn_workflow.measurements import SCHEMA, table_of
from agglearn_workflow.plan import IDENTITY, Plan, Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import Outcome, execute_run
from agglearn_workflow.runs.observing import observe_slot, records_of

ABSOLUTE, RELATIVE = 1e-6, 1e-4  # |difference| ≤ ABSOLUTE + RELATIVE · |archived value|
# Measure → its own tolerances. Chains are chaotic: what rests on few of them differs more between processors.
TOLERANCES = {"relative_gap": (1e-6, 0.5), "converged": (0.0, 0.0)}
NOT_COMPARED = ("s", "B")  # units of times and of memory


def draw_sample(
    plan: Plan, folder: Path, n: int, seconds: float, seed: int | None = None
) -> list[tuple[Run, ArchivedRun]]:
    """At most `n` archived runs of today's recipes, of at most `seconds` of CPU, whose data are simulated or here."""
    candidates = []
    for name in plan.experiments:
        archived = store.read(folder, name)
        for run in plan.runs(name):
            finished = archived.get(run.key)
            if finished and not store.outdated(run, finished) and (finished.facts["cpu_seconds"] or 0.0) <= seconds:
                candidates.append((run, finished))
    datasets = {dataset for dataset in plan.config["datasets"] if _is_here(records_of(plan.config, dataset))}
    candidates = [(run, finished) for run, finished in candidates if run.dataset in datasets]
    return random.Random(seed).sample(candidates, min(n, len(candidates)))


def _is_here(records: Path | None) -> bool:
    manifest = records and records / products.MANIFEST
    return manifest is None or (manifest.exists() and storage.read_json(manifest)["status"] == "ok")


def recompute(run: Run, plan: Plan) -> tuple[Outcome, str]:
    """(outcome, digest of the observation) of a run that is observed, fitted and measured again."""
    entry, records = plan.config["datasets"][run.dataset], records_of(plan.config, run.dataset)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        observe_slot(run, plan.experiments[run.experiment], entry, records, out)
        observed = products.content_digest(products.content_digests(out), run.slot)
        (out / "run").mkdir()
        return execute_run(run, out, out / "run"), observed


def compare(archived: ArchivedRun, outcome: Outcome, observed: str) -> list[str]:
    lines = []
    if archived.facts["observed"] != observed:
        lines.append(f"its observation has the digest {observed}, and {archived.facts['observed']} in the archive")
    before = archived.rows.to_pandas()
    if before["status"].iloc[0] != outcome.status:
        return [*lines, f"status {outcome.status}, and {before['status'].iloc[0]} in the archive ({outcome.reason})"]
    return lines + _differing_values(before, table_of(list(outcome.rows)))


def _differing_values(before: pd.DataFrame, now: pa.Table) -> list[str]:
    keys = [name for name in SCHEMA.names if name not in ("run", *IDENTITY, "status", "reason", "value", "unit")]
    sides = []
    for frame in (before, now.to_pandas()):
        frame = frame[frame["measure"].notna() & ~frame["unit"].isin(NOT_COMPARED)]
        names = frame[keys].astype(str).where(frame[keys].notna(), "")
        again = names.groupby(keys).cumcount()  # rows that nothing distinguishes, in their order
        index = [tuple(row) for row in names.assign(again=again).itertuples(index=False)]
        sides.append(pd.Series(frame["value"].to_numpy(float), pd.Index(index, dtype=object)))
    a, b = sides
    lines = [f"{_name(key, keys)}: only in the archive" for key in a.index.difference(b.index)]
    lines += [f"{_name(key, keys)}: not in the archive" for key in b.index.difference(a.index)]
    for key in a.index.intersection(b.index, sort=False):
        absolute, relative = TOLERANCES.get(key[keys.index("measure")], (ABSOLUTE, RELATIVE))
        tolerance = absolute + relative * abs(a[key])
        if not (abs(a[key] - b[key]) <= tolerance or (a[key] != a[key] and b[key] != b[key])):
            lines.append(
                f"{_name(key, keys)}: {b[key]:.9g}, and {a[key]:.9g} in the archive (tolerance {tolerance:.2g})"
            )
    return lines


def _name(key: tuple, keys: list[str]) -> str:
    texts = [f"{name} {value}" for name, value in zip(keys, key, strict=False) if value != ""]
    return ", ".join(text for text in texts if not text.startswith(("tested ", "overlap "))).removeprefix("measure ")
