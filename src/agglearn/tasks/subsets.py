"""Classification from every subset of features: one value per subset."""

from collections.abc import Iterator
from typing import ClassVar

from agglearn.evaluation import normalized_log_likelihood
from agglearn.tasks.base import Measurement
from agglearn.tasks.classification import Classification, TestRows


class SubsetClassification(Classification):
    """Observes as `Classification` does; each subset's model is judged on the test rows (`item`: its features)."""

    MEASURES: ClassVar = {"nllh": ("", "higher")}

    def measure(self, estimator, truth: TestRows, measures: list[str]) -> Iterator[Measurement]:
        for names, p in estimator.subset_predict_proba(truth.frame):
            yield Measurement("nllh", normalized_log_likelihood(truth.y, p), item=", ".join(names))
