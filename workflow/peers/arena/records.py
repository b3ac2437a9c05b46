"""What rivals get: records with a budget, and public records that choose settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Required

import numpy as np
import pandas as pd

from agglearn.datasets import Dataset
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.estimator import Estimator, RecordClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.observations import Observation, Records
from agglearn.seeds import derive_generator, split_validation
from agglearn.settings import Count, Positive
from agglearn.tasks import Classification, TaskInput
from agglearn.tasks.base import Kind
from agglearn.tasks.classification import HeldOutRows
from agglearn.tasks.keys import EncodedKeys, RowKeys
from agglearn.tasks.measures import Measurements


@dataclass(frozen=True)
class PrivateRecords(Observation):
    """Records of which a mechanism may release what keeps (ε, δ), where neighbours differ in one record more or less.

    Parameters
    ----------
    encoder, frame, y : FrameEncoder, DataFrame, ndarray of shape (n,)
        The declared modalities, (n,) rows of raw features, and their labels in {0, 1}.
    public_frame, public_y : DataFrame, ndarray of shape (m,)
        Further rows that nothing protects. They choose settings after a release.
    epsilon, delta : float
    """

    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    public_frame: pd.DataFrame
    public_y: np.ndarray
    epsilon: float
    delta: float

    @property
    def codes(self) -> np.ndarray:
        """(n, D) codes of the features."""
        return self.encoder.encode(self.frame)


class BudgetKeys(EncodedKeys, total=False):
    epsilon: Required[Positive]
    public: Count


class Arena(Classification):
    """`Classification`, also from private records, of which `public` (1,000) training rows are public.

    A rival with several `heads_`, models of what it released, is measured by each (key `head`, but for the first one).
    """

    OBSERVATIONS: ClassVar = (*Classification.OBSERVATIONS, (Dataset, PrivateRecords, RowKeys, BudgetKeys))
    KEYS: ClassVar[tuple[str, ...]] = (*Classification.KEYS, "head")

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, HeldOutRows]:
        if kind is not PrivateRecords:
            return super().observe(inputs, kind, params, seed)
        self.check_observation(inputs, kind, params)
        encoding = {k: v for k, v in params.items() if k not in ("epsilon", "public")}
        records, test = super().observe(inputs, Records, encoding, seed)
        n = len(records.y)
        share = min(params.get("public", 1000) / n, 0.5)
        public, private = split_validation(n, share, derive_generator("public records", inputs.name, seed))
        return take(records, private, public, params["epsilon"], 1 / (10 * len(private))), test

    def measure(self, estimator: Estimator, truth: HeldOutRows, measures: list[str]) -> Measurements:
        for name, head in getattr(estimator, "heads_", {"": estimator}).items():
            for m in super().measure(head, truth, measures):
                yield replace(m, keys=(m.keys or {}) | {"head": name}) if name else m


def take(records: Records, private: np.ndarray, public: np.ndarray, epsilon: float, delta: float) -> PrivateRecords:
    """Rows of records as private ones, others as public ones."""
    (frame, y), (public_frame, public_y) = (
        (records.frame.iloc[rows].reset_index(drop=True), records.y[rows]) for rows in (private, public)
    )
    return PrivateRecords(records.encoder, frame, y, public_frame, public_y, float(epsilon), float(delta))


class LinearRival(RecordClassifier):
    """P(Y=1|X=x) = σ(φ(x)·θ), φ the indicators of all modalities and a 1. Subclasses set `coef_`."""

    observes: ClassVar = PrivateRecords

    def _set_map(self, encoder: FrameEncoder) -> FeatureMap:
        self._set_encoder(encoder)
        self.map_ = FeatureMap("onehot", encoder)
        return self.map_

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-np.clip(self.map_.matrix(X) @ self.coef_, -50, 50)))


def choose_by_public(
    observation: PrivateRecords, values: Sequence[Any], predict: Callable[[Any, pd.DataFrame], np.ndarray]
) -> Any:
    """The value whose model makes the public labels most likely."""
    frame, y = observation.public_frame, observation.public_y
    return values[choose_best([log_likelihood(y, predict(value, frame)) for value in values])]
