"""Observations of training rows: encoded, aggregated, with the noise that an experiment asks for."""

import logging
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from agglearn.datasets import RecordStore
from agglearn.datasets.published_tables import TABLES, hash_pairs
from agglearn.encoding import FeatureMap, FrameEncoder, HashedEncoder, TargetEncoder
from agglearn.encoding.frame import with_declared_domains, with_rare_values_grouped, with_target_encodings
from agglearn.errors import ConfigError
from agglearn.observations import ContingencyTables, CountedBags, Halves, LabelSums, Records, fill_hidden, hide_cells
from agglearn.observations.gaussian_noise import tables_with_noisy_encoding, with_gaussian_noise
from agglearn.observations.halves import toss_coins
from agglearn.observations.release import release_bag_counts
from agglearn.observations.units import unit_rows
from agglearn.privacy import draw_seeded
from agglearn.seeds import derive_generator, derive_seed
from agglearn.tasks.base import TaskInput
from agglearn.tasks.splitting import split_name

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
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), y=self.y[rows])


def _records(rows: TrainingRows, params: dict, seed: int | str) -> Records:
    return Records(rows.encoder, rows.frame, rows.y, rows.label, params.get("cross_buckets"))


def _tables(rows: TrainingRows, params: dict, seed: int | str) -> ContingencyTables:
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
        if sigma:
            raise ConfigError("observe: epsilon and the size of the noise are both given; give one")
        return tables.private(**release)
    if threshold := params.get("threshold"):
        if sigma:
            raise ConfigError("observe: a threshold and noise are both given; give one")
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
    return sums.private(**release) if release else sums


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
