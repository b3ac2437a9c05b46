"""Curves (`step`) and values per colour (`keys`). A method whose numbers can be computed by hand: rates of groups of records, in stages."""

from typing import ClassVar

import numpy as np

from agglearn.estimator import RecordClassifier
from agglearn.observations import Records
from agglearn.tasks import Classification, Measurement


class Ledger(Classification):
    """Classification of records that lie on legs between places: measures of each colour besides."""

    MEASURES: ClassVar = dict.fromkeys(("nllh", "auc", "curve", "right"), ("", "higher"))
    MEASURES |= {"log_loss": ("nat", "lower")}
    KEYS: ClassVar = ("colour",)

    def measure(self, estimator, truth, measures):
        yield from super().measure(estimator, truth, measures)
        frame, y = truth.frame, truth.y
        p = estimator.predict_proba(frame)[:, 1]
        yield Measurement("right", float(np.mean((p > 0.5) == y)))
        for colour in sorted(set(frame["colour"])):
            here = (frame["colour"] == colour).to_numpy()
            yield Measurement("right", float(np.mean((p > 0.5)[here] == y[here])), {"colour": colour})


class Rates(RecordClassifier):
    """The rate of label 1 in each group of a column, with `prior` more records, half of which have label 1; one group without a column.

    Stage k of four rests on the first k quarters of the records, and on a prior of four records. Learned state names the
    records that were trained and tested.
    """

    observes = Records

    column: str = "leg"
    prior: float = 1.0

    def _fit(self, observation):
        frame, y = observation.frame, observation.y
        self.encoder_, self.classes_ = observation.encoder, np.array([0, 1])
        self.trained_, self.tested_ = list(frame.get("id", [])), []
        self.rates_ = self._rates(frame, y, self.prior)
        self.stages_ = [self._rates(frame[:n], y[:n], 4.0) for n in (len(y) * k // 4 for k in (1, 2, 3, 4))]

    def _rates(self, frame, y, prior) -> dict[str, float]:
        groups = self._groups(frame)
        sizes = {g: (groups == g).sum() for g in set(groups)}
        return {g: float((y[groups == g].sum() + prior / 2) / (n + prior)) for g, n in sizes.items()}

    def _groups(self, frame):
        return frame[self.column].to_numpy(dtype=str) if self.column else np.full(len(frame), "all")

    def predict_proba(self, X):
        self.tested_ = list(X.get("id", []))
        return self._predicted(X, self.rates_)

    def staged_predict_proba(self, X):
        for k, rates in enumerate(self.stages_, 1):
            yield k, k / 8, self._predicted(X, rates)[:, 1]

    def _predicted(self, X, rates):
        p = np.array([rates.get(g, 0.5) for g in self._groups(X)])
        return np.column_stack([1 - p, p])
