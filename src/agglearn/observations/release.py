"""Observations with noise for privacy: tables, bag counts, flow counts. Label sums release themselves."""

import math
from dataclasses import replace

import numpy as np

from agglearn.errors import ConfigError, DataError
from agglearn.observations.bags import Bags
from agglearn.observations.base import NoiseSpec
from agglearn.observations.consistency import clipped, projected
from agglearn.observations.disclosure import unprotected
from agglearn.observations.flows import FlowCounts
from agglearn.observations.table import Table, TableSet, table_name
from agglearn.privacy.budget import TOTALS, mechanisms
from agglearn.privacy.calibration import calibrated, checked
from agglearn.privacy.limits import check_delta, check_epsilon
from agglearn.privacy.mechanisms import Draw, Mechanism, secret

__all__ = ["release_bag_counts", "release_flow_counts", "release_tables"]

MOST_CELLS = 100_000_000  # with noise every cell is occupied: 24 bytes each
# Standard deviations of the noise by which a noisy number of records may be below the true one. More is one case in 3 million.
DEVIATIONS = 5
POSTPROCESSING = {"none": lambda tables: tables, "clip": clipped, "project": projected}


def release_tables(
    tables: TableSet, epsilon: float, delta: float | None = None, *, mechanism: str = "gaussian",
    split: str = "uniform", adjacency: str = "record", postprocessing: str = "none", allow_large_epsilon: bool = False,
    accept_learned_schema: bool = False, draw: Draw = secret,
) -> TableSet:  # fmt: skip
    """All tables and both totals with noise that promises (ε, δ) for the release as a whole.

    Parameters
    ----------
    split : of the budget over tables, see `budget.shares`.
    adjacency : `record`, one record more or less; `label`, one label exchanged: then counts are public and exact, and
        label sums alone have noise.
    postprocessing : `none`; `clip` (counts from 0 on, label sums within them); `project` (tables made to agree with one
        another). It costs no privacy.
    allow_large_epsilon : accept ε above 20 in a private release.
    accept_learned_schema : accept that bins and categories were learned from the records, which noise on counts does not
        hide: the release is then not called private.
    draw : `secret` draws through OpenDP; `seeded(seed)` the same law, reproducible and not private.

    Raises
    ------
    ConfigError : ε ≤ 0, δ outside (0, 1), an unknown mechanism, split or adjacency; in a private release ε above 20, δ
        from 1/N on, and a learned schema. DataError : noise already.
    """
    if postprocessing not in POSTPROCESSING:
        raise ConfigError(f"postprocessing: {postprocessing!r} is not known; use {', '.join(POSTPROCESSING)}")
    epsilon, delta = checked(epsilon, delta, mechanism)
    laws = mechanisms(tables, mechanism, epsilon, delta, split, adjacency)
    told = ""
    if draw is secret:
        check_epsilon(epsilon, allow_large_epsilon)
        told = unprotected(tables.encoder, accept_learned_schema)
    scales = {table_name(tables, k): float(law.scale) for k, law in laws.items()}
    spec = NoiseSpec(
        mechanism, max(scales.values()), epsilon, delta or 0.0, adjacency, draw is secret and not told,
        None if split == "uniform" else scales, unprotected=told,
    )  # fmt: skip
    noisy = noisy_tables(tables, laws, draw, spec)
    if draw is secret:  # whether δ is refused must not depend on more than the release tells
        doubt = 0.0 if adjacency == "label" else DEVIATIONS * math.sqrt(laws[TOTALS].variance)
        check_delta(delta, noisy.total + doubt)
    return POSTPROCESSING[postprocessing](noisy)


def noisy_tables(tables: TableSet, laws: dict, draw: Draw, spec: NoiseSpec) -> TableSet:
    """The tables with independent noise on count and label sum of every cell, empty ones too, and on both totals.

    The noise of a table depends on the names of its features, not on which other tables there are. Totals are
    kept apart from nonsense: at least one record of each label.
    """
    if tables.noise is not None:
        raise DataError(f"the tables have {tables.noise.mechanism} noise already")
    cells = sum(math.prod(t.shape) for t in tables.tables.values())
    if cells > MOST_CELLS:
        raise DataError(
            f"noise on all {cells:,} cells needs too much memory; use fewer pairs, or hash the largest features"
        )
    first, names = 1 if spec.adjacency == "label" else 0, tables.names  # counts are public where labels alone are not

    def noisy(key, table: Table) -> Table:
        values = np.stack([part.ravel() for part in table.dense()])
        values[first:] = draw(laws[key], values[first:], [names[i] for i in key])
        return Table(table.shape, np.arange(values.shape[1]), *values)

    found = {key: noisy(key, table) for key, table in tables.tables.items()}
    totals = np.array([tables.total, tables.positives], float)
    totals[first:] = draw(laws[TOTALS], totals[first:], TOTALS)
    total = max(totals[0], 2.0)
    positives = min(max(totals[1], 1.0), total - 1)
    return replace(tables, total=float(total), positives=float(positives), tables=found, noise=spec)


