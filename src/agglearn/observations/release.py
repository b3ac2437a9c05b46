"""Observations with noise for privacy: tables, bag counts, flow counts. Label sums release themselves."""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from agglearn.errors import ConfigError, DataError
from agglearn.observations.bags import Bags
from agglearn.observations.base import NoiseSpec
from agglearn.observations.consistency import Tables, clip_tables, possible_totals, project_tables
from agglearn.observations.counted_bags import CountedBags
from agglearn.observations.counting import Key
from agglearn.observations.disclosure import certify
from agglearn.observations.flows import FlowCounts
from agglearn.observations.table import Table, TableSet, table_name
from agglearn.observations.units import CHOICE, SINGLE, cut_unit
from agglearn.privacy.budget import TOTALS, mechanisms
from agglearn.privacy.calibration import calibrate, check_promise
from agglearn.privacy.mechanisms import Draw, Mechanism, draw_private
from agglearn.settings import check_choice

__all__ = ["release_bag_counts", "release_flow_counts", "release_tables"]

AnyBags = TypeVar("AnyBags", Bags, CountedBags)
MAX_CELLS = 100_000_000  # with noise every cell is occupied: 24 bytes each
# Standard deviations of the noise by which a noisy number of records may be below the true one. More is one case in 3 million.
DEVIATIONS = 5
SCHEMA_ADVICE = (  # of what noise cannot hide in encoders
    "aggregate by a declared schema (schema=, --schema), or accept it by accept_learned_schema (--accept-learned-schema)"
)
FLOWS_ADVICE = "leave the context out, give all counts, or accept it by accept_exact_facts"
POSTPROCESSING = {"none": lambda tables: tables, "clip": clip_tables, "project": project_tables}


def release_tables(
    tables: Tables, epsilon: float, delta: float | None = None, *, mechanism: str = "gaussian",
    split: str = "uniform", adjacency: str | None = None, max_rows: int | None = None, postprocessing: str = "none",
    allow_large_epsilon: bool = False, accept_learned_schema: bool = False, draw: Draw = draw_private,
) -> Tables:  # fmt: skip
    """All tables and both totals with noise that guarantees (ε, δ)-differential privacy of the whole release.

    ConfigError where the parameters give no guarantee, and in a private release for ε above 20, δ from 1/N on, a
    learned schema, and tables of which nobody stated whose the records are. DataError for tables that have noise.

    Parameters
    ----------
    tables, epsilon, delta, mechanism
        Parameters of the guarantee, and one of `agglearn.privacy.MECHANISMS`. Laplace noise takes no delta.
    split, adjacency : str, str or None
        The budget over tables, see `budget_shares`, and what a neighbour differs in: one `record` more or less, all of
        one `unit` (the default where tables have one), or one `label` exchanged (all labels of one unit). Then counts
        are public and exact, and label sums alone have noise.
    max_rows : int or None
        The most records of a unit, for tables of `max_rows="auto"`. By default 5 % of ε choose it.
    postprocessing : str
        `none`, `clip` (label sums within counts from 0 on), or `project` (tables that agree). It costs no privacy.
    allow_large_epsilon, accept_learned_schema, draw : bool, bool, Draw
        Accept ε above 20. Accept learned bins and categories, which noise does not hide: not called private then.
        By default OpenDP draws. `draw_seeded(seed)` is reproducible and not private.
    """
    check_choice("postprocessing", postprocessing, POSTPROCESSING)
    epsilon, delta = check_promise(epsilon, delta, mechanism)
    unit = tables.unit or SINGLE
    expected = "unit" if unit.column else "record"
    adjacency = adjacency or expected
    if adjacency in {"unit", "record"} - {expected}:
        raise ConfigError(f"adjacency: {adjacency} does not go with these tables; use {expected} or label")
    cells = {k: math.prod(t.shape) for k, t in tables.tables.items()}
    noises_of = functools.partial(mechanisms, cells, mechanism, delta=delta, split=split, adjacency=adjacency)
    spent = CHOICE * epsilon if unit.sizes and max_rows is None else 0.0  # ε adds up, whatever the choice is
    if spent:
        noises = noises_of(epsilon - spent)
        max_rows = unit.choose(spent, draw, *np.mean([(cells[k], noises[k].variance) for k in cells], axis=0))
    tables = cut_unit(tables, max_rows)
    unit = tables.unit or SINGLE
    noises = noises_of(epsilon - spent, max_rows=unit.max_rows)
    scales = {table_name(tables, k): float(noise.scale) for k, noise in noises.items()}
    stated = scales if split == "cells" else None
    spec = NoiseSpec(mechanism, max(scales.values()), epsilon, delta, adjacency, scales=stated, unit=unit)
    totals = draw_totals(tables, noises[TOTALS], draw, adjacency)
    # whether δ is refused must not depend on more than the release shows
    margin = 0.0 if adjacency == "label" else DEVIATIONS * math.sqrt(noises[TOTALS].variance)
    spec = certify(spec, tables, draw, totals[0] + margin, accept_learned_schema, allow_large_epsilon, SCHEMA_ADVICE)
    return POSTPROCESSING[postprocessing](add_noise(tables, noises, draw, spec, totals))


def draw_totals(tables: TableSet, noise: Mechanism, draw: Draw, adjacency: str) -> tuple[float, float]:
    """Records and positives with noise. Under adjacency `label` the records are public."""
    if tables.noise is not None:
        raise DataError(f"the tables have {tables.noise.summary or tables.noise.mechanism} already")
    first, totals = int(adjacency == "label"), np.array([tables.total, tables.positives], float)
    totals[first:] = draw(noise, totals[first:], TOTALS)
    return possible_totals(*totals)


