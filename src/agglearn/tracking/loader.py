"""How MLflow opens a model kept by agglearn: no pickle, the class is named in `model.json`."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agglearn.estimator import Estimator


def _load_pyfunc(path: str) -> "Predictor":
    return Predictor(path)


class Predictor:
    """`predict(frame)` gives P(label = 1) for every row."""

    def __init__(self, path: Path | str):
        self.model: Any = Estimator.load(path)

    def predict(self, model_input: pd.DataFrame, params: dict | None = None) -> np.ndarray:
        """(n,) probabilities of the label 1."""
        return self.model.predict_proba(model_input)[:, 1]