def release_bag_counts(
    bags: Bags, epsilon: float, delta: float | None = None, *, mechanism: str = "discrete_laplace",
    allow_large_epsilon: bool = False, accept_learned_schema: bool = False, draw: Draw = secret,
) -> Bags:  # fmt: skip
    """Bags whose numbers of positives have noise, cut to 0 … size; sizes and covariates are public.

    Neighbours differ in one label, which changes the positives of one bag by 1: bags compose in parallel.

    Raises
    ------
    DataError : weights, a target, other than two classes, noise already. ConfigError : see `release_tables`.
    """
    if bags.counts is None or bags.counts.shape[1] != 2 or bags.weights is not None:
        raise DataError("noise on bag counts needs bags of two classes without weights")
    if bags.noise is not None:
        raise DataError(f"the counts have {bags.noise.mechanism} noise already")
    if bags.counts is not None and getattr(bags, "target", None) is not None:
        raise DataError("the bags have an exact target beside their counts; leave it out (replace(bags, target=None))")
    epsilon, delta = checked(epsilon, delta, mechanism)
    law, told = calibrated(mechanism, epsilon, delta, 1, 1, changes=[1]), ""
    if draw is secret:
        told = unprotected(getattr(bags, "encoder", None), accept_learned_schema, features_public=True)
        check_epsilon(epsilon, allow_large_epsilon)
        check_delta(delta, bags.offsets[-1])
    positives = np.clip(np.round(draw(law, bags.counts[:, 1], "bag counts")), 0, bags.sizes).astype(np.int64)
    spec = spec_of(law, epsilon, delta, "label", draw, told)
    return replace(bags, counts=np.column_stack([bags.sizes - positives, positives]), noise=spec)


def release_flow_counts(
    flows: FlowCounts, epsilon: float, delta: float | None = None, *, mechanism: str = "laplace",
    allow_large_epsilon: bool = False, draw: Draw = secret,
) -> FlowCounts:  # fmt: skip
    """Flow counts with noise on every entry that was observed; one person more or less is in one cell of every node's
    and every edge's table, over which the budget is split (all with the same scale).

    Raises
    ------
    DataError : counts that are not exact, or repeated. ConfigError : see `release_tables`.
    """
    if flows.noise != "exact":
        raise DataError(f"the counts have {flows.noise} noise already")
    parts = {k: getattr(flows, k) for k in ("node_counts", "edge_counts") if getattr(flows, k) is not None}
    if any(v.ndim != n for k, v in parts.items() for n in [2 if k == "node_counts" else 3]):
        raise DataError("repeated exact counts: give each once")
    n = sum(len(v) for v in parts.values())
    epsilon, delta = checked(epsilon, delta, mechanism)
    law = calibrated(mechanism, epsilon, delta, n, math.sqrt(n), changes=np.ones(n, int))
    if draw is secret:
        check_epsilon(epsilon, allow_large_epsilon)
    for name, values in parts.items():
        seen = ~np.isnan(values)
        parts[name] = values.copy()
        parts[name][seen] = draw(law, values[seen], name)
    if draw is secret:
        check_delta(delta, _population(parts.values(), law))
    noise = "gaussian" if law.gaussian else "laplace"
    spec = spec_of(law, epsilon, delta, "record", draw)
    return replace(flows, **parts, noise=noise, scale=float(law.scale), population_size=None, privacy=spec)


def _population(parts, law: Mechanism) -> float:
    """What noisy tables, each of a whole population, tell of its size: the largest sum, and what noise may have taken."""
    sums = [(np.nansum(table), np.count_nonzero(~np.isnan(table))) for values in parts for table in values]
    return max(total + DEVIATIONS * math.sqrt(n * law.variance) for total, n in sums)


def spec_of(
    law: Mechanism, epsilon: float, delta: float | None, adjacency: str, draw: Draw, told: str = ""
) -> NoiseSpec:
    """What is recorded of one mechanism's noise; `told`, see `disclosure.unprotected`."""
    epsilon, delta = checked(epsilon, delta, law.kind)
    private = draw is secret and not told
    return NoiseSpec(law.kind, float(law.scale), epsilon, delta or 0.0, adjacency, private, unprotected=told)
