"""Binary classification: learners get aggregates of training rows and are judged on test rows."""

import contextlib
import json
import logging
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.datasets import Dataset, Population, PublishedTables, RecordStore
from agglearn.datasets.published_tables import TABLES, hash_pairs
from agglearn.encoding import FeatureMap, FrameEncoder, HashedEncoder, TargetEncoder
from agglearn.encoding.frame import with_declared_domains, with_rare_values_grouped, with_target_encodings
from agglearn.errors import ConfigError, NotAvailable
from agglearn.estimator import Estimator
from agglearn.evaluation import auc, brier, calibration_error, log_loss, normalized_log_likelihood
from agglearn.evaluation.interactions import pair_interactions
from agglearn.evaluation.metrics import nllh_of_parts, reliability
from agglearn.observations import (
    ContingencyTables,
    CountedBags,
    Halves,
    LabelSums,
    Observation,
    Records,
    TablesAndSample,
    fill_hidden,
    hide_cells,
)
from agglearn.observations.gaussian_noise import tables_with_noisy_encoding, with_gaussian_noise
from agglearn.observations.halves import toss_coins
from agglearn.observations.release import release_bag_counts
from agglearn.observations.units import unit_rows
from agglearn.privacy import draw_seeded
from agglearn.seeds import derive_generator, derive_seed
from agglearn.tasks import keys
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.measures import Measurement, Measurements, higher, lower, neither, select
from agglearn.tasks.splitting import check_labels, split_name, split_overlap, split_rows

ITERATES = {"curve", "nllh_best_on_test", "nllh_best_on_validation"}
MAX_VALUES = 5  # values of a feature whose predictions are shown one by one


@dataclass(frozen=True)
class HeldOutRows(Truth):
    frame: pd.DataFrame  # raw features
    y: np.ndarray  # (n,) int8 labels
    probabilities: np.ndarray | None = None  # (n,) true P(Y = 1 | x), for simulated data
    parameters: dict[str, np.ndarray] | None = None  # true ones, for simulated data

    def units(self) -> list[np.ndarray]:
        return [self.y] if self.probabilities is None else [self.y, self.probabilities]


