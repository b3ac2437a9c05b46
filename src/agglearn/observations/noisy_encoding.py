"""Encodings computed from noisy tables, and tables over them. Gilotte et al. 2022, section 5.1: it failed there."""

from dataclasses import replace

import numpy as np

from agglearn.encoding import CategoricalEncoder, FrameEncoder, TargetEncoder
from agglearn.encoding.frame import FeatureEncoder
from agglearn.encoding.target import MISSING_VALUE
from agglearn.observations.counting import Key
from agglearn.observations.gaussian_noise import with_gaussian_noise
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables, Pairs


def tables_with_noisy_encoding(
    encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, sigma: float, seed: int, above: int, modalities: int,
    label: str = "label", pairs: Pairs = "all",
) -> ContingencyTables:  # fmt: skip
    """Tables over noisy target encodings, summed from noisy tables over the values themselves.

    Tables of pairs have the distribution of such sums: the noise of k cells is N(0, kσ²), drawn at once.

    Parameters
    ----------
    encoder, codes, y : FrameEncoder, ndarray of shape (n, D), ndarray of shape (n,)
        Of the raw values, codes of the records, and labels in {0, 1}.
    sigma, seed, above, modalities : float, int, int, int
        Noise as in `with_gaussian_noise`. Features of more values than `above` get fewer than `modalities`.
    label, pairs
        As in `ContingencyTables.from_records`.
    """
    raw = with_gaussian_noise(ContingencyTables.from_codes(encoder, codes, y, label, "none"), sigma, seed)
    features, recodings = zip(*(_recode(raw, i, above, modalities) for i in range(len(encoder.features))), strict=True)
    new = np.stack([recoding[codes[:, i]] for i, recoding in enumerate(recodings)], axis=1)
    tables = ContingencyTables.from_codes(FrameEncoder(features), new, y, label, pairs)
    merged = [np.bincount(recoding, minlength=f.size) for f, recoding in zip(features, recodings, strict=True)]
    noisy = with_gaussian_noise(tables, sigma, seed, merged=merged)
    singles: dict[Key, Table] = {
        (i,): raw.tables[i,].merge_cells(recoding[raw.tables[i,].cells], (features[i].size,))
        for i, recoding in enumerate(recodings)
    }
    return replace(noisy, tables=noisy.tables | singles)


def _recode(raw: ContingencyTables, i: int, above: int, modalities: int) -> tuple[FeatureEncoder, np.ndarray]:
    feature = raw.encoder.features[i]
    if feature.size <= above or not isinstance(feature, CategoricalEncoder):
        return feature, np.arange(feature.size)
    values = (*feature.values, *([MISSING_VALUE] if feature.has_missing else []))
    rate = raw.positives / raw.total
    encoder = TargetEncoder.from_counts(feature.name, values, *raw.dense(i), rate, modalities)
    return encoder, np.asarray(encoder.codes)
