"""Published tables of several periods, shrunken to the law that the periods share."""

import numpy as np

from agglearn.collective.noise import noise_model
from agglearn.collective.population import first_tables, population_size
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowInstances
from agglearn.settings import Count

GROUP_FREEDOM = 8  # of the ratio of a group, beside that of a cell, which has one less than there are periods


class ShrunkenTables(Estimator):
    """Tables of several periods, shrunken to their common law as far as the noise is larger than their differences.

    z = max(0, m + v / (v + σ²) · (y − m)), the linear predictor of least square error: m is the share of a cell in all
    periods times the total of the period, v the variance of the true count and σ² that of the noise. `SharedTableEM`
    takes v = m, as if the periods were draws from one law, and does harm where they are not.

    Parameters
    ----------
    group, random_state : int, int or None
        Number of cells of similar size, whose common v / m counts for a cell as much as eight periods of its own, and
        seed, which is unused.

    Attributes
    ----------
    edge_tables_, spread_ : list of ndarray of shape (E, L, L)
        Tables of each period, and the standard deviation of each entry.
    dispersion_ : ndarray of shape (E, L, L)
        v / m of each cell, at least 1, which it is for draws from one law.
    """

    observes = FlowInstances

    group: Count = 64

    def _fit(self, observation: FlowInstances) -> None:
        counts = observation.instances
        if len(counts) < 2:
            raise DataError("ShrunkenTables compares periods; give two instances or more")
        noises = [noise_model(c.noise, c.rate, c.scale) for c in counts]
        y = np.array([t / n.rate for t, n in zip(first_tables(observation, type(self).__name__), noises, strict=True)])
        observed, sizes = ~np.isnan(y), np.array([population_size(c) for c in counts])[:, None, None, None]
        fractions = np.maximum(np.where(observed, y, 0).sum(axis=0), 0) / np.maximum((observed * sizes).sum(axis=0), 1)
        m = sizes * fractions
        noise = np.array([n.true_variance(x) for n, x in zip(noises, m, strict=True)])
        excess = np.where(observed, (y - m) ** 2 - noise, 0).sum(axis=0) * len(y) / (len(y) - 1)
        self.dispersion_ = self._ratio(excess, np.where(observed, m, 0).sum(axis=0), len(y) - 1)
        v = self.dispersion_ * m
        weight = np.divide(v, v + noise, out=np.zeros_like(v), where=v > 0) * observed
        self.edge_tables_ = list(np.maximum(m + weight * np.where(observed, y - m, 0), 0.0))
        of_share = (v + noise) / len(y)
        self.spread_ = list(np.sqrt((1 - weight) * v + (1 - weight) ** 2 * of_share))

    def _ratio(self, excess: np.ndarray, total: np.ndarray, freedom: int) -> np.ndarray:
        """v / m of cells: a mean of the cell's and that of cells of similar totals, neither below 1."""
        single = np.maximum(np.divide(excess, total, out=np.ones_like(total), where=total > 0), 1.0)
        common, order = np.ones_like(total), np.argsort(total, axis=None, kind="stable")
        for cells in np.array_split(order, max(1, len(order) // self.group)):
            if (size := total.flat[cells].sum()) > 0:
                common.flat[cells] = max(1.0, excess.flat[cells].sum() / size)
        return (freedom * single + GROUP_FREEDOM * common) / (freedom + GROUP_FREEDOM)