class Classification(Task[HeldOutRows]):
    """Observe training rows and judge on test rows.

    Parameters of an observation:

    * all: `binning` (`deciles` or `width`, by default the data set's, else `deciles`), `hashed` ({column: buckets}),
      `cross_buckets` (tables of pairs with more cells are hashed into so many), `max_modalities` (features with more
      are left out, or hashed into `buckets` where that is given and not 0. The log names them).
    * tables: `pairs`, `gaussian_noise` (σ of seeded noise, or `noise_share`, σ per training record), `encode_noisy`
      ({above, modalities}: features with more values are encoded from noisy tables), `split`, `adjacency`,
      `postprocessing` (see `release_tables`), `threshold` (cells of fewer records are hidden), `hidden` (`censored`, or
      `half` of the threshold put in their place), `max_rows` (of each unit, for data sets that name one, or `auto`).
    * label sums: `features` (`onehot`, `quadratic`, `scaled`), `ranges` (`FeatureMap.fit`), `calibration`,
      `sensitivity`, `sample` (random training rows whose features are there, while the sums count all).
    * tables, records, tables and a sample: `sample`, random training rows that are the records, and not in the tables.
    * counted bags: `bag_size`. Halves: `of` (`tables`, `label_sums`) and the parameters of these.
    * tables, label sums and counted bags: `epsilon` (a release's noise, drawn by the seed, none without it), `delta`
      (default 1/(10 N)), `mechanism`.

    A stored data set has `rows`, the size of a random subset (of units, where its entry names one). With `encoding:
    {target: …}` or `{vocabulary: …}` of its entry, the encoding is fitted to training rows of its own. Tables of a
    `PublishedTables` data set are the published ones. Its records are its training rows.
    """

    OBSERVATIONS: ClassVar = (
        (PublishedTables, ContingencyTables, keys.NoKeys, keys.PublishedTableKeys),
        (PublishedTables, Records, keys.NoKeys, keys.RecordKeys),
        (Dataset, ContingencyTables, keys.RowKeys, keys.UnitTableKeys),
        (Dataset, CountedBags, keys.RowKeys, keys.CountedBagKeys),
        (Dataset, Halves, keys.RowKeys, keys.TableHalvesKeys),
        (Dataset, Halves, keys.RowKeys, keys.LabelSumHalvesKeys),
        (Dataset, LabelSums, keys.RowKeys, keys.SampledLabelSumKeys),
        (Dataset, Records, keys.RowKeys, keys.RecordKeys),
        (Dataset, TablesAndSample, keys.RowKeys, keys.UnitTableKeys),
    )
    MEASURES: ClassVar = (
        higher("nllh", "nllh_of_part", "auc", "nllh_best_on_test", "nllh_best_on_validation", "curve")
        | lower("brier", "calibration_error", "probability_rmse", "theta_error", "gradient_error")
        | lower("log_loss", unit="nat")
        | neither("prediction", "coefficient", "prediction_of_tenth", "rate_of_tenth")
    )
    KEYS: ClassVar[tuple[str, ...]] = ("coefficient", "feature", "modality", "part", "tenth")
    truth: ClassVar = HeldOutRows

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, HeldOutRows]:
        self.check_observation(inputs, kind, params)
        (frame, y), test = split_records(inputs, seed)
        if kind is ContingencyTables and (tables := published_tables(inputs, params.get("cross_buckets"))):
            return tables, test
        encoder, mask = _encoder_of(inputs, frame, y, params, seed)
        frame, y = frame[mask].reset_index(drop=True), y[mask]
        label, unit = inputs.entry.get("label", {}).get("column", "label"), inputs.entry.get("unit")
        rows = TrainingRows(inputs, encoder, frame[encoder.names], y, label, frame[unit] if unit else None)
        return OBSERVERS[kind](rows, params, seed), test

    def overlap(self, inputs: TaskInput) -> float:
        return split_overlap(inputs)

    def measure(self, estimator: Estimator, truth: HeldOutRows, measures: list[str]) -> Measurements:
        y = truth.y
        p = estimator.predict_proba(truth.frame)[:, 1]
        scores = {"nllh": normalized_log_likelihood, "log_loss": log_loss, "auc": auc, "brier": brier,
                  "calibration_error": calibration_error}  # fmt: skip
        for name, score in scores.items():
            if name in measures:
                yield Measurement(name, score(y, p))
        for k, value in enumerate(nllh_of_parts(y, p) if "nllh_of_part" in measures else ()):
            yield Measurement("nllh_of_part", float(value), keys={"part": k})
        for k, (prediction, rate, size) in enumerate(zip(*reliability(y, p), strict=True), start=1):
            if size:
                values = {"prediction_of_tenth": float(prediction), "rate_of_tenth": float(rate)}
                yield from select(measures, values, {"tenth": k})
        if "prediction" in measures:
            yield from _predictions(truth.frame, p)
        if ITERATES & set(measures) and hasattr(estimator, "staged_predict_proba"):
            yield from _iterates(estimator, truth, measures)
        if "probability_rmse" in measures and truth.probabilities is not None:
            yield Measurement("probability_rmse", float(np.sqrt(np.mean((p - truth.probabilities) ** 2))))
        if "coefficient" in measures:
            for name, value in zip(estimator.coef_names_, estimator.coef_, strict=True):
                yield Measurement("coefficient", float(value), keys={"coefficient": name})
        if "gradient_error" in measures and len(getattr(estimator, "gradient_errors_", ())):
            yield Measurement("gradient_error", float(estimator.gradient_errors_[-1, 1]))
            for step, error in estimator.gradient_errors_:
                yield Measurement("gradient_error", float(error), step=float(step))
        if "theta_error" in measures and truth.parameters and np.ndim(getattr(estimator, "theta_", 0)) == 2:
            yield Measurement("theta_error", _theta_error(estimator, truth.parameters["theta"]))


