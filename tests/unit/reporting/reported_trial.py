"""An experiment whose results are reported: two methods on two data sets."""

import json

import numpy as np
import pandas as pd

from agglearn_workflow.archive.store import MEASURED
from agglearn_workflow.tables import printed_table
from agglearn_workflow.tables.printed_table import Grid

EXPERIMENT = {"title": "T & U_1", "datasets": {"a": {}, "b": {}}, "measures": ["nllh"], "reported": []}
EXPERIMENT |= {"methods": {"ours": {"name": "Ours"}, "base": {}}}


# of cases with three and five pairs, with one, and with none
VALUES = {
    ("a", "ours"): [0.40, 0.43, 0.41, 0.46, 0.45], ("a", "base"): [0.39, 0.44, 0.37],  # differences 0.01, −0.01, 0.04
    ("bb", "ours"): [0.50, 0.52, 0.51, 0.56, 0.55], ("bb", "base"): [0.40, 0.43, 0.40, 0.47, 0.44],  # 0.10, 0.09, 0.11, 0.09, 0.11
    ("cc", "ours"): [0.30], ("cc", "base"): [0.35],
    ("dd", "ours"): [0.30, 0.31], ("dd", "base"): ("failed", "boom"),
}  # fmt: skip


def rows(values: dict, measure="nllh", step=None, keys=None) -> pd.DataFrame:
    """Rows from {(dataset, method[, params]): [value per seed] or (status, reason)}."""
    found = []
    for key, seeds in values.items():
        dataset, method, params = (*key, "{}")[:3]
        bad = isinstance(seeds, tuple)
        for seed, value in enumerate([np.nan] if bad else seeds):
            found.append(
                dict.fromkeys(MEASURED)
                | {"run": f"{key}{seed}", "experiment": "e", "dataset": dataset, "dataset_params": "{}", "params": params,
                   "observation": "tables", "observation_params": "{}", "method": method, "seed": seed, "step": step,
                   "status": seeds[0] if bad else "ok", "reason": seeds[1] if bad else None, "keys": keys and json.dumps(keys),
                   "measure": None if bad else measure, "value": value, "unit": "", "tested": dataset}
            )  # fmt: skip
    return pd.DataFrame(found).astype({"step": float, "value": float, "overlap": float})


def reported(value: float, dataset="a", method="ours", **more) -> dict:
    """A number that the source prints."""
    return {"dataset": dataset, "method": method, "measure": "nllh", "value": value, "place": "Table 1"} | more


def compared(margin: float, *entries: dict) -> dict:
    """The experiment with printed numbers, and the margin within which they agree."""
    return EXPERIMENT | {"reported": list(entries), "agreement": {"margins": {"nllh": margin}, "reason": "ours"}}


def written(kind: str, grid: Grid, title: str = "T") -> str:
    """A table without a caption."""
    return printed_table.write(title, [(title, grid)], "")[kind]
