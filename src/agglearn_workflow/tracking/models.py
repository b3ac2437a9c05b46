"""Kept models as MLflow's logged models, with signature and example. `model.json` names the class: no pickle."""

from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.entities import Metric
from mlflow.models import infer_signature

from agglearn import __version__
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn_workflow.tracking.entry import Entry

DTYPES = {"integer": "int64", "number": "float64", "boolean": "bool", "text": "str"}  # of the columns of records


class Predictor:
    def __init__(self, path: Path | str):
        self.model: Any = Estimator.load(path)

    def predict(self, model_input: pd.DataFrame, params: dict | None = None) -> np.ndarray:
        """(n,) probabilities of the label 1."""
        return self.model.predict_proba(model_input)[:, 1]


_load_pyfunc = Predictor  # MLflow calls it to open a model


def log_model(entry: Entry, run: str) -> str:
    """Send the model of an entry as an output of its run, which has ended, and return the model's number."""
    example = example_of(entry)
    signature = None if example is None else infer_signature(example, Predictor(str(entry.model)).predict(example))
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


def example_of(entry: Entry) -> pd.DataFrame | None:
    """A record of values that the encoder has learned, 0 where it holds none. None if the model does not predict from records, or
    its class is not ours: it is not loaded then."""
    try:
        model: Any = Estimator.load(str(entry.model))
    except DataError:
        return None
    features = model.encoder_.features if hasattr(model, "predict_proba") and hasattr(model, "encoder_") else ()
    if not features or {feature.name for feature in features} - entry.types.keys():
        return None
    values = {f.name: getattr(f, "edges", ()) or getattr(f, "values", ()) or ("0",) for f in features}
    example = pd.DataFrame({name: [several[len(several) // 2]] for name, several in values.items()})
    return example.astype({name: DTYPES[entry.types[name]] for name in values})
