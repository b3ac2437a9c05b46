"""Binary classification of records: learn from what is observed of training rows, judge on test rows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.datasets import Dataset, Population, RecordStore
from agglearn.errors import DataError, NotAvailable
from agglearn.evaluation import auc, brier, calibration_error, log_loss, normalized_log_likelihood
from agglearn.evaluation.interactions import pair_interactions
from agglearn.observations import ContingencyTables, CountedBags, Halves, LabelSums, Observation, Records
from agglearn.observations.feature_store import load_features, save_features
from agglearn.settings import check
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.keys import (
    CountedBagKeys,
    LabelSumHalvesKeys,
    LabelSumKeys,
    RecordKeys,
    RowKeys,
    TableHalvesKeys,
    TableKeys,
)
from agglearn.tasks.observers import ENCODING, OBSERVERS, Rows, fitted_encoder
from agglearn.tasks.splitting import split_name, split_overlap, split_rows

STAGED = {"curve", "nllh_best_on_test", "nllh_best_on_validation"}
MOST_SHOWN = 5  # values of a feature whose predictions are shown one by one


@dataclass(frozen=True)
class HeldOutRows(Truth):
    """Held-out records, and what is known of the process behind them.

    Attributes
    ----------
    frame, y : raw features and int8 labels of the test rows.
    probabilities : their true P(Y = 1 | x), for simulated data.
    parameters : true parameters, for simulated data.
    """

    frame: pd.DataFrame
    y: np.ndarray
    probabilities: np.ndarray | None = None
    parameters: dict[str, np.ndarray] | None = None
    shares_features: ClassVar[bool] = True

    def save(self, folder: Path, features=None) -> None:
        where = save_features(self.frame, folder, features)
        arrays = {"y": self.y, "features": where}
        arrays |= {f"parameter_{k}": v for k, v in (self.parameters or {}).items()}
        if self.probabilities is not None:
            arrays["probabilities"] = self.probabilities
        np.savez(folder / "truth.npz", **arrays)

    @classmethod
    def load(cls, folder: Path) -> Self:
        with np.load(folder / "truth.npz") as arrays:
            known = {k: arrays[k] for k in arrays.files}
        parameters = {k.removeprefix("parameter_"): v for k, v in known.items() if k.startswith("parameter_")}
        frame = load_features(folder, {"features": str(known["features"])})
        return cls(frame, known["y"], known.get("probabilities"), parameters or None)

    def units(self) -> list[np.ndarray]:
        return [self.y] if self.probabilities is None else [self.y, self.probabilities]


class Classification(Task):
    """Observations of training rows; test rows are judged.

    Parameters of an observation: `binning` (default: the data set's, else deciles), `pairs` (contingency tables),
    `hashed` ({column: buckets}), `max_modalities` (leave out features with more, or hash them into `buckets` where that is
    given and not 0; their names stand in the log), `cross_buckets` (tables of pairs with more cells are hashed into so
    many). Of contingency tables only: `gaussian_noise` (σ, seeded) or `noise_share` (σ per training record), and
    `encode_noisy` ({above, modalities}: features of more values are encoded by what the noisy tables say of them).
    Of label sums: `features` (`onehot`, `quadratic`, `scaled`), `ranges` (see `FeatureMap.fit`), `calibration`,
    `sensitivity`. Of counted bags: `bag_size`. Of all three: `epsilon` (seeded noise that would promise it; none without),
    `delta` (default 1/(10 N)), `mechanism`; of tables `split`, `adjacency`, `postprocessing`, see `release_tables`.
    Of halves: `of` (`tables`, `label_sums`) and what these take.
    Parameters of a stored data set: `rows` (a random subset of that size). An entry's `encoding: {target: …}` or
    `{vocabulary: …}` sets training rows aside for it.
    """

    OBSERVATIONS: ClassVar = (
        (Dataset, ContingencyTables, RowKeys, TableKeys),
        (Dataset, CountedBags, RowKeys, CountedBagKeys),
        (Dataset, Halves, RowKeys, TableHalvesKeys),
        (Dataset, Halves, RowKeys, LabelSumHalvesKeys),
        (Dataset, LabelSums, RowKeys, LabelSumKeys),
        (Dataset, Records, RowKeys, RecordKeys),
    )
    MEASURES: ClassVar = {
        "nllh": ("", "higher"),
        "log_loss": ("nat", "lower"),
        "auc": ("", "higher"),
        "brier": ("", "lower"),
        "calibration_error": ("", "lower"),
        "nllh_best_on_test": ("", "higher"),
        "nllh_best_on_validation": ("", "higher"),
        "prediction": ("", ""),
        "curve": ("", "higher"),
        "probability_rmse": ("", "lower"),
        "theta_error": ("", "lower"),
        "coefficient": ("", ""),
        "gradient_error": ("", "lower"),
    }
    truth: ClassVar = HeldOutRows

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        self.check_observation(kind, params)
        if isinstance(source.data, RecordStore):
            check(RowKeys, source.params, source.name)
        (frame, y), test = split_records(source, seed)
        encoder, kept = _encoder_of(source, frame, y, params, seed)
        frame, y = frame[kept].reset_index(drop=True), y[kept]
        label = source.entry.get("label", {}).get("column", "label")
        return OBSERVERS[kind](Rows(source, encoder, frame[encoder.names], y, label), params, seed), test

    def overlap(self, source: Source) -> float:
        return split_overlap(source)

    def measure(self, estimator, truth: HeldOutRows, measures: list[str]) -> Iterator[Measurement]:
        y = truth.y
        p = estimator.predict_proba(truth.frame)[:, 1]
        scores = {"nllh": normalized_log_likelihood, "log_loss": log_loss, "auc": auc, "brier": brier,
                  "calibration_error": calibration_error}  # fmt: skip
        for name, score in scores.items():
            if name in measures:
                yield Measurement(name, score(y, p))
        if "prediction" in measures:
            yield from _predictions(truth.frame, p)
        if STAGED & set(measures) and hasattr(estimator, "staged_predict_proba"):
            yield from _stages(estimator, truth, measures)
        if "probability_rmse" in measures and truth.probabilities is not None:
            yield Measurement("probability_rmse", float(np.sqrt(np.mean((p - truth.probabilities) ** 2))))
        if "coefficient" in measures:
            for name, value in zip(estimator.coef_names_, estimator.coef_, strict=True):
                yield Measurement("coefficient", float(value), item=name)
        if "gradient_error" in measures and len(getattr(estimator, "gradient_errors_", ())):
            yield Measurement("gradient_error", float(estimator.gradient_errors_[-1, 1]))
            for step, error in estimator.gradient_errors_:
                yield Measurement("gradient_error", float(error), step=float(step))
        if "theta_error" in measures and truth.parameters and np.ndim(getattr(estimator, "theta_", 0)) == 2:
            yield Measurement("theta_error", _theta_error(estimator, truth.parameters["theta"]))


def split_records(source: Source, seed: int):
    """(training frame, labels) and the test rows, by the data set's official split or by the seed."""
    data = source.data
    train, test = split_rows(source, seed)
    if isinstance(data, Population):
        part = lambda r: (data.frame.iloc[r].reset_index(drop=True), data.y[r])  # noqa: E731
        return part(train), HeldOutRows(*part(test), data.probabilities[test], data.parameters)
    written = (data.folder / "features.parquet").stat().st_mtime_ns
    said = [split_name(source), source.entry.get("split"), source.params]
    key = (str(data.folder), written, json.dumps(said, sort_keys=True), seed)
    if key in _SPLITS:  # many observations of one split
        return _SPLITS[key]
    frame, y = data.features(), data.labels()
    take = lambda r: (frame.iloc[r].reset_index(drop=True), y[r])  # noqa: E731
    for name, rows in (("training", train), ("test", test)):
        if len(np.unique(y[rows])) < 2:
            raise DataError(f"{source.name}: all {len(rows)} {name} rows have the same label; use more rows")
    if len(_SPLITS) >= KEPT_SPLITS:
        _SPLITS.clear()
    _SPLITS[key] = take(train), HeldOutRows(*take(test))
    return _SPLITS[key]


_SPLITS: dict = {}  # of this process, which observes one data set
KEPT_SPLITS = 5


class SubsetClassification(Classification):
    """Observes as `Classification` does; each subset's model is judged on the test rows (`item`: its features)."""

    MEASURES: ClassVar = {"nllh": ("", "higher")}

    def measure(self, estimator, truth: HeldOutRows, measures: list[str]) -> Iterator[Measurement]:
        for names, p in estimator.subset_predict_proba(truth.frame):
            yield Measurement("nllh", normalized_log_likelihood(truth.y, p), item=", ".join(names))


def _encoder_of(source: Source, frame: pd.DataFrame, y: np.ndarray, params: dict, seed: int):
    """`fitted_encoder`, once for all observations of a split that are encoded alike."""
    how = {k: params.get(k) for k in ENCODING}, {k: source.entry.get(k) for k in ("binning", "encoding", "features")}
    key = id(frame), json.dumps(how, sort_keys=True)  # the frame is kept, so that no other one has its address
    if key not in _ENCODERS:
        if len(_ENCODERS) >= KEPT_ENCODERS:
            _ENCODERS.clear()
        _ENCODERS[key] = frame, fitted_encoder(source, frame, y, params, seed)
    return _ENCODERS[key][1]


_ENCODERS: dict = {}  # of the frames in `_SPLITS`
KEPT_ENCODERS = 10


def _predictions(frame: pd.DataFrame, p: np.ndarray) -> Iterator[Measurement]:
    """Mean prediction for every value of every feature that has few."""
    for name in frame:
        if frame[name].nunique() <= MOST_SHOWN:
            for value, mean in pd.Series(p).groupby(frame[name].to_numpy()).mean().items():
                yield Measurement("prediction", float(mean), item=f"{name} = {value}")


def _stages(estimator, truth: HeldOutRows, measures: list[str]) -> Iterator[Measurement]:
    """Curves, and the choice of a stage by held-out records, from an estimator's staged predictions.

    `nllh_best_on_test` is the best stage's score on the records that chose it, as a paper may print it;
    `nllh_best_on_validation` chooses on one half of these records and scores on the other, both ways, and averages.
    """
    half = np.arange(len(truth.y)) % 2 == 0
    whole, first, second = [], [], []
    for step, seconds, p in _staged(estimator, truth.frame):
        whole.append(normalized_log_likelihood(truth.y, p))
        first.append(normalized_log_likelihood(truth.y[half], p[half]))
        second.append(normalized_log_likelihood(truth.y[~half], p[~half]))
        if "curve" in measures:
            yield Measurement("nllh", whole[-1], step=step)
            yield Measurement("seconds", seconds, step=step, unit="s")
    if whole and "nllh_best_on_test" in measures:
        yield Measurement("nllh_best_on_test", max(whole))
    if whole and "nllh_best_on_validation" in measures:
        scores = second[int(np.argmax(first))], first[int(np.argmax(second))]
        yield Measurement("nllh_best_on_validation", float(np.mean(scores)))


def _staged(estimator, frame: pd.DataFrame) -> Iterator[tuple[float, float, np.ndarray]]:
    """Stages of an estimator; none where it kept none."""
    try:
        yield from estimator.staged_predict_proba(frame)
    except NotAvailable:
        return


def _theta_error(estimator, truth: np.ndarray) -> float:
    """‖θ̂ − θ‖ / ‖θ‖ over pair interactions, which do not depend on how weights are spread."""
    sizes = estimator.encoder_.sizes
    if truth.shape != estimator.theta_.shape:
        return float("nan")  # a modality never drawn has no estimate
    found, true = pair_interactions(estimator.theta_, sizes), pair_interactions(truth, sizes)
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))