def split_records(inputs: TaskInput, seed: int) -> tuple[tuple[pd.DataFrame, np.ndarray], HeldOutRows]:
    """(training frame, labels) and the test rows, by the official split of the data set or by the seed."""
    data = inputs.data
    train, test = split_rows(inputs, seed)
    if isinstance(data, Population):
        truth = HeldOutRows(*_take(data.frame, data.y, test), data.probabilities[test], data.parameters)
        return _take(data.frame, data.y, train), truth
    written = (data.folder / "features.parquet").stat().st_mtime_ns
    settings = [split_name(inputs), inputs.entry.get("split"), inputs.params]
    key = (str(data.folder), written, json.dumps(settings, sort_keys=True), seed)
    if key not in _SPLITS:  # many observations of one split
        frame, y = data.features(), data.labels()
        check_labels(inputs.name, y, train, test)
        if len(_SPLITS) >= MAX_SPLITS:
            _SPLITS.clear()
        _SPLITS[key] = _take(frame, y, train), HeldOutRows(*_take(frame, y, test))
    return _SPLITS[key]


def _take(frame: pd.DataFrame, y: np.ndarray, rows: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    return frame.iloc[rows].reset_index(drop=True), y[rows]


_SPLITS: dict[tuple, tuple[tuple[pd.DataFrame, np.ndarray], HeldOutRows]] = {}  # one process observes one data set
MAX_SPLITS = 5


class SubsetClassification(Classification):
    """Observe as `Classification` does, and judge the model of each subset (key `features`) on the test rows."""

    MEASURES: ClassVar = {"nllh": ("", "higher")}
    KEYS: ClassVar[tuple[str, ...]] = ("features",)

    def measure(self, estimator: Estimator, truth: HeldOutRows, measures: list[str]) -> Measurements:
        for names, p in estimator.subset_predict_proba(truth.frame):
            yield Measurement("nllh", normalized_log_likelihood(truth.y, p), keys={"features": list(names)})


def _encoder_of(
    inputs: TaskInput, frame: pd.DataFrame, y: np.ndarray, params: dict, seed: int
) -> tuple[FrameEncoder, np.ndarray]:
    options = [params.get(k) for k in ENCODING], [inputs.entry.get(k) for k in ("binning", "encoding", "features")]
    key = id(frame), json.dumps(options, sort_keys=True)  # the entry holds the frame, so that its address stays its own
    if key not in _ENCODERS:
        if len(_ENCODERS) >= MAX_ENCODERS:
            _ENCODERS.clear()
        _ENCODERS[key] = frame, fit_encoder(inputs, frame, y, params, seed)
    return _ENCODERS[key][1]


_ENCODERS: dict[tuple[int, str], tuple] = {}  # of the frames in `_SPLITS`
MAX_ENCODERS = 10


def _predictions(frame: pd.DataFrame, p: np.ndarray) -> Measurements:
    for name in frame:
        if frame[name].nunique() <= MAX_VALUES:
            for value, mean in pd.Series(p).groupby(frame[name].to_numpy()).mean().items():
                yield Measurement("prediction", float(mean), keys={"feature": name, "modality": str(value)})


def _iterates(estimator: Estimator, truth: HeldOutRows, measures: list[str]) -> Measurements:
    """Curves, and the score of the iterate chosen on the same records (`…_on_test`) or on halves in turn."""
    half = np.arange(len(truth.y)) % 2 == 0
    every, first, second = [], [], []
    with contextlib.suppress(NotAvailable):  # where the estimator kept no iterates
        for step, seconds, p in estimator.staged_predict_proba(truth.frame):
            every.append(normalized_log_likelihood(truth.y, p))
            first.append(normalized_log_likelihood(truth.y[half], p[half]))
            second.append(normalized_log_likelihood(truth.y[~half], p[~half]))
            if "curve" in measures:
                yield Measurement("nllh", every[-1], step=step)
                yield Measurement("seconds", seconds, step=step, unit="s")
    if every:
        scores = second[int(np.argmax(first))], first[int(np.argmax(second))]
        best = {"nllh_best_on_test": max(every), "nllh_best_on_validation": float(np.mean(scores))}
        yield from select(measures, best)


def _theta_error(estimator: Estimator, truth: np.ndarray) -> float:
    """‖θ̂ − θ‖ / ‖θ‖ over pair interactions, which are identifiable."""
    sizes = estimator.encoder_.sizes
    if truth.shape != estimator.theta_.shape:
        return float("nan")  # a modality that was never drawn has no estimate
    estimated, true = pair_interactions(estimator.theta_, sizes), pair_interactions(truth, sizes)
    return float(np.linalg.norm(estimated - true) / np.linalg.norm(true))


# -- observations of training rows: encoded, aggregated, with the noise that an experiment asks for -------------------

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingRows:
    inputs: TaskInput
    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    label: str
    owners: pd.Series | None = None  # whose each row is

    def take(self, rows: np.ndarray) -> Self:
        owners = None if self.owners is None else self.owners.iloc[rows].reset_index(drop=True)
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), y=self.y[rows], owners=owners)

    def sampled(self, sample: int | None, seed: int | str, inside: bool) -> Self:
        """A random sample of the rows, or those outside it. All rows where there is no sample."""
        if sample is None:
            return self
        if not 2 <= sample < len(self.y):
            raise ConfigError(
                f"observe: sample must be between 2 and {len(self.y) - 1} of the training rows, got {sample}"
            )
        order = derive_generator("sample", split_name(self.inputs), seed).permutation(len(self.y))
        return self.take(np.sort(order[:sample] if inside else order[sample:]))