def add_noise(
    tables: Tables, noises: Mapping[Key | str, Mechanism], draw: Draw, spec: NoiseSpec, totals: tuple[float, float]
) -> Tables:
    """The tables with noise on totals and every cell, empty ones too. It depends on the names of features only."""
    cells = sum(math.prod(t.shape) for t in tables.tables.values())
    if cells > MAX_CELLS:
        advice = "use fewer pairs, or hash the largest features"
        raise DataError(f"noise on all {cells:,} cells needs too much memory; {advice}")
    first, names = 1 if spec.adjacency == "label" else 0, tables.names  # counts are public where labels alone are not

    def draw_table(key: Key, table: Table) -> Table:
        values = np.stack([block.ravel() for block in table.dense()])
        values[first:] = draw(noises[key], values[first:], [names[i] for i in key])
        return Table(table.shape, np.arange(values.shape[1]), *values)

    noisy = {key: draw_table(key, table) for key, table in tables.tables.items()}
    return replace(cut_unit(tables), total=totals[0], positives=totals[1], tables=noisy, noise=spec)


def release_bag_counts(
    bags: AnyBags, epsilon: float, delta: float | None = None, *, mechanism: str = "discrete_laplace",
    allow_large_epsilon: bool = False, accept_learned_schema: bool = False, draw: Draw = draw_private,
) -> AnyBags:  # fmt: skip
    """Bags whose numbers of positives have noise. Sizes and covariates are public.

    `released` has the numbers as they were drawn, `counts` those cut to 0 … size.

    Neighbours differ in one label, which changes the positives of one bag by 1, so that bags compose in parallel, or in
    the labels of one unit.

    Parameters
    ----------
    bags : Bags or CountedBags
        Of two classes, without weights, target and noise. DataError for others.
    epsilon, delta, mechanism, allow_large_epsilon, accept_learned_schema, draw
        As in `release_tables`, with its errors.
    """
    if bags.counts is None or bags.counts.shape[1] != 2 or bags.weights is not None:
        raise DataError("noise on bag counts needs bags of two classes without weights")
    if bags.noise is not None:
        raise DataError(f"the counts have {bags.noise.mechanism} noise already")
    if getattr(bags, "target", None) is not None:
        raise DataError("the bags have an exact target beside their counts; leave it out (replace(bags, target=None))")
    epsilon, delta = check_promise(epsilon, delta, mechanism)
    unit = getattr(bags, "unit", SINGLE)
    bound = unit.max_rows  # all in one bag, at worst
    noise = calibrate(mechanism, epsilon, delta, bound, bound, changes=[bound])
    spec = NoiseSpec(noise.kind, float(noise.scale), epsilon, delta, "label", unit=unit)
    spec = certify(spec, bags, draw, bags.offsets[-1], accept_learned_schema, allow_large_epsilon, SCHEMA_ADVICE)
    released = draw(noise, bags.counts[:, 1], "bag counts")
    positives = np.clip(np.round(released), 0, bags.sizes).astype(np.int64)
    return replace(bags, counts=np.column_stack([bags.sizes - positives, positives]), noise=spec, released=released)


def release_flow_counts(
    flows: FlowCounts, epsilon: float, delta: float | None = None, *, mechanism: str = "laplace",
    allow_large_epsilon: bool = False, accept_exact_facts: bool = False, draw: Draw = draw_private,
) -> FlowCounts:  # fmt: skip
    """Flow counts with noise on every entry that was observed.

    Neighbours differ in one person more or less, who is in one cell of every node's and every edge's table. The budget
    is split over these tables, all with the same scale.

    Parameters
    ----------
    flows : FlowCounts
        Exact counts, each once. DataError for others.
    epsilon, delta, mechanism, allow_large_epsilon
        As in `release_tables`, with its errors.
    accept_exact_facts, draw : bool, Draw
        Accept that the context, and which counts are missing, stand as they are: not called private then.
    """
    if flows.noise != "exact":
        raise DataError(f"the counts have {flows.noise} noise already")
    counts = {k: getattr(flows, k) for k in ("node_counts", "edge_counts") if getattr(flows, k) is not None}
    if any(v.ndim != (2 if k == "node_counts" else 3) for k, v in counts.items()):
        raise DataError("repeated exact counts: give each once")
    n = sum(len(v) for v in counts.values())
    epsilon, delta = check_promise(epsilon, delta, mechanism)
    noise = calibrate(mechanism, epsilon, delta, n, math.sqrt(n), changes=np.ones(n, int))
    for name, values in counts.items():
        observed = ~np.isnan(values)
        counts[name] = values.copy()
        counts[name][observed] = draw(noise, values[observed], name)
    spec = NoiseSpec(noise.kind, float(noise.scale), epsilon, delta)
    records = _largest_population(counts.values(), noise)
    spec = certify(spec, flows, draw, records, accept_exact_facts, allow_large_epsilon, FLOWS_ADVICE)
    kind = "gaussian" if noise.gaussian else "laplace"
    return replace(flows, **counts, noise=kind, scale=float(noise.scale), population_size=None, privacy=spec)


def _largest_population(counts: Iterable[np.ndarray], noise: Mechanism) -> float:
    """Upper bound of a population: the largest sum of noisy tables of all of it, and `DEVIATIONS` of their noise."""
    sums = [(np.nansum(table), np.count_nonzero(~np.isnan(table))) for tables in counts for table in tables]
    return max((total + DEVIATIONS * math.sqrt(n * noise.variance) for total, n in sums), default=0.0)
