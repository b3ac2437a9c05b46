"""Two halves of one release: every cell of its tables is thinned by itself."""

from dataclasses import replace

import numpy as np

from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, Table
from agglearn.observations.base import NoiseSpec, map_scales
from agglearn.observations.consistency import noise_variances


def thin_tables(tables: ContingencyTables, rng: np.random.Generator) -> tuple[ContingencyTables, ContingencyTables]:
    """Two sets of tables that add up to the given ones. Tables of the same records are still dependent."""
    if tables.noise is not None and tables.noise.threshold:
        raise DataError("tables with a threshold have no halves; set l2_theta, or leave the default")
    variance = noise_variances(tables)
    halves = {key: thin_table(t, variance[key], tables.noise, rng) for key, t in tables.tables.items()}
    noise = tables.noise or NoiseSpec("gaussian", np.sqrt(2), np.inf)  # equal weights of the tables in a projection
    noise = map_scales(noise, lambda scale: scale / np.sqrt(2))
    half = replace(tables, total=tables.total / 2, positives=tables.positives / 2, noise=noise)
    first, second = ({key: pair[i] for key, pair in halves.items()} for i in (0, 1))
    return replace(half, tables=first), replace(half, tables=second)


def thin_table(
    t: Table, variance: float, noise: NoiseSpec | None, rng: np.random.Generator, fraction: float = 0.5
) -> tuple[Table, Table]:
    """Two tables that add up to a table. The first has a fraction of its records and of the variance of its noise."""
    if noise is None:  # halves of Poisson numbers are independent
        c, zeros = (rng.binomial(v.astype(np.int64), fraction) for v in (t.label_sums, t.counts - t.label_sums))
        d, c = (c + zeros).astype(t.counts.dtype), c.astype(t.label_sums.dtype)
    else:  # normal numbers, Neufeld et al. 2024
        ones, zeros = np.maximum(t.label_sums, 0), np.maximum(t.counts - t.label_sums, 0)
        own_d, own_c, ones, zeros = (  # noise on counts and on label sums, counting errors of label 1 and 0
            rng.normal(size=t.counts.shape) * np.sqrt(v * (1 - fraction) / fraction)
            for v in (0.0 if noise.adjacency == "label" else variance, variance, ones, zeros)
        )
        d, c = fraction * (t.counts + own_d + ones + zeros), fraction * (t.label_sums + own_c + ones)
    return Table(t.shape, t.cells, d, c), Table(t.shape, t.cells, t.counts - d, t.label_sums - c)
