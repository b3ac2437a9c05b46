"""Archived runs, computed again and compared with the archive."""

import random
import tempfile
from pathlib import Path

import pandas as pd

from agglearn import storage
from agglearn.errors import DataError
from agglearn.text import count_text
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import ArchivedRun, table_of
from agglearn_workflow.plan import Plan, Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import Outcome, Source, execute_run, observe_slot, records_of

ABSOLUTE, RELATIVE = 1e-6, 1e-4  # |difference| ≤ ABSOLUTE + RELATIVE · |archived value|
# Measure → its own tolerances. Chains are chaotic: what rests on few of them differs more between processors.
TOLERANCES = {"relative_gap": (1e-6, 0.5), "converged": (0.0, 0.0)}
KEYS = ["measure", "keys", "step", "tested", "overlap"]  # of a value
SIDES = {"left_only": "only in", "right_only": "not in"}
NOT_COMPARED = ("s", "B")  # units of times and of memory


def draw_sample(plan: Plan, folder: Path, n: int, seconds: float, seed: int | None) -> list[tuple[Run, ArchivedRun]]:
    """At most `n` archived runs of today's recipes, of at most `seconds` of CPU, whose data are simulated or here."""
    available = {dataset for dataset in plan.config["datasets"] if _is_here(records_of(plan.config, dataset))}
    candidates = []
    for name in plan.experiments:
        archived = store.read(folder, name)
        for run in plan.runs(name):
            finished = archived.get(run.key) if run.dataset in available else None
            if finished and not store.outdated(run, finished) and (finished.facts["cpu_seconds"] or 0.0) <= seconds:
                candidates.append((run, finished))
    return random.Random(seed).sample(candidates, min(n, len(candidates)))


def _is_here(records: Path | None) -> bool:
    manifest = records and records / products.MANIFEST
    return manifest is None or (manifest.exists() and storage.read_json(manifest)["status"] == "ok")


def recompute(run: Run, plan: Plan) -> tuple[Outcome, str]:
    """(outcome, digest of the observation) of a run that is observed, fitted and measured again."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        observe_slot(run, plan.experiments[run.experiment], Source.of(plan.config, run.dataset), out)
        observed = products.content_digest(products.content_digests(out), run.slot)
        (out / "run").mkdir()
        return execute_run(run, out, out / "run"), observed


def check(plan: Plan, folder: Path, n: int, seconds: float, seed: int | None) -> None:
    """Compute a sample of runs again, with a line for each, and raise DataError where some differ."""
    sample = draw_sample(plan, folder, n, seconds, seed)
    if not sample:
        raise DataError(f"{folder}: no run of today's code whose data are here takes at most {seconds:g} s")
    wrong = 0
    for run, archived in sample:
        differences = compare(archived, *recompute(run, plan))
        wrong += bool(differences)
        words = f"{run.experiment}: {run.dataset}, {run.method} {run.params}, seed {run.seed}"
        print(f"{words}: {'differs' if differences else 'same'}", *differences, sep="\n  ")
    if wrong:
        raise DataError(f"not as archived: {wrong} of {count_text(len(sample), 'run')}")
    print(f"as archived: {count_text(len(sample), 'run')}")


def compare(archived: ArchivedRun, outcome: Outcome, observed: str) -> list[str]:
    """Lines on values that differ, the last one on their observation. It alone is none: the bytes of a file, so its digest,
    depend on the versions of Python and packages, and the last digits of simulated units, so theirs, on the machine."""
    is_same = archived.facts["observed"] == observed
    before, now = archived.rows.to_pandas(), table_of(list(outcome.rows)).to_pandas()
    if before["status"].iloc[0] != outcome.status:
        lines = [f"status {outcome.status}, and {before['status'].iloc[0]} in the archive ({outcome.reason})"]
    else:
        lines = _differing_values(before, now, [key for key in KEYS if key != "tested" or is_same])
    if lines and not is_same:
        lines.append(f"its observation has the digest {observed}, and {archived.facts['observed']} in the archive")
    return lines


def _differing_values(before: pd.DataFrame, now: pd.DataFrame, keys: list[str]) -> list[str]:
    sides = []
    for frame in (before, now):
        frame = frame[frame["measure"].notna() & ~frame["unit"].isin(NOT_COMPARED)]
        again = frame.groupby(keys, dropna=False).cumcount()  # rows that nothing distinguishes, in their order
        sides.append(frame[[*keys, "value"]].assign(again=again))
    both = sides[0].merge(sides[1], "outer", [*keys, "again"], suffixes=("_before", "_now"), indicator="side")
    lines = []
    for row in both.sort_values("side", kind="stable").to_dict("records"):
        now, before = row["value_now"], row["value_before"]
        words = [f"{key} {row[key]}" for key in ("keys", "step") if pd.notna(row[key])]
        name = ", ".join([row["measure"], *words])
        absolute, relative = TOLERANCES.get(row["measure"], (ABSOLUTE, RELATIVE))
        tolerance = absolute + relative * abs(before)
        if row["side"] != "both":
            lines.append(f"{name}: {SIDES[row['side']]} the archive")
        elif not (abs(now - before) <= tolerance or (pd.isna(now) and pd.isna(before))):
            lines.append(f"{name}: {now:.9g}, and {before:.9g} in the archive (tolerance {tolerance:.2g})")
    return lines
