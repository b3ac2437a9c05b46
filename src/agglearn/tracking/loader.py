"""How MLflow opens a model kept by agglearn: no pickle, the class is named in `model.json`."""

from agglearn.estimator import Estimator


def _load_pyfunc(path):
    return Predictor(path)


class Predictor:
    """`predict(frame)` gives P(label = 1) for every row."""

    def __init__(self, path):
        self.model = Estimator.load(path)

    def predict(self, model_input, params=None):
        return self.model.predict_proba(model_input)[:, 1]
