"""Kept models as MLflow's logged models, with their signature and an example of their input."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from agglearn import __version__
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.tracking.entry import Entry

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.models import ModelSignature

PYTHON: dict[str, Callable[[Any], int | float | bool | str]] = {
    "long": int,
    "double": float,
    "boolean": "True".__eq__,
    "string": str,
}  # MLflow's types


def log_model(client: "MlflowClient", experiment_id: str, run: str, entry: Entry) -> str:
    """Send the model of an entry and return its number. It is ready when all of it is there.

    Parameters
    ----------
    run : str
        Number of the entry's run, which the model is then an output of.
    """
    import mlflow.pyfunc
    from mlflow.entities import LoggedModelOutput
    from mlflow.models import Model

    name = f"{entry.params['method']} on {entry.params['dataset']}"
    logged = client.create_logged_model(experiment_id, name, run, params=entry.params, model_type="classifier")
    signature, example = signature_and_example(entry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        mlflow.pyfunc.save_model(
            path,
            loader_module="agglearn.tracking.loader",
            data_path=str(entry.model),
            mlflow_model=Model(artifact_path=logged.artifact_location, run_id=run, model_id=logged.model_id),
            signature=signature,
            input_example=example,
            pip_requirements=[f"agglearn=={__version__}"],
        )
        client.log_model_artifacts(logged.model_id, str(path))
    client.log_outputs(run, [LoggedModelOutput(logged.model_id, step=0)])
    client.finalize_logged_model(logged.model_id, "READY")
    return logged.model_id


def bind(metrics: list, entry: Entry, run: str, model: str) -> list:
    """Metrics of a run that are those of a model too, on the data of the entry."""
    from mlflow.entities import Metric

    data = {"dataset_name": d.name, "dataset_digest": d.digest} if (d := next(iter(entry.inputs), None)) else {}
    return [Metric(m.key, m.value, m.timestamp, m.step, model_id=model, run_id=run, **data) for m in metrics]


def signature_and_example(entry: Entry) -> "tuple[ModelSignature, pd.DataFrame] | tuple[None, None]":
    """Signature of a model, and a record that it takes: types are those of its data, values those of its encoder.

    Both are None for a model that does not predict from records, and for one of a class outside this package, which is not loaded.
    """
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec, Schema, TensorSpec

    types = {column["name"]: column["type"] for data in entry.inputs for column in data.columns}
    if entry.model is None:
        return None, None
    try:
        model: Any = Estimator.load(entry.model)
    except DataError:
        return None, None
    features = model.encoder_.features if hasattr(model, "predict_proba") and hasattr(model, "encoder_") else ()
    if not features or {feature.name for feature in features} - types.keys():
        return None, None
    inputs = Schema([ColSpec(types[feature.name], feature.name) for feature in features])
    outputs = Schema([TensorSpec(np.dtype(float), (-1,))])
    example = {feature.name: [_example(feature, types[feature.name])] for feature in features}
    return ModelSignature(inputs, outputs), pd.DataFrame(example)


def _example(feature: Any, kind: str) -> int | float | bool | str:
    """A value that an encoder has learned, or 0 where it holds none."""
    values = getattr(feature, "edges", ()) or getattr(feature, "values", ()) or ("0",)
    middle = values[len(values) // 2]
    return int(float(middle)) if kind == "long" and not isinstance(middle, str) else PYTHON[kind](middle)
