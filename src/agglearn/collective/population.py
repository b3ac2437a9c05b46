"""How many individuals a population has."""

import numpy as np

from agglearn.errors import DataError
from agglearn.observations import FlowCounts


def population_size(counts: FlowCounts) -> float:
    """M: public, or the sum of the counts of one node or edge, averaged over those observed completely."""
    if counts.population_size is not None:
        return float(counts.population_size)
    totals = [
        t.sum() / (counts.rate if counts.noise == "poisson" else 1.0)
        for what in ("node", "edge")
        for repeat in counts.repeats(what)
        for t in repeat
        if not np.isnan(t).any()
    ]
    if not totals or np.mean(totals) <= 0:
        raise DataError("population_size: neither given, nor is there a complete table to estimate it from")
    return float(np.mean(totals))
