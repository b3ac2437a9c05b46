"""Encodings computed from noisy tables, and the tables summed accordingly.

Gilotte et al. 2022, section 5.1, tried it on the noisy tables of the AdKDD'21 challenge, and it failed: what builds the
encoding is also what is learned from, and a cell of the new tables holds the noise of all cells that went into it.
"""

from dataclasses import replace

import numpy as np

from agglearn.encoding import CategoricalEncoder, FrameEncoder, TargetEncoder
from agglearn.encoding.target import MISSING_VALUE
from agglearn.observations.gaussian_noise import with_gaussian_noise
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables


def tables_with_noisy_encoding(
    encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, sigma: float, seed: int, above: int, modalities: int,
    label: str = "label", pairs="all",
) -> ContingencyTables:  # fmt: skip
    """Tables over noisy target encodings, summed from noisy tables over the values themselves.

    Single tables are summed from the noisy ones. Those of pairs have the same law as if they were: the sum of k cells'
    noise is N(0, kσ²), drawn at once, since the tables of pairs of large features are too large to hold.

    Parameters
    ----------
    encoder, codes, y : records over raw values, (n, D) and (n,).
    sigma, seed : of the noise, see `with_gaussian_noise`; single tables have the noise that it gives them.
    above : categorical features of more values are encoded, by count and label rate in their noisy single table.
    modalities : fewer than so many result (`TargetEncoder`).
    """
    raw = with_gaussian_noise(ContingencyTables.from_codes(encoder, codes, y, label, "none"), sigma, seed)
    features, to = zip(*(_recoded(raw, i, above, modalities) for i in range(len(encoder.features))), strict=True)
    new = np.stack([t[codes[:, i]] for i, t in enumerate(to)], axis=1)
    tables = ContingencyTables.from_codes(FrameEncoder(features), new, y, label, pairs)
    behind = [np.bincount(t, minlength=f.size) for f, t in zip(features, to, strict=True)]
    noisy = with_gaussian_noise(tables, sigma, seed, merged=behind)
    singles = {(i,): summed(raw.tables[(i,)], t, f.size) for i, (f, t) in enumerate(zip(features, to, strict=True))}
    return replace(noisy, tables=noisy.tables | singles)


def _recoded(raw: ContingencyTables, i: int, above: int, modalities: int):
    """The new encoder of a feature, and the (size,) new code of each old one."""
    feature = raw.encoder.features[i]
    if feature.size <= above or not isinstance(feature, CategoricalEncoder):
        return feature, np.arange(feature.size)
    values = (*feature.values, *([MISSING_VALUE] if feature.has_missing else []))
    rate = raw.positives / raw.total
    encoder = TargetEncoder.of_counts(feature.name, values, *raw.dense(i), rate, modalities)
    return encoder, np.asarray(encoder.codes)


def summed(table: Table, to: np.ndarray, size: int) -> Table:
    """A single table with its cells summed by their (modalities,) new code."""
    cells = to[table.cells]
    kept = np.unique(cells)
    sums = [np.bincount(cells, v, size)[kept].astype(v.dtype) for v in (table.counts, table.label_sums)]
    return Table((size,), kept, *sums)