def _tables_and_sample(rows: TrainingRows, params: dict, seed: int | str) -> TablesAndSample:
    if "sample" not in params:
        raise ConfigError("observe: tables and a sample need the sample's size; write sample: 1000")
    return TablesAndSample(_tables(rows, params, seed), _records(rows, params, seed))


def _records(rows: TrainingRows, params: dict, seed: int | str) -> Records:
    rows = rows.sampled(params.get("sample"), seed, inside=True)
    return Records(rows.encoder, rows.frame, rows.y, rows.label, params.get("cross_buckets"))


def _tables(rows: TrainingRows, params: dict, seed: int | str) -> ContingencyTables:
    rows = rows.sampled(params.get("sample"), seed, inside=False)
    encoder, y, name = rows.encoder, rows.y, rows.inputs.name
    codes, pairs = encoder.encode(rows.frame), params.get("pairs", "all")
    sigma = params.get("gaussian_noise") or params.get("noise_share", 0) * len(y)
    noise_seed = derive_seed("gaussian noise", name, seed)
    if noisy := params.get("encode_noisy"):
        limits = noisy["above"], noisy["modalities"]
        return tables_with_noisy_encoding(encoder, codes, y, sigma, noise_seed, *limits, rows.label, pairs)
    if (max_rows := params.get("max_rows")) and rows.owners is None:
        raise ConfigError(f"observe: max_rows needs a data set whose entry names a unit; {name} has none")
    options = rows.label, pairs, params.get("cross_buckets")
    make = lambda counted: ContingencyTables.from_codes(encoder, codes[counted], y[counted], *options)  # noqa: E731
    tables = unit_rows(rows.owners, max_rows).count(make)
    if release := _release(rows, params, seed, "split", "adjacency", "postprocessing"):
        return tables.private(**release)
    if threshold := params.get("threshold"):
        tables = hide_cells(tables, threshold)
        return fill_hidden(tables, threshold / 2) if params.get("hidden") == "half" else tables
    return with_gaussian_noise(tables, sigma, noise_seed)


def published_tables(inputs: TaskInput, cross_buckets: int | None) -> ContingencyTables | None:
    """The tables that a publisher released, hashed by `cross_buckets`, or None where the data set has none."""
    if not isinstance(inputs.data, RecordStore) or not (folder := inputs.data.folder / TABLES).exists():
        return None
    tables = ContingencyTables.load(folder)
    return hash_pairs(tables, cross_buckets) if cross_buckets else tables


def _map(rows: TrainingRows, params: dict) -> FeatureMap:
    return FeatureMap.fit(params.get("features", "onehot"), rows.encoder, rows.frame, params.get("ranges"))


def _label_sums(rows: TrainingRows, params: dict, seed: int | str, feature_map: FeatureMap | None = None) -> LabelSums:
    sums = LabelSums.from_map(feature_map or _map(rows, params), rows.frame, rows.y, label=rows.label)
    release = _release(rows, params, seed, "calibration", "sensitivity")
    sums = sums.private(**release) if release else sums
    if "sample" not in params:
        return sums
    return replace(sums, frame=rows.sampled(params["sample"], seed, inside=True).frame, n_records=len(rows.y))


