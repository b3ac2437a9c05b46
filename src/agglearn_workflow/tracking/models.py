"""Kept models as MLflow's logged models, with signature and example. `model.json` names the class: no pickle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.entities import Metric
from mlflow.models import ModelSignature
from mlflow.types.schema import ColSpec, Schema, TensorSpec

from agglearn import __version__
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn_workflow.tracking.entry import Entry

# MLflow's types
PYTHON: dict[str, Callable] = {"long": int, "double": float, "boolean": "True".__eq__, "string": str}


class Predictor:
    def __init__(self, path: Path | str):
        self.model: Any = Estimator.load(path)

    def predict(self, model_input: pd.DataFrame, params: dict | None = None) -> np.ndarray:
        """(n,) probabilities of the label 1."""
        return self.model.predict_proba(model_input)[:, 1]


_load_pyfunc = Predictor  # MLflow calls it to open a model


def log_model(entry: Entry, run: str) -> str:
    """Send the model of an entry as an output of its run, which has ended, and return the model's number."""
    signature, example = signature_and_example(entry)
    with mlflow.start_run(run_id=run, log_system_metrics=False):
        return mlflow.pyfunc.log_model(
            name=f"{entry.params['method']} on {entry.params['dataset']}",
            loader_module=__name__,
            data_path=str(entry.model),
            signature=signature,
            input_example=example,
            pip_requirements=[f"agglearn=={__version__}"],
            params=entry.params,
            model_type="classifier",
        ).model_id


def bind(metrics: list[Metric], entry: Entry, run: str, model: str) -> list[Metric]:
    """Metrics of a run that are those of a model too, on the data of the entry."""
    used = [i.dataset for i in entry.inputs[:1]]
    data = {"dataset_name": used[0].name, "dataset_digest": used[0].digest} if used else {}
    return [Metric(m.key, m.value, m.timestamp, m.step, model_id=model, run_id=run, **data) for m in metrics]


def signature_and_example(entry: Entry) -> tuple[ModelSignature, pd.DataFrame] | tuple[None, None]:
    """(None, None) if the model does not predict from records, or its class is not ours: it is not loaded then."""
    try:
        model: Any = Estimator.load(str(entry.model))
    except DataError:
        return None, None
    features = model.encoder_.features if hasattr(model, "predict_proba") and hasattr(model, "encoder_") else ()
    if not features or {feature.name for feature in features} - entry.types.keys():
        return None, None
    inputs = Schema([ColSpec(entry.types[feature.name], feature.name) for feature in features])
    outputs = Schema([TensorSpec(np.dtype(float), (-1,))])
    example = {feature.name: [_example(feature, entry.types[feature.name])] for feature in features}
    return ModelSignature(inputs, outputs), pd.DataFrame(example)


def _example(feature: Any, kind: str) -> int | float | bool | str:
    """A value that an encoder has learned, or 0 where it holds none."""
    values = getattr(feature, "edges", ()) or getattr(feature, "values", ()) or ("0",)
    middle = values[len(values) // 2]
    return int(float(middle)) if kind == "long" and not isinstance(middle, str) else PYTHON[kind](middle)
