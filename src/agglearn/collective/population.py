"""What learners need of counts: the population size, public context, tables of movements."""

from collections.abc import Iterable

import numpy as np

from agglearn.errors import DataError
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.observations.flows import KINDS


def population_size(counts: FlowCounts) -> float:
    """M: public, or the mean total of the nodes and edges that were observed completely."""
    if counts.population_size is not None:
        return float(counts.population_size)
    tables = [t.reshape(t.shape[0] * t.shape[1], -1) for t in map(counts.repeats, KINDS) if t.size]
    totals = np.concatenate([t.sum(axis=1) for t in tables])
    totals = totals[~np.isnan(totals)] / (counts.rate if counts.noise == "poisson" else 1.0)
    if not totals.size or totals.mean() <= 0:
        raise DataError("population_size: it is not given, and no complete table is there to estimate it from")
    return float(totals.mean())


def require_context(counts: FlowCounts, names: Iterable[str], prefix: str = "") -> None:
    if missing := [name for name in names if name not in counts.context]:
        raise DataError(f"{prefix}the counts have no {', '.join(missing)} in their context; give FlowCounts(context=…)")


def first_tables(observation: FlowInstances, learner: str, advice: str = "") -> list[np.ndarray]:
    """The first noisy (E, L, L) tables of movements of each instance. DataError for an instance without tables."""
    tables = [counts.repeats("edge") for counts in observation.instances]
    if lacking := [k for k, t in enumerate(tables) if not t.size]:
        raise DataError(f"instance {lacking[0]}: has no edge_counts, which {learner} needs in every instance{advice}")
    return [t[0] for t in tables]
