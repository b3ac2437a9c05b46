"""Facts that a run records on its data: digest, numbers, types of columns."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from agglearn.datasets.base import BagPopulation, Population
from agglearn.datasets.flows import FlowPopulation
from agglearn.datasets.simulated import TablePopulation
from agglearn.storage import digest, read_json

KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}  # of NumPy's codes


def of_records(folder: Path) -> dict:
    stated = read_json(folder / "manifest.json")
    sizes = {k: v for k, v in stated.items() if isinstance(v, int) and k not in ("memory", "bytes")}
    features = folder / "features.parquet"
    frame = pq.read_schema(features).empty_table().to_pandas() if features.exists() else pd.DataFrame()
    return {"digest": digest(stated["content"]), "sizes": sizes, "types": types(frame)}


def of_draw(entry: dict, params: str, seed: int, drawn: object) -> dict:
    described = [entry["class"], entry.get("params", {}), json.loads(params), seed]
    frame = drawn.frame if isinstance(drawn, Population) else pd.DataFrame()
    return {"digest": digest(described), "sizes": sizes(drawn), "types": types(frame)}


def sizes(drawn: object) -> dict[str, int]:
    if isinstance(drawn, Population):
        return {"rows": len(drawn.frame), "columns": drawn.frame.shape[1]}
    if isinstance(drawn, BagPopulation):
        bags = drawn.train, drawn.test
        rows, n_bags = sum(len(b.X) for b in bags), sum(len(b.offsets) - 1 for b in bags)
        return {"bags": n_bags, "rows": rows, "columns": bags[0].X.shape[1]}
    if isinstance(drawn, FlowPopulation):
        steps, cells, _ = drawn.edge_tables[0].shape
        numbers = {"populations": len(drawn.edge_tables), "individuals": int(drawn.population_size)}
        return numbers | {"steps": steps + 1, "cells": cells}
    if isinstance(drawn, TablePopulation):
        rows = int(drawn.train.total + drawn.test.total)
        return {"rows": rows, "columns": len(drawn.train.encoder.names)}
    return {}


def types(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): KINDS.get(dtype.kind, "text") for name, dtype in frame.dtypes.items()}
