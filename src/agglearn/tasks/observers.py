"""What learners see of training rows: encoded, aggregated, with the noise that an experiment asks for."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding import FeatureMap, FrameEncoder, HashedEncoder, TargetEncoder, with_target_encodings
from agglearn.errors import ConfigError
from agglearn.observations import (
    ContingencyTables,
    CountedBags,
    Halves,
    LabelSums,
    Records,
    tables_with_noisy_encoding,
    with_gaussian_noise,
)
from agglearn.observations.halves import coins
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import seeded
from agglearn.seeds import derive_generator, derive_seed
from agglearn.tasks.base import Source
from agglearn.tasks.splitting import split_name


@dataclass(frozen=True)
class Rows:
    """Training rows to observe: raw features, labels, and the encoder that was fitted to all of them."""

    source: Source
    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    label: str

    def take(self, rows: np.ndarray) -> Self:
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), y=self.y[rows])


def _records(rows: Rows, params: dict, seed) -> Records:
    return Records(rows.encoder, rows.frame, rows.y, rows.label, params.get("cross_buckets"))


def _tables(rows: Rows, params: dict, seed) -> ContingencyTables:
    """Tables of encoded training rows, with the noise that the parameters ask for."""
    encoder, y, name = rows.encoder, rows.y, rows.source.name
    codes, pairs = encoder.encode(rows.frame), params.get("pairs", "all")
    sigma = params.get("gaussian_noise") or params.get("noise_share", 0) * len(y)
    noise_seed = derive_seed("gaussian noise", name, seed)
    if how := params.get("encode_noisy"):
        few = how["above"], how["modalities"]
        return tables_with_noisy_encoding(encoder, codes, y, sigma, noise_seed, *few, rows.label, pairs)
    tables = ContingencyTables.from_codes(encoder, codes, y, rows.label, pairs, params.get("cross_buckets"))
    if promise := _privacy_budget(params, len(y)):
        if sigma:
            raise ConfigError("observe: epsilon and the size of the noise are both given; give one")
        how = {k: params[k] for k in ("split", "adjacency", "postprocessing") if k in params}
        return tables.private(**promise, **how, draw=seeded(derive_seed("noise", name, seed)))
    return with_gaussian_noise(tables, sigma, noise_seed)


def _map(rows: Rows, params: dict) -> FeatureMap:
    return FeatureMap.fit(params.get("features", "onehot"), rows.encoder, rows.frame, params.get("ranges"))


def _label_sums(rows: Rows, params: dict, seed, mapped: FeatureMap | None = None) -> LabelSums:
    """Features of training rows and their sum, with the noise that the parameters ask for."""
    sums = LabelSums.from_map(mapped or _map(rows, params), rows.frame, rows.y, label=rows.label)
    promise = _privacy_budget(params, len(rows.y))
    if not promise:
        return sums
    how = {k: params[k] for k in ("calibration", "sensitivity") if k in params}
    return sums.private(**promise, **how, draw=seeded(derive_seed("noise", rows.source.name, seed)))


def _counted_bags(rows: Rows, params: dict, seed) -> CountedBags:
    """Random bags of training rows with their labels counted, and the noise that the parameters ask for."""
    rng = derive_generator("bags", split_name(rows.source), seed)
    bags = CountedBags.from_records(rows.encoder, rows.frame, rows.y, params.get("bag_size", 10), rng)
    promise = _privacy_budget({"mechanism": "discrete_laplace"} | params, len(rows.y))
    draw = seeded(derive_seed("noise", rows.source.name, seed))
    return release_bag_counts(bags, **promise, draw=draw) if promise else bags


def _halves(rows: Rows, params: dict, seed) -> Halves:
    """Random halves of the training rows, each observed, and given noise, by itself."""
    of = params.get("of", "tables")
    first = coins(len(rows.y), derive_generator("halves", split_name(rows.source), seed))
    mapped = (_map(rows, params),) if of == "label_sums" else ()
    make = {"tables": _tables, "label_sums": _label_sums}[of]
    parts = enumerate(rows.take(np.flatnonzero(part)) for part in (first, ~first))
    return Halves(*(make(part, params, f"{seed} half {k}", *mapped) for k, part in parts))


OBSERVERS = {
    ContingencyTables: _tables,
    CountedBags: _counted_bags,
    Halves: _halves,
    LabelSums: _label_sums,
    Records: _records,
}


def _privacy_budget(params: dict, n: int) -> dict:
    """ε, δ and mechanism of an observation; empty where it is to have no noise."""
    if params.get("epsilon") is None:
        return {}
    mechanism = params.get("mechanism", "gaussian")
    delta = None if mechanism.endswith("laplace") else params.get("delta", 1 / (10 * n))
    return {"epsilon": params["epsilon"], "delta": delta, "mechanism": mechanism}


# Parameters of an observation that its encoder depends on.
ENCODING = ("binning", "hashed", "max_modalities", "buckets")


def fitted_encoder(source: Source, frame: pd.DataFrame, y: np.ndarray, params: dict, seed: int):
    """The encoder of an observation, and which training rows are left to learn from (those not used for encoding)."""
    entry, kept = source.entry, np.ones(len(frame), dtype=bool)
    how = params.get("binning") or entry.get("binning", "deciles")
    categorical = entry.get("features", {}).get("categorical", [])
    encoder = FrameEncoder.fit(frame, how, categorical, params.get("hashed"))
    for kind, spec in entry.get("encoding", {}).items():
        from agglearn.vocabulary.encoder import optimal_encoder  # which few need, and takes a second

        kept = derive_generator("target encoding", split_name(source), seed).random(len(frame)) >= spec["holdout"]
        fit = {"target": TargetEncoder.fit, "vocabulary": optimal_encoder}[kind]
        encoder = with_target_encodings(encoder, frame[~kept], y[~kept], spec["above"], spec["modalities"], fit)
    if most := params.get("max_modalities"):
        large, buckets = [f.name for f in encoder.features if f.size > most], params.get("buckets")
        done = f"hashed into {buckets} buckets" if buckets else "left out"
        print(f"{source.name}: features with more modalities {done}: {sorted(large)}")
        if buckets:
            hashed = {name: HashedEncoder.fit(frame[name], buckets) for name in large}
            return FrameEncoder(tuple(hashed.get(f.name, f) for f in encoder.features)), kept
        encoder = encoder.select([n for n in encoder.names if n not in large])
    return encoder, kept