def _counted_bags(rows: TrainingRows, params: dict, seed: int | str) -> CountedBags:
    rng = derive_generator("bags", split_name(rows.inputs), seed)
    bags = CountedBags.from_records(rows.encoder, rows.frame, rows.y, params.get("bag_size", 10), rng)
    release = _release(rows, {"mechanism": "discrete_laplace"} | params, seed)
    return release_bag_counts(bags, **release) if release else bags


def _halves(rows: TrainingRows, params: dict, seed: int | str) -> Halves:
    """Each half is observed, and has noise, by itself."""
    first = toss_coins(len(rows.y), derive_generator("halves", split_name(rows.inputs), seed))
    halves = [(rows.take(np.flatnonzero(mask)), f"{seed} half {k}") for k, mask in enumerate((first, ~first))]
    if params.get("of", "tables") == "tables":
        return Halves(*(_tables(half, params, stream) for half, stream in halves))
    feature_map = _map(rows, params)
    return Halves(*(_label_sums(half, params, stream, feature_map) for half, stream in halves))


OBSERVERS = {
    ContingencyTables: _tables,
    CountedBags: _counted_bags,
    Halves: _halves,
    LabelSums: _label_sums,
    Records: _records,
    TablesAndSample: _tables_and_sample,
}


def _release(rows: TrainingRows, params: dict, seed: int | str, *options: str) -> dict[str, Any]:
    if params.get("epsilon") is None:
        return {}
    mechanism = params.get("mechanism", "gaussian")
    delta = None if mechanism.endswith("laplace") else params.get("delta", 1 / (10 * len(rows.y)))
    draw = draw_seeded(derive_seed("noise", rows.inputs.name, seed))
    release = {"epsilon": params["epsilon"], "delta": delta, "mechanism": mechanism, "draw": draw}
    return release | {k: params[k] for k in options if k in params}


# Parameters of an observation that its encoder depends on.
ENCODING = ("binning", "hashed", "max_modalities", "buckets")


def fit_encoder(
    inputs: TaskInput, frame: pd.DataFrame, y: np.ndarray, params: dict, seed: int
) -> tuple[FrameEncoder, np.ndarray]:
    """The encoder, and a mask of the training rows to learn from: those that it was not fitted to."""
    entry, mask = inputs.entry, np.ones(len(frame), dtype=bool)
    binning = params.get("binning") or entry.get("binning", "deciles")
    frame = frame.drop(columns=entry.get("unit", []))
    features = entry.get("features", {})
    hashed = params.get("hashed") or features.get("hashed")
    domains = features.get("domains", {})
    encoder = FrameEncoder.fit(frame, binning, [*features.get("categorical", []), *domains], hashed)
    encoder = with_declared_domains(encoder, domains)
    encoder = with_rare_values_grouped(encoder, frame, features.get("rare", {}))
    for kind, spec in entry.get("encoding", {}).items():
        from agglearn.vocabulary.encoder import optimal_encoder  # imports for a second, rarely used

        mask = derive_generator("target encoding", split_name(inputs), seed).random(len(frame)) >= spec["holdout"]
        fit = {"target": TargetEncoder.fit, "vocabulary": optimal_encoder}[kind]
        encoder = with_target_encodings(encoder, frame[~mask], y[~mask], spec["above"], spec["modalities"], fit)
    if limit := params.get("max_modalities"):
        large, buckets = [f.name for f in encoder.features if f.size > limit], params.get("buckets")
        treatment = f"hashed into {buckets} buckets" if buckets else "left out"
        logger.info("%s: features with more modalities %s: %s", inputs.name, treatment, sorted(large))
        if buckets:
            hashed = {name: HashedEncoder.fit(frame[name], buckets) for name in large}
            return FrameEncoder(tuple(hashed.get(f.name, f) for f in encoder.features)), mask
        encoder = encoder.select([n for n in encoder.names if n not in large])
    return encoder, mask
